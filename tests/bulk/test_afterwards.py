"""After the run, through both surfaces: payouts are followed, retried and reconciled."""

from __future__ import annotations

from typing import Any

from payments_async import Instrument
from payments_async.sandbox import Sandbox
from tests.support.batches import item, items
from tests.support.desks import Desk


async def test_a_batch_is_run_followed_retried_and_reconciled(service: Sandbox, batch: Any) -> None:
    service.on("payouts.create", description="row 2").outcome("fail:RECIPIENT_ERROR", times=1)
    await batch.load(items(3))
    report = await batch.run(wait_final=60.0)
    assert (report.exit_code, report.counts["failed"]) == (1, 1)
    would = await batch.retry_failed(rows=[2], dry_run=True)
    assert (would.rows, (await batch.status()).counts["not_started"]) == ((2,), 0)
    assert (await batch.retry_failed()).rows == (2,)
    assert (await batch.status()).exit_code == 75
    await batch.run()
    pages: list[int] = []
    report = await batch.run(lambda progress: pages.append(progress.rows), wait_final=60.0)
    assert (report.exit_code, report.counts["arrived"]) == (0, 3)
    assert pages
    assert (await batch.reconcile()).is_clean


async def test_a_retried_row_can_be_corrected_before_it_is_paid(
    desk: Desk, service: Sandbox, batch: Any
) -> None:
    service.on("payouts.create", description="row 2").outcome("fail:RECIPIENT_ERROR", times=1)
    right = Instrument.phone("+2290190112299", "BJ")
    await batch.load(items(2))
    await batch.run(wait_final=60.0)
    await batch.retry_failed()
    await batch.load([item(1), item(2, instrument=right)], accept_edits=True)
    assert (await batch.run(wait_final=60.0)).exit_code == 0
    assert (await batch.reconcile()).is_clean
    paid = (await desk.rows(batch))[1]
    assert paid.reference.endswith("~g1")
    shown = await batch.row(paid.reference.removesuffix("~g1"))
    assert (shown.number, shown.reference) == (2, paid.reference), "a row is found by its first reference"
    assert b"+2290190112299" in paid.body
    assert [entry.status for entry in service.books.payouts()].count("completed") == 2
