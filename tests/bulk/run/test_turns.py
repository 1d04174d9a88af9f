"""Turns of a run, as a task of an engine takes them: what is left, and when to come again."""

from __future__ import annotations

import asyncio
from pathlib import Path

from payments_async import AsyncPayments
from payments_async.bulk import BatchReport, PayoutBatch
from payments_async.sandbox import Sandbox
from tests.support.batches import assert_true, items, open_at


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
    await batch.load(items(3))
    report = await batch.run(for_seconds=10, wait_final=7200)
    assert (report.exit_code, report.is_complete, report.resumable) == (75, True, "now")
    assert report.next is not None
    assert 1.0 <= report.next <= 60.0
