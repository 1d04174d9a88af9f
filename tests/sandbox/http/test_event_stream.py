"""A stream of events: woken by the journal and the clock, alive while it is quiet, gone with its reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import aiohttp
import pytest

from payments_async.sandbox import Change, Sandbox, VirtualClock
from payments_async.sandbox._http import event_stream as events
from payments_async.sandbox._http.event_stream import News, event_stream
from tests.sandbox.raw_requests import Api

SOMETHING = Change(0.0, "payout", "po_1", None, "pending")


def chunks(sandbox: Sandbox, read: Callable[[], News]) -> AsyncGenerator[bytes, None]:
    return cast("AsyncGenerator[bytes, None]", event_stream(sandbox, read).chunks)


async def test_a_browser_waits_a_second_before_it_connects_again(sandbox: Sandbox) -> None:
    stream = chunks(sandbox, lambda: News(b"data: 1\n\n", is_last=True))
    assert [chunk async for chunk in stream] == [b"retry: 1000\n\n", b"data: 1\n\n"]


async def test_what_happens_during_a_reading_is_read_next(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_KEEP_ALIVE", 1_000.0)
    readings = 0

    def read() -> News:
        nonlocal readings
        readings += 1
        if readings == 1:
            sandbox.journal.add(SOMETHING)
        return News(b"data: %d\n\n" % readings, is_last=readings == 2)

    assert [chunk async for chunk in chunks(sandbox, read)][1:] == [b"data: 1\n\n", b"data: 2\n\n"]


async def test_what_falls_due_is_read_when_the_clock_gets_there(sandbox: Sandbox) -> None:
    def read() -> News:
        now = sandbox.clock.now()
        return News(is_last=now >= due, due_in=due - now)

    due = sandbox.clock.now() + 60
    stream = chunks(sandbox, read)
    await anext(stream)
    ended = asyncio.ensure_future(anext(stream, b"ended"))
    turn = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0, turn.set_result, None)
    await turn
    assert not ended.done()
    sandbox.clock.advance(60)
    assert await ended == b"ended"


async def test_a_quiet_stream_sends_comments(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_KEEP_ALIVE", 0.001)
    monkeypatch.setattr(events, "_GATHER", 0.001)
    stream = chunks(sandbox, News)
    assert [await anext(stream) for _ in range(3)][1:] == [b": still here\n\n"] * 2
    await stream.aclose()


async def test_a_reader_who_leaves_is_woken_no_more(sandbox: Sandbox) -> None:
    stream = chunks(sandbox, lambda: News(b"data: 1\n\n"))
    await anext(stream)
    await anext(stream)
    assert sandbox.journal._wakers
    await stream.aclose()
    assert not sandbox.journal._wakers


async def test_a_stream_ends_with_the_sandbox() -> None:
    with Sandbox(clock=VirtualClock.frozen()) as sandbox:
        session_id = Api(sandbox, sandbox.api_key).checkout().data["checkout"]["id"]
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{sandbox.origin}/checkout/{session_id}/events") as response,
        ):
            await response.content.readline()
            await asyncio.to_thread(sandbox.stop)
            with pytest.raises(aiohttp.ClientPayloadError):
                while await response.content.readline():
                    pass
    assert sandbox.journal._wakers == {}


async def test_a_stream_that_ends_with_its_pause_leaves_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """As some of many do when the server stops: cancelled, and due to go on, in one turn of the loop."""
    monkeypatch.setattr(events, "_GATHER", 0.0)
    loop, errors = asyncio.get_running_loop(), list[dict[str, Any]]()
    loop.set_exception_handler(lambda _, context: errors.append(context))
    pause = asyncio.ensure_future(events._pause(loop))
    turn = loop.create_future()
    loop.call_soon(turn.set_result, None)
    await turn
    pause.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pause
    assert errors == []
