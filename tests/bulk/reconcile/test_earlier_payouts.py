"""An earlier payout of a retried row lives again: nothing is sent beside it, and the row gets it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import PayoutBatch
from payments_async.sandbox import Sandbox
from tests.bulk.reconcile.test_extra_payouts import booked, told
from tests.bulk.reconcile.test_retry_failed import fails
from tests.bulk.reconcile.test_turned_payouts import turn
from tests.support.batches import item, items, ledger_rows, runtime_of
from tests.support.places import EITHER
from tests.support.sightings import lists, posts


def lives(service: Sandbox, place: int = 0, status: str = "completed") -> str:
    """The service shows a payout as arrived, counted from the oldest, that had failed. Gives its id."""
    turn(service, place, status, completed=status == "completed", failed=False)
    return str(service.books.payouts()[place].id)


async def retried(batch: PayoutBatch, count: int = 2) -> None:
    """The first row's payout fails, and the row is made new again."""
    await batch.load(items(count))
    await batch.run(wait_final=60.0)
    assert (await batch.retry_failed()).rows == (1,)


@EITHER
async def test_a_retried_row_whose_first_payout_arrives_is_not_sent_again(
    service: Sandbox, batch: PayoutBatch
) -> None:
    fails(service, 1)
    await retried(batch)
    first, before = lives(service), posts(service)
    report = await batch.run(wait_final=60.0)
    assert (report.counts["arrived"], report.exit_code, posts(service)) == (2, 0, before)
    assert told(report) == booked(service)
    row, _ = await ledger_rows(batch)
    assert (row.payout_id, row.generation, row.reference[-3:]) == (first, 1, "~g1")
    certificate = await batch.reconcile()
    assert (certificate.is_clean, certificate.is_settled) == (True, True)
    assert told(certificate.report) == booked(service)
    # and what the service says of that payout later is the row's
    turn(service, 0, "reversed", completed=True, failed=False)
    assert (await batch.reconcile()).report.counts["returned"] == 1
    assert (await batch.retry_failed(rows=[1])).rows == (1,)
    assert (await batch.run(wait_final=60.0)).counts["arrived"] == 2
    assert (await batch.reconcile()).is_clean


async def test_one_that_has_other_content_is_a_conflict_and_nothing_is_sent(
    service: Sandbox, batch: PayoutBatch
) -> None:
    fails(service, 1)
    await retried(batch)
    assert (await batch.load([item(1, amount=Decimal(5)), item(2)], accept_edits=True)).corrected == 1
    lives(service)
    before = posts(service)
    report = await batch.run(wait_final=60.0)
    assert (report.counts["conflict"], report.exit_code, posts(service)) == (1, 1, before)
    certificate = await batch.reconcile()
    assert certificate.report.counts["moved_in_conflict"] == 1
    assert certificate.report.sums["XCD"]["moved_in_conflict"] == Decimal("1.01")
    assert told(certificate.report) == booked(service)
    assert not certificate.is_clean


@pytest.mark.parametrize("state", ["rejected", "cancelled", "not_started"])
async def test_a_reading_gives_the_payout_to_a_row_that_is_not_sent(
    service: Sandbox, batch: PayoutBatch, state: str
) -> None:
    fails(service, 1)
    await retried(batch)
    if state == "rejected":
        service.on("payouts.create", description="row 1").respond("http:422")
        await batch.run()
    elif state == "cancelled":
        assert (await batch.load([item(2)], accept_edits=True)).cancelled == 1
    assert (await batch.status()).counts[state] == 1
    lives(service)
    certificate = await batch.reconcile()
    assert (certificate.report.counts["arrived"], certificate.is_clean) == (2, True)
    assert told(certificate.report) == booked(service)
    (event,) = certificate.audit.turns
    assert event.endswith(", an earlier payout of it, is completed on the list")


@EITHER
async def test_a_row_in_doubt_beside_a_living_first_payout_is_only_looked_up(
    service: Sandbox, batch: PayoutBatch
) -> None:
    fails(service, 1)
    await retried(batch)
    service.on("payouts.create", description="row 1").respond("lost_request", times=None)
    service.on("payouts.list").respond("http:503", times=None, after=3)
    assert (await batch.run(patience=1.0)).counts["in_doubt"] == 1
    service.clear_rules()
    first, before = lives(service), posts(service)
    report = (await batch.reconcile()).report
    assert (report.counts["in_doubt"], report.counts["in_excess"]) == (1, 1)
    assert told(report) == booked(service)
    report = await batch.run(wait_final=60.0)  # which waits until its own cannot appear any more
    assert (report.counts["arrived"], report.exit_code, posts(service)) == (2, 0, before)
    assert told(report) == booked(service)
    assert (await ledger_rows(batch))[0].payout_id == first
    assert (await batch.reconcile()).is_clean
    assert (await batch.status()).exit_code == 0


async def test_a_retried_row_waits_for_a_whole_reading_and_others_do_not(
    service: Sandbox, batch: PayoutBatch
) -> None:
    fails(service, 1)
    await retried(batch)
    before = posts(service)
    service.on("payouts.list").respond("http:503", times=None)
    report = await batch.run(patience=1.0)
    assert (report.counts["not_started"], report.exit_code, posts(service)) == (1, 75, before)
    service.clear_rules()
    assert (await batch.run(wait_final=60.0)).counts["arrived"] == 2
    assert posts(service) == before + 1
    assert (await batch.reconcile()).is_clean


@EITHER
async def test_many_retried_rows_share_one_reading(service: Sandbox, batch: PayoutBatch) -> None:
    fails(service, *range(1, 31))
    await batch.load(items(40))
    await batch.run(wait_final=60.0)
    assert len((await batch.retry_failed()).rows) == 30
    before = lists(service)
    assert (await batch.run()).counts["created"] == 40
    assert lists(service) - before == 2  # a page with all 40 before, and one for the certificate


@EITHER
@pytest.mark.parametrize(("after", "sent"), [(0.0, 1), (830.0, 1), (901.0, 0)])
async def test_a_reading_lets_a_row_be_sent_again_for_fifteen_minutes(
    service: Sandbox, client: AsyncPayments, batch: PayoutBatch, after: float, sent: int
) -> None:
    fails(service, 1)
    await retried(batch)
    await batch.pause()
    await batch.reconcile()
    await batch.resume()
    runtime_of(client).advance(after)
    before, account = lists(service), batch._service.account
    taken = await batch._ledger.take(9, account, needs_confirmation=False)
    assert (len(taken.rows), lists(service)) == (sent, before)
    assert list(taken.cleared_for.values()) == [pytest.approx(900.0 - after)] * sent


async def test_a_reading_from_before_the_retry_lets_no_row_be_sent_again(
    service: Sandbox, batch: PayoutBatch
) -> None:
    fails(service, 1)
    await retried(batch)
    account = batch._service.account
    assert (await batch._ledger.take(9, account, needs_confirmation=False)).rows == ()
