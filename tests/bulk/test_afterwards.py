"""After the run: payouts are followed, retried and reconciled; batches are forgotten, or discarded unsent."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async import Instrument
from payments_async.bulk import BulkError, InputPaidElsewhere, LedgerError, LedgerMissing
from payments_async.sandbox import Sandbox
from tests.support.batches import item, items, ledger_now, run_rows
from tests.support.desks import Desk
from tests.support.places import EITHER


async def test_a_batch_is_run_followed_retried_and_reconciled(service: Sandbox, batch: Any) -> None:
    service.on("payouts.create", description="row 2").outcome("fail:RECIPIENT_ERROR", times=1)
    report = await run_rows(batch, 3, wait_final=60.0)
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
    await run_rows(batch, 2, wait_final=60.0)
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


@EITHER
async def test_a_batch_that_is_called_off_leaves_room_for_the_next(service: Sandbox, batch: Any) -> None:
    await batch.load(items(2))
    await batch.discard()
    with pytest.raises(LedgerMissing):
        await batch.run()
    assert (await batch.load(items(1))).is_new
    assert (await batch.run()).exit_code == 0
    assert len(service.books.payouts()) == 1


@pytest.mark.parametrize("answer", ["http:422", "lost_request", "http:401"])
async def test_what_was_sent_is_never_discarded(service: Sandbox, batch: Any, answer: str) -> None:
    service.on("payouts.create").respond(answer, times=None)
    await run_rows(batch, 1, patience=1.0)
    await batch.retry_failed(rejected=True)
    with pytest.raises(BulkError, match="the ledger is the record of that"):
        await batch.discard()


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(ledger_now() + seconds, UTC)


@EITHER
async def test_a_settled_batch_keeps_its_line_and_refuses_its_input(
    desk: Desk, client: Any, batch: Any, place: Path | str
) -> None:
    assert (await run_rows(batch, 3, wait_final=60.0)).certificate.is_settled
    with pytest.raises(BulkError, match="before must be aware"):
        await batch.forget(moment(1.0).replace(tzinfo=None))
    assert await batch.forget(moment(-3600.0)) == 0  # not old enough
    assert await batch.forget(moment(1.0), dry_run=True) == 3
    assert (await batch.status()).rows == 3
    assert await batch.forget(moment(1.0)) == 3
    facts = await batch.facts()
    assert (facts.rows, facts.totals, facts.forgotten_at) == (3, {"XCD": Decimal("6.03")}, ledger_now())
    assert facts.certificate["settled"]
    assert await batch.row(1) is None
    with pytest.raises(LedgerError, match="was settled, and its rows were deleted"):
        await batch.load(items(3))
    async with desk.open(place, client, batch_id="another") as other:
        with pytest.raises(InputPaidElsewhere):
            await other.load(items(3))


async def test_what_is_not_settled_is_kept(service: Sandbox, batch: Any) -> None:
    await batch.load(items(2))
    with pytest.raises(BulkError, match="no certificate that says that it is settled"):
        await batch.forget(moment(1.0))
    service.on("payouts.create", description="row 2").outcome("hang")
    await batch.run(wait_final=60.0)
    await batch.reconcile()
    with pytest.raises(BulkError, match="no certificate that says that it is settled"):
        await batch.forget(moment(1.0))
    assert (await batch.status()).rows == 2
