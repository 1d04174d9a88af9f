"""A run that its guard or the limit store holds back goes on, or stops and can be resumed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async import AsyncPayments, ConfigurationError, Guard, LimitStoreUnavailable
from payments_async._guard.account import GuardAccount
from payments_async.sandbox import Sandbox
from tests.support.batches import Between, alter, assert_true, in_process, items, open_at, paid, runtime_of
from tests.support.limit_stores import ADDRESS, StoreServer, share_on_one_loop
from tests.support.places import EITHER


def guard_of(most: str, window: int = 3600) -> Guard:
    return Guard(most={"XCD": most}, sums=[("XCD", most, window)], decimals=False, budgets="process")


def key_guard(client: AsyncPayments) -> Any:
    return client._internal.guard


def another_process(service: Sandbox, guard: Guard, before: AsyncPayments) -> AsyncPayments:
    """A client that knows of no earlier call, and shares the state of the sums."""
    client = in_process(service, 1, guard=guard)
    runtime_of(client).advance(runtime_of(before).monotonic())
    key_guard(client).sums.state = key_guard(before).sums.state
    return client


def held(client: AsyncPayments) -> Decimal:
    """What is reserved now, and has no outcome."""
    (figures,) = key_guard(client).sums.figures()
    return Decimal(figures.held)


async def test_a_run_waits_for_room_and_goes_on(service: Sandbox, place: Path | str) -> None:
    seen: list[Any] = []
    async with in_process(service, guard=guard_of("30", 600)) as client:
        report = await paid(place, client, items(9), on_progress=seen.append)
        passed = runtime_of(client).monotonic()
    assert report.exit_code == 0
    assert_true(report, service, items(9))
    assert 600 <= passed < 3600
    waits = [each.activity for each in seen if each.activity and each.activity.why]
    assert waits[0].doing == "waiting"
    assert re.fullmatch(
        r"row [89]: payouts.create: the guard refused it, and nothing was sent \(rule sums\): XCD [89].01 is "
        r"more than is left of the sum of 600 s, 30: 1.93 are left now; there may be room at 2026-01-01 "
        r"00:10:.. UTC",
        waits[0].why,
    )


@EITHER
async def test_a_run_without_room_in_time_stops_and_is_resumed(service: Sandbox, place: Path | str) -> None:
    async with in_process(service, guard=guard_of("30")) as client:
        report = await paid(place, client, items(9), patience=600.0)
        assert (report.exit_code, report.resumable) == (75, "now")
        assert report.counts["not_started"] == 2
        assert report.stopped is not None
        assert report.stopped.endswith("1.93 are left now; there may be room at 2026-01-01 01:00:00 UTC")
        assert len(service.books.payouts()) == 7
        runtime_of(client).advance(3600.0)
        report = await paid(place, client, items(9))
    assert report.exit_code == 0
    assert_true(report, service, items(9))


@EITHER
async def test_a_row_that_the_guard_forbids_meanwhile_ends_the_run(
    service: Sandbox, place: Path | str
) -> None:
    async with open_at(place, in_process(service)) as batch:
        await batch.load(items(5))
    guard = Guard(most={"XCD": 4}, decimals=False)
    async with in_process(service, 1, guard=guard) as client, open_at(place, client) as batch:
        report = await batch.run(patience=0.0)
        assert (report.exit_code, report.resumable, report.counts["not_started"]) == (75, "after_change", 2)
    assert report.stopped is not None
    assert report.stopped.endswith(
        "row 4: payouts.create: the guard refused it, and nothing was sent (rule most): "
        "XCD 4.01 is above the most of one payout, 4"
    )


async def test_a_run_whose_sums_cannot_be_read_stops(
    service: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise LimitStoreUnavailable("the guard's sums cannot be read: gone", retry_after=5.0)

    async with in_process(service, guard=guard_of("30")) as client:
        with monkeypatch.context() as patch:
            patch.setattr(GuardAccount, "reserve", away)
            report = await paid(tmp_path / "l", client, items(3))
        assert (report.exit_code, report.resumable) == (75, "now")
        assert report.stopped == "the guard's sums cannot be read: gone"
        assert not service.books.payouts()
        assert (await paid(tmp_path / "l", client, items(3))).exit_code == 0


class Dying(Between):
    """A transport at whose first post the run ends, before it is sent."""

    run: asyncio.Task[Any]

    async def send(self, request: Any) -> Any:
        if request.method == "POST":
            self.remove()
            self.run.cancel()
            await asyncio.get_running_loop().create_future()
        return await super().send(request)


async def test_a_run_that_died_after_its_reservation_goes_on_within_what_it_had_reserved(
    service: Sandbox, tmp_path: Path
) -> None:
    guard = guard_of("3.02")
    async with in_process(service, guard=guard) as client:
        dying = Dying(client)
        dying.run = asyncio.ensure_future(paid(tmp_path / "l", client, items(2), concurrency=1))
        with pytest.raises(asyncio.CancelledError):
            await dying.run
        assert held(client) == 0  # the first was surely not sent
        async with another_process(service, guard, client) as second:
            report = await paid(tmp_path / "l", second, items(2))
            assert held(second) == 0
    assert report.exit_code == 0
    assert_true(report, service, items(2))


async def test_a_row_in_doubt_is_posted_again_within_what_it_had_reserved(
    service: Sandbox, tmp_path: Path
) -> None:
    async with in_process(service, guard=guard_of("1.50", 36_000)) as client:
        service.on("payouts.create").respond("lost_response")
        report = await paid(tmp_path / "l", client, items(1))
    assert (report.exit_code, report.counts["created"], len(service.books.payouts())) == (0, 1, 1)
    assert [each.method for each in service.requests] == ["POST", "POST", "GET"]


Start = Callable[[], tuple[AsyncPayments, StoreServer]]
GONE = "the limit store at 127.0.0.1:9 cannot be reached (refused)"


@pytest.fixture
def start(service: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Makes a client, with or without other processes, and its store."""

    def make() -> tuple[AsyncPayments, StoreServer]:
        client = in_process(service, limit_store=ADDRESS, expected_workers=1)
        server = StoreServer(runtime_of(client))
        share_on_one_loop(monkeypatch, server)
        return client, server

    return make


async def test_a_run_without_its_store_waits_a_minute_and_stops(
    service: Sandbox, tmp_path: Path, start: Start
) -> None:
    client, server = start()
    async with client:
        server.down = "refused"
        report = await paid(tmp_path / "l", client, items(5))
        assert (report.exit_code, report.resumable) == (75, "now")
        assert report.stopped == f"payouts.create: {GONE}; the call needs it, and this try was not sent"
        assert runtime_of(client).monotonic() >= 60.0
        assert not service.books.payouts()
        server.down = None
        report = await paid(tmp_path / "l", client, items(5))
    assert_true(report, service, items(5))


async def test_a_run_that_loses_its_store_sends_no_further_row(
    service: Sandbox, tmp_path: Path, start: Start
) -> None:
    client, server = start()
    rows = items(400)

    def cut(request: Any, answer: Any) -> Any:
        if len(service.books.payouts()) == 30:
            server.down = "refused"
        return answer

    async with client:
        alter(client, cut)
        report = await paid(tmp_path / "l", client, rows, concurrency=8)
        assert (report.exit_code, report.resumable) == (75, "now")
        assert report.stopped is not None
        assert report.stopped.startswith(f"payouts.create: {GONE}")
        sent = report.counts["created"]
        assert 30 <= sent == len(service.books.payouts()) < 400
        assert report.counts["in_doubt"] == 0
        server.down = None
        report = await paid(tmp_path / "l", client, rows)
    assert report.exit_code == 0
    assert_true(report, service, rows)


async def test_a_run_whose_store_refuses_it_stops(service: Sandbox, tmp_path: Path, start: Start) -> None:
    client, server = start()
    async with client:
        server.fault = ConfigurationError("the limit store refuses the password")
        report = await paid(tmp_path / "l", client, items(5))
    assert (report.exit_code, report.resumable) == (2, "after_change")
    assert report.stopped == "payouts.create: the limit store refuses the password"
    assert not service.requests
