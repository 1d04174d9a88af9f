"""A run that its guard or the limit store holds back goes on, or stops and can be resumed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from payments_async import AsyncPayments, ConfigurationError, Guard
from payments_async.sandbox import Sandbox
from tests.support.batches import assert_true, in_process, items, open_at, paid, runtime_of
from tests.support.limit_stores import ADDRESS, StoreServer, share_on_one_loop
from tests.support.places import EITHER


def guard_of(most: str, window: int = 3600) -> Guard:
    return Guard(most={"XCD": most}, sums=[("XCD", most, window)], decimals=False, budgets="process")


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


async def test_a_run_whose_store_refuses_it_stops(service: Sandbox, tmp_path: Path, start: Start) -> None:
    client, server = start()
    async with client:
        server.fault = ConfigurationError("the limit store refuses the password")
        report = await paid(tmp_path / "l", client, items(5))
    assert (report.exit_code, report.resumable) == (2, "after_change")
    assert report.stopped == "payouts.create: the limit store refuses the password"
    assert not service.requests
