"""The journal: what happened, in order, in bounded memory; and its stream over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import attrs
import pytest

from payments_async.sandbox import Answer, Change, LoggedRequest, Sandbox, VirtualClock
from payments_async.sandbox._journal import Journal, LoggedExchange
from payments_async.sandbox.control_api import events as _stream
from tests.sandbox.raw_requests import PAYOUT, Api


def change(number: int) -> Change:
    return Change(float(number), "payout", f"po_{number}", None, "pending")


def logged(name: str) -> LoggedRequest:
    return LoggedRequest(0.0, name, "GET", "/v1/payouts", None, 200, None, False, None, None, {})


def fill(journal: Journal, count: int, size: int = 0) -> None:
    for number in range(count):
        answer = Answer(200, {}, b"a" * size)
        journal.add_exchange(logged(f"req_{number}"), float(number), b"q" * size, answer)


def kept_bodies(journal: Journal) -> list[str]:
    items = [entry.item for entry in journal.since(0)]
    return [
        item.log.request_id for item in items if isinstance(item, LoggedExchange) and item.answer is not None
    ]


def test_numbers_go_up_by_one_and_stay_with_their_entries() -> None:
    journal = Journal(entries=3)
    for number in range(1, 6):
        journal.add(change(number))
    assert [(entry.seq, entry.item) for entry in journal.since(0)] == [(n, change(n)) for n in (3, 4, 5)]
    assert (journal.first, journal.last) == (3, 5)


def test_only_what_came_after_a_number_is_given() -> None:
    journal = Journal()
    for number in range(1, 6):
        journal.add(change(number))
    assert [entry.seq for entry in journal.since(3)] == [4, 5]
    assert journal.since(5) == []
    assert journal.since(99) == []


def test_a_limit_keeps_the_newest() -> None:
    journal = Journal()
    for number in range(1, 6):
        journal.add(change(number))
    assert [entry.seq for entry in journal.since(1, limit=2)] == [4, 5]
    assert journal.since(0, limit=0) == []


def test_bodies_are_let_go_oldest_first_when_their_budget_is_spent() -> None:
    journal = Journal(body_bytes=120)
    fill(journal, 5, size=20)  # 54 bytes each, with method and address
    assert kept_bodies(journal) == ["req_3", "req_4"]
    gone = journal.exchange("req_0")
    assert gone is not None
    assert gone.body is None


def test_headers_and_addresses_count_as_bytes_and_are_let_go_with_them() -> None:
    """600 requests with many headers kept 293 MiB."""
    journal = Journal(body_bytes=100_000)
    key = "k" * 8_000
    for number in range(3):
        headers = {f"x-{place}": "v" * 1_000 for place in range(30)}
        log = attrs.evolve(
            logged(f"req_{number}"), path="/v1/" + "p" * 8_000, headers=headers, idempotency_key=key
        )
        journal.add_exchange(log, 0.0, b"", Answer(200, {}, b""))
    assert kept_bodies(journal) == ["req_1", "req_2"]
    gone, kept = journal.exchange("req_0"), journal.exchange("req_2")
    assert gone is not None
    assert kept is not None
    assert (gone.is_whole, gone.log.headers, kept.is_whole, len(kept.log.headers)) == (False, {}, True, 30)
    assert len(gone.log.path) == len(gone.log.idempotency_key or "") == 200


def test_the_request_log_lets_go_of_headers_with_the_journal(sandbox: Sandbox, api: Api) -> None:
    sandbox.journal._room = 2_000
    for _ in range(8):
        api.get("/payouts", idempotency_key="key-00001")
    first, *_, last = sandbox.requests
    assert (first.headers, first.path) == ({}, "/v1/payouts")
    assert dict(last.headers) == {"x-idempotency-key": "key-00001"}


def test_a_body_larger_than_the_budget_is_not_kept_and_harms_no_later_one() -> None:
    journal = Journal(body_bytes=100)
    fill(journal, 1, size=1000)
    assert kept_bodies(journal) == []
    fill(journal, 2, size=10)
    assert kept_bodies(journal) == ["req_0", "req_1"]


def test_bodies_leave_with_their_entries() -> None:
    journal = Journal(entries=2)
    fill(journal, 5)
    assert kept_bodies(journal) == ["req_3", "req_4"]
    assert len(journal._bodies) == 2


def test_a_listener_is_woken_once_and_only_while_it_waits() -> None:
    journal, calls = Journal(), []
    journal.wake_once("one", lambda: calls.append("one"))
    journal.wake_once("two", lambda: calls.append("two"))
    journal.forget("two")
    journal.add(change(1))
    journal.add(change(2))
    assert calls == ["one"]


def test_clearing_forgets_entries_and_goes_on_counting() -> None:
    journal = Journal(body_bytes=100)
    fill(journal, 3, size=20)
    journal.clear()
    assert journal.since(0) == []
    journal.add(change(4))
    assert [entry.seq for entry in journal.since(0)] == [4]
    assert journal.exchange("req_0") is None


def test_a_sandbox_notes_requests_with_their_bodies_and_what_they_changed(sandbox: Sandbox, api: Api) -> None:
    created = api.post("/payouts", PAYOUT)
    first, second = sandbox.entries()
    assert isinstance(first.item, Change)
    assert isinstance(second.item, LoggedExchange)
    assert json.loads(second.item.body or b"") == PAYOUT
    assert second.item.answer is not None
    assert json.loads(second.item.answer.body)["data"]["id"] == created.data["id"]
    assert "authorization" not in second.item.log.headers


def test_visits_to_pages_and_controls_are_not_noted(sandbox: Sandbox) -> None:
    sandbox.handle("GET", "/checkout/nothing")
    sandbox.handle("GET", "/_sandbox/")
    sandbox.handle("GET", "/_sandbox/api/state")
    assert sandbox.entries() == []
    assert sandbox.requests == []


# --- the stream ---------------------------------------------------------------------------------


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
def serving() -> Any:
    with Sandbox(clock=VirtualClock.frozen()) as sandbox:
        yield sandbox


async def test_the_stream_tells_what_happens(serving: Sandbox) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{serving.origin}/_sandbox/api/stream") as response,
    ):
        assert response.headers["Content-Type"] == "text/event-stream"
        await asyncio.to_thread(Api(serving, serving.api_key).post, "/payouts", PAYOUT)
        change, request = await events(response, 2)
    assert (change["event"], change["data"]["kind"], change["data"]["after"]) == (
        "entry",
        "change",
        "pending",
    )
    assert (request["id"], request["data"]["kind"], request["data"]["status"]) == ("2", "request", 201)


async def test_a_reader_goes_on_where_it_left_off(serving: Sandbox) -> None:
    api = Api(serving, serving.api_key)
    for _ in range(3):
        api.get("/payouts")
    async with aiohttp.ClientSession() as session:
        address = f"{serving.origin}/_sandbox/api/stream"
        async with session.get(address, headers={"Last-Event-ID": "1"}) as response:
            assert [event["id"] for event in await events(response, 2)] == ["2", "3"]
        async with session.get(f"{address}?after=2") as response:
            assert [event["id"] for event in await events(response, 1)] == ["3"]
        # a number of another sandbox: everything there is
        async with session.get(address, headers={"Last-Event-ID": "77"}) as response:
            assert [event["id"] for event in await events(response, 3)] == ["1", "2", "3"]


async def test_a_reader_who_missed_much_is_told_how_much(
    serving: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_stream, "AT_ONCE", 2)
    api = Api(serving, serving.api_key)
    for _ in range(5):
        api.get("/payouts")
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{serving.origin}/_sandbox/api/stream?after=1") as response,
    ):
        gap, *rest = await events(response, 3)
    assert (gap["event"], gap["data"]) == ("gap", {"missed": 2})
    assert [event["id"] for event in rest] == ["4", "5"]


async def test_a_pulse_tells_of_thousands_at_once(serving: Sandbox) -> None:
    for number in range(3_000):
        serving.journal.add(change(number))
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{serving.origin}/_sandbox/api/stream?pulse=1&after=5") as response,
    ):
        (first,) = await events(response, 1)
        serving.journal.add(change(3_001))
        (second,) = await events(response, 1)
    assert (first["event"], first["id"], first["data"]) == ("pulse", "3000", {"last": 3_000})
    assert second["data"] == {"last": 3_001}


async def test_what_falls_due_is_told_while_somebody_watches() -> None:
    with Sandbox(clock=VirtualClock(speed=1000)) as sandbox:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{sandbox.origin}/_sandbox/api/stream") as response,
        ):
            await asyncio.to_thread(Api(sandbox, sandbox.api_key).post, "/payouts", PAYOUT)
            told = await events(response, 4)  # created, the request, processing, completed
    assert [event["data"].get("after") for event in told] == ["pending", None, "processing", "completed"]


async def test_an_idle_stream_says_that_it_is_there_and_ends_with_the_sandbox(
    serving: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_stream, "_TICK", 0.001)
    monkeypatch.setattr(_stream, "_GATHER", 0.001)
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{serving.origin}/_sandbox/api/stream") as response,
    ):
        while b"still here" not in await response.content.readline():
            pass
        await asyncio.to_thread(serving.stop)
        with pytest.raises(aiohttp.ClientPayloadError):
            while await response.content.readline():
                pass
    assert serving.journal._wakers == {}


async def test_a_stream_that_ends_with_its_pause_leaves_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """As some of many do when the server stops: cancelled, and due to go on, in one turn of the loop."""
    monkeypatch.setattr(_stream, "_GATHER", 0.0)
    loop, errors = asyncio.get_running_loop(), list[dict[str, Any]]()
    loop.set_exception_handler(lambda _, context: errors.append(context))
    pause = asyncio.ensure_future(_stream._pause(loop))
    turn = loop.create_future()
    loop.call_soon(turn.set_result, None)
    await turn
    pause.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pause
    assert errors == []


async def test_what_comes_between_two_batches_is_not_waited_for(
    serving: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = _stream._batch

    def slow(sandbox: Sandbox, after: int) -> tuple[bytes, int]:
        found = batch(sandbox, after)
        if sandbox.journal.last < 3:  # something happens while the batch is being written
            Api(sandbox, sandbox.api_key).get("/payouts")
        return found

    monkeypatch.setattr(_stream, "_batch", slow)
    monkeypatch.setattr(_stream, "_TICK", 1_000.0)
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{serving.origin}/_sandbox/api/stream?after=0") as response,
    ):
        assert [event["id"] for event in await events(response, 3)] == ["1", "2", "3"]


def test_the_stream_cannot_be_read_in_process(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="read it over HTTP"):
        sandbox.handle("GET", "/_sandbox/api/stream")
