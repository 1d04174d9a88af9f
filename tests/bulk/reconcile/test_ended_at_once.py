"""Payouts that are over, without having arrived, when the engine first hears of them: it keeps why."""

from __future__ import annotations

import pytest

from payments_async.bulk import PayoutBatch
from payments_async.sandbox import Sandbox
from tests.support.batches import items, ledger_rows


@pytest.mark.parametrize("answered", [True, False])
async def test_why_a_payout_failed_is_recorded_with_its_creation(
    service: Sandbox, batch: PayoutBatch, answered: bool
) -> None:
    if not answered:  # as often as it is posted: the list then shows what became of it
        service.on("payouts.create", description="row 1").respond("lost_response", times=8)
    service.on("payouts.create", description="row 1").outcome("fail:RECIPIENT_ERROR immediate")
    await batch.load(items(2))
    report = await batch.run()
    row, _ = await ledger_rows(batch)
    assert (row.service_status, row.outcome) == ("failed", "failed")
    assert row.failure_code == "RECIPIENT_ERROR"
    assert report.counts["failed"] == 1
