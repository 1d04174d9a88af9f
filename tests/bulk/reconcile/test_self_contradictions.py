"""A service that says two things of one payout at once: nobody is paid again for it, somebody is told."""

from __future__ import annotations

from decimal import Decimal

import pytest

from payments_async.bulk import PayoutBatch
from payments_async.sandbox import Sandbox
from tests.bulk.reconcile.test_turned_payouts import turn
from tests.support.batches import item, items, ledger_rows


@pytest.mark.parametrize(
    ("status", "completed"),
    [("completed", True), ("completed", False), ("processing", False), ("failed", True)],
)
async def test_a_payout_that_arrived_and_is_shown_as_failed_too_is_not_paid_a_second_time(
    service: Sandbox, batch: PayoutBatch, status: str, completed: bool
) -> None:
    await batch.load(items(2))
    await batch.run()
    service.advance(60.0)
    turn(service, 0, status, completed=completed, failed=True)
    certificate = await batch.reconcile()
    assert not certificate.is_clean
    assert certificate.audit.differing == 1
    assert "row 1: " in certificate.audit.findings[0]
    assert "contradicts itself" in certificate.audit.findings[0]
    assert ((await batch.status()).counts["failed"], (await batch.status()).counts["arrived"]) == (0, 1)
    (cause,) = await batch.causes()
    assert (cause.outcome, cause.count, cause.sums) == ("not_final", 1, {"XCD": Decimal("1.01")})
    assert cause.reason in certificate.audit.findings[0]
    assert [row.number for row in cause.rows] == [1]
    for rows in (None, [1]):
        report = await batch.retry_failed(rows=rows)
        assert report.rows == ()
        assert [left.number for left in report.left] == [1] * (rows is not None)
    assert "contradicts itself" in report.left[0].reason
    await batch.run(wait_final=60.0)
    turn(service, 0, "completed", completed=True, failed=False)
    assert (await batch.reconcile()).is_clean
    assert (await batch.status()).counts["arrived"] == 2
    assert await batch.causes() == ()
    assert len(service.books.payouts()) == 2


async def test_a_failed_payout_that_is_shown_as_arrived_too_is_not_final_and_is_left(
    service: Sandbox, batch: PayoutBatch
) -> None:
    service.on("payouts.create").outcome("fail:RECIPIENT_ERROR")
    await batch.load([item(1)])
    assert (await batch.run(wait_final=60.0)).counts["failed"] == 1
    turn(service, 0, "failed", completed=True, failed=True)
    report = await batch.retry_failed()
    assert (report.rows, [left.number for left in report.left]) == ((), [1])
    assert "completed_at" in report.left[0].reason
    assert not (await batch.reconcile()).is_clean
    (row,) = await ledger_rows(batch)
    assert (row.service_status, row.outcome) == ("failed", "not_final")
    assert len(service.books.payouts()) == 1
