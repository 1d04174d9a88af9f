"""What ends a run before the batch is complete: rules, stops, drains, turns; and options that are refused."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async import AsyncPayments, ServerError
from payments_async.bulk import BatchReport, BulkError, LedgerMismatch, PayoutBatch
from payments_async.sandbox import Sandbox
from tests.support.batches import assert_true, in_process, item, items, open_at, run_rows
from tests.support.desks import Pay
from tests.support.sightings import posts


@pytest.mark.parametrize(
    ("rule", "created", "why"),
    [
        ({"max_rows": 7}, 7, "--max-rows"),
        ({"max_amount": "10.04"}, 4, "--max-amount"),
        ({"max_amount": Decimal("820.40")}, 40, None),
        ({"max_rows": 40}, 40, None),
    ],
)
async def test_limits_take_no_row_too_many(
    service: Sandbox, batch: PayoutBatch, rule: dict[str, Any], created: int, why: str | None
) -> None:
    await batch.load(items(40))
    await batch.limit(**rule)
    report = await batch.run(concurrency=3)
    assert report.counts["created"] == posts(service) == created
    assert report.exit_code == (75 if why else 0)
    assert report.resumable == ("after_change" if why else None)
    assert why is None or why in str(report.stopped)
    await batch.limit()
    assert (await batch.run()).exit_code == 0


async def test_a_rate_leaves_the_limit_of_rows_as_it_is(batch: PayoutBatch) -> None:
    await batch.load(items(4))
    await batch.limit(max_rows=2)
    await batch.limit(max_failure_rate=0.5)
    assert (await batch.run()).counts["created"] == 2
    await batch.limit(max_rows=3)
    assert (await batch.run()).counts["created"] == 3
    assert (await batch.facts()).max_failure_rate == 0.5


async def test_too_many_failures_pause_the_batch(service: Sandbox, batch: PayoutBatch) -> None:
    service.on("payouts.create").respond("http:422", times=None)
    await batch.load(items(500))
    await batch.limit(max_failure_rate=0.5)
    report = await batch.run(concurrency=5)
    assert (report.exit_code, report.resumable) == (75, "after_change")
    assert "--max-failure-rate" in str(report.stopped)
    assert posts(service) < 120
    assert "--max-failure-rate" in str((await batch.facts()).paused)


async def test_stop_finishes_what_is_under_way_and_can_be_resumed(
    service: Sandbox, client: AsyncPayments, pay: Pay, tmp_path: Path
) -> None:
    rows = items(600)
    async with open_at(tmp_path / "l", client) as batch:
        await batch.load(rows)
        report = await batch.run(lambda seen: seen.counts["created"] and batch.stop(), concurrency=10)
    assert (report.exit_code, report.stopped) == (75, "stopped")
    assert report.counts["under_way"] == 0
    assert 0 < report.counts["created"] == posts(service) < 600
    assert (await pay(rows)).exit_code == 0
    async with open_at(tmp_path / "l", client) as batch:
        assert_true((await batch.status()), service, rows)


async def test_a_stop_before_a_run_ends_that_run(service: Sandbox, batch: PayoutBatch) -> None:
    """A signal may come while the input is loaded."""
    await batch.load(items(3))
    batch.stop("SIGTERM")
    report = await batch.run()
    assert (report.exit_code, report.stopped, report.next, posts(service)) == (75, "SIGTERM", 1.0, 0)
    assert ((await batch.run()).exit_code, posts(service)) == (0, 3)


async def test_what_hangs_is_cut_when_the_time_to_drain_is_over(
    service: Sandbox, client: AsyncPayments, pay: Pay, tmp_path: Path
) -> None:
    rows = items(3)
    service.on("payouts.create", description="row 2").respond("slow:25s")
    async with open_at(tmp_path / "l", client) as batch:
        await batch.load(rows)
        report = await batch.run(lambda seen: seen.counts["created"] and batch.stop("SIGTERM"), drain=5.0)
    assert (report.exit_code, report.stopped) == (75, "SIGTERM")
    assert report.counts["under_way"] == 1
    report = await pay(rows)
    assert report.exit_code == 0
    assert_true(report, service, rows)


async def test_a_run_with_the_key_of_another_project_sends_nothing(
    service: Sandbox, client: AsyncPayments, tmp_path: Path
) -> None:
    async with open_at(tmp_path / "l", client) as batch:
        await batch.load(items(2))
        await batch.limit(max_rows=1)
        await batch.run()
        await batch.limit()
    stranger = in_process(service, api_key=service.new_key(), max_retries=0)
    async with stranger, open_at(tmp_path / "l", stranger) as batch:
        with pytest.raises(LedgerMismatch, match="key fingerprint"):
            await batch.run()
        service.on("payouts.list").respond("http:500")
        with pytest.raises(ServerError):
            await batch.run()
        service.on("payouts.list").respond("http:401", times=None)
        report = await batch.run()
        assert (report.exit_code, report.resumable) == (2, "after_change")
        assert "refused the API key (HTTP 401)" in str(report.stopped)
    assert posts(service) == 1


async def test_a_run_under_way_is_not_run_twice_at_once(batch: PayoutBatch) -> None:
    await batch.load(items(3))
    first = asyncio.ensure_future(batch.run())
    await asyncio.sleep(0)
    with pytest.raises(Exception, match="being run already"):
        await batch.run()
    assert (await first).exit_code == 0


async def test_what_is_complete_was_not_stopped(batch: PayoutBatch) -> None:
    await batch.load(items(3))
    report = await batch.run(lambda seen: seen.counts["created"] == 3 and batch.stop("SIGTERM"))
    assert (report.exit_code, report.stopped, report.resumable) == (0, None, None)


NAN = float("nan")


@pytest.mark.parametrize(
    "options",
    [
        *({"concurrency": 0}, {"concurrency": True}, {"concurrency": 1.5}),
        *({"max_amount": 0.5}, {"max_amount": "-1"}, {"max_amount": Decimal("NaN")}),
        *({"max_rows": -1}, {"max_rows": 1.5}, {"max_rows": True}),
        *({"max_failure_rate": 5}, {"max_failure_rate": -0.1}, {"max_failure_rate": NAN}),
        *({"patience": -1}, {"patience": NAN}, {"patience": float("inf")}, {"patience": None}),
        *({"drain": -1.0}, {"drain": NAN}, {"drain": "30"}),
        *({"wait_final": 0}, {"wait_final": NAN}, {"for_seconds": 0}),
    ],
)
async def test_options_that_cannot_be_used_are_refused(batch: PayoutBatch, options: dict[str, Any]) -> None:
    await batch.load([item(1)])
    work = batch.limit if "max" in next(iter(options)) else batch.run
    with pytest.raises(BulkError, match="must be"):
        await work(**options)
    assert (await batch.status()).counts["not_started"] == 1
    assert (await batch.run()).exit_code == 0


async def test_turns_pay_all_and_each_says_when_to_come_again(
    service: Sandbox, client: AsyncPayments, tmp_path: Path
) -> None:
    service.on("payouts.create").respond("slow:3s", times=None)
    rows, reports = items(20), list[BatchReport]()
    while not reports or reports[-1].next is not None:
        async with open_at(tmp_path / "l", client) as batch:
            await batch.load(rows)
            reports.append(await batch.run(concurrency=2, for_seconds=10))
    *turns, last = reports
    assert len(turns) >= 2
    assert {(turn.exit_code, turn.is_complete, turn.resumable, turn.next) for turn in turns} == {
        (75, False, "now", 1.0)
    }
    assert [turn.counts["under_way"] for turn in turns] == [0] * len(turns)
    assert (last.exit_code, last.is_complete) == (0, True)
    assert_true(last, service, rows)


async def test_a_turn_comes_again_soon_while_rows_are_due_that_no_process_has(
    service: Sandbox, client: AsyncPayments, tmp_path: Path
) -> None:
    service.on("payouts.create").respond("slow:3s", times=None)
    async with open_at(tmp_path / "l", client) as one, open_at(tmp_path / "l", client) as two:
        await one.load(items(100))
        reports = await asyncio.gather(*(each.run(concurrency=2, for_seconds=10) for each in (one, two)))
        assert reports[0].counts["not_started"] > 20
    assert [report.next for report in reports] == [1.0, 1.0]


async def test_a_batch_that_waits_for_a_person_is_asked_again_after_a_minute(batch: PayoutBatch) -> None:
    await batch.load(items(3))
    await batch.pause()
    report = await batch.run(for_seconds=10)
    assert (report.next, report.resumable) == (60.0, "after_change")
    await batch.resume()
    await batch.limit(max_rows=2)
    assert ((await batch.run(for_seconds=10)).next, (await batch.status()).next) == (60.0, None)
    await batch.limit()
    assert (await batch.run(for_seconds=10)).next is None


async def test_payouts_that_are_followed_are_looked_at_again(service: Sandbox, batch: PayoutBatch) -> None:
    service.on("payouts.create").outcome("hang")
    report = await run_rows(batch, 3, for_seconds=10, wait_final=7200)
    assert (report.exit_code, report.is_complete, report.resumable) == (75, True, "now")
    assert report.next is not None
    assert 1.0 <= report.next <= 60.0
