"""That something has happened, as a stream of events over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from payments_async.sandbox import Change, Sandbox, VirtualClock
from tests.sandbox.raw_requests import PAYOUT, Api
from tests.support.patience import until


def change(number: int) -> Change:
    return Change(float(number), "payout", f"po_{number}", None, "pending")


async def events(response: aiohttp.ClientResponse, count: int) -> list[dict[str, Any]]:
    """The next `count` events, comments left out."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        block = (await response.content.readuntil(b"\n\n")).decode()
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] not in ("", ":"))
        if "event" in fields:
            found.append({**fields, "data": json.loads(fields["data"])})
    return found


@pytest.fixture
def serving() -> Iterator[Sandbox]:
    with Sandbox(clock=VirtualClock.frozen()) as sandbox:
        yield sandbox


async def test_a_pulse_tells_of_thousands_at_once(serving: Sandbox) -> None:
    for number in range(3_000):
        serving.journal.add(change(number))
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{serving.origin}/_sandbox/api/stream?after=5") as response,
    ):
        (first,) = await events(response, 1)
        serving.journal.add(change(3_001))
        (second,) = await events(response, 1)
    assert (first["event"], first["id"], first["data"]) == ("pulse", "3000", {"last": 3_000})
    assert second["data"] == {"last": 3_001}


async def test_a_pulse_tells_that_an_answer_has_left(serving: Sandbox) -> None:
    """Its end is no entry of the journal."""
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {serving.api_key}"}) as session:
        serving.on("payouts.list").respond("hang", times=1)
        call = asyncio.create_task(session.get(f"{serving.base_url}/payouts"))
        await until(lambda: bool(serving.requests))
        last = serving.journal.last
        address = f"{serving.origin}/_sandbox/api/stream?after={serving.journal.changes}"
        async with session.get(address) as response:
            call.cancel()
            (pulse,) = await events(response, 1)
        await asyncio.gather(call, return_exceptions=True)
    assert pulse["data"] == {"last": last}
    assert next(serving.journal.newest_exchanges()).seconds is not None


async def test_what_falls_due_is_sent_to_a_reader() -> None:
    with Sandbox(clock=VirtualClock(speed=1000)) as sandbox:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{sandbox.origin}/_sandbox/api/stream") as response,
        ):
            assert response.headers["Content-Type"] == "text/event-stream"
            await asyncio.to_thread(Api(sandbox, sandbox.api_key).post, "/payouts", PAYOUT)
            while (await events(response, 1))[0]["data"][
                "last"
            ] < 4:  # created, request, processing, completed
                pass
    assert sandbox.books.payouts()[0].status == "completed"


def test_the_stream_cannot_be_read_in_process(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="read it over HTTP"):
        sandbox.handle("GET", "/_sandbox/api/stream")
