"""Payouts beside those of the rows: earlier ones that live again, and those of no row, by the books."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from payments_async import AsyncPayments, Instrument
from payments_async.bulk import BatchReport, PayoutBatch
from payments_async.sandbox import Sandbox
from tests.bulk.reconcile.test_retry_failed import fails
from tests.bulk.reconcile.test_turned_payouts import turn
from tests.support.batches import in_process, item, items, ledger_rows, open_at, run_rows, runtime_of
from tests.support.places import EITHER, Place
from tests.support.sightings import lists, posts

MOVES = ("not_final", "arrived", "moved_in_conflict", "in_excess")


def booked(service: Sandbox) -> Counter[str]:
    """What the service's books show as arrived or on its way, in hundredths: {currency: sum}."""
    found = Counter[str]()
    for entry in service.books.payouts():
        if entry.status not in ("failed", "cancelled", "reversed"):
            found[entry.currency] += int(entry.amount * 100)
    return found


def told(report: BatchReport) -> Counter[str]:
    return Counter({code: int(100 * sum(sums[word] for word in MOVES)) for code, sums in report.sums.items()})


def extra(report: BatchReport) -> tuple[int, int]:
    """How many payouts moved in conflict, and how many are in excess."""
    return report.counts["moved_in_conflict"], report.counts["in_excess"]


async def lives_beside_its_successor(service: Sandbox, batch: PayoutBatch) -> None:
    """The first row's payout has failed, the row is paid anew, and then the first one arrives."""
    fails(service, 1)
    await run_rows(batch, 2, wait_final=60.0)
    await batch.retry_failed()
    await batch.run(wait_final=60.0)
    turn(service, 0, "completed", completed=True, failed=False)


@EITHER
async def test_a_first_payout_that_arrives_beside_its_successor_is_in_excess_until_it_is_returned(
    service: Sandbox, place: Place
) -> None:
    async with in_process(service) as client, open_at(place, client) as batch:
        await lives_beside_its_successor(service, batch)
        certificate = await batch.reconcile()
        assert extra(certificate.report) == (0, 1)
        assert certificate.report.sums["XCD"]["in_excess"] == Decimal("1.01")
        assert told(certificate.report) == booked(service)
        assert (certificate.is_clean, certificate.report.exit_code) == (False, 1)
    async with in_process(service) as client, open_at(place, client) as batch:
        assert extra(await batch.status()) == (0, 1)
        assert (await batch.load(items(2))).is_new is False
        assert (await batch.status()).exit_code == 1
        turn(service, 0, "reversed", completed=True, failed=False)
        assert (await batch.reconcile()).is_clean
        assert extra(await batch.status()) == (0, 0)
        assert (await batch.status()).exit_code == 0


@EITHER
@pytest.mark.parametrize("has_proof", [True, False])
async def test_a_second_payout_with_the_rows_proof_is_in_excess_in_its_own_currency(
    service: Sandbox, client: AsyncPayments, batch: PayoutBatch, has_proof: bool
) -> None:
    """Without it, it is a stranger's."""
    await run_rows(batch, 2)
    wallet = Instrument.phone("+2290190112233", "BJ")
    twin = await client.payouts.create(amount="7.25", currency="GHS", method="mtn_bj", instrument=wallet)
    tenant = service._core.world.tenants[service.api_key]
    payout, own = tenant.payouts_by_id[str(twin.id)], (await ledger_rows(batch))[0]
    payout.reference = own.reference
    metadata = json.loads(own.body)["metadata"] if has_proof else {}
    payout.body = json.dumps({**json.loads(payout.body), "metadata": metadata}).encode()
    report = (await batch.reconcile()).report
    assert extra(report) == (0, int(has_proof))
    if has_proof:
        assert report.sums["GHS"] == {**dict.fromkeys(report.sums["XCD"], 0), "in_excess": Decimal("7.25")}
        assert told(report) == booked(service)


@pytest.mark.parametrize("status", ["completed", "failed"])
async def test_a_row_in_conflict_is_named_and_what_it_moved_is_counted_as_the_service_shows_it(
    service: Sandbox, batch: PayoutBatch, status: str
) -> None:
    """A service that rounds."""
    await batch.load([item(1, amount=Decimal("10.25")), item(2)])
    lost = service.on("payouts.create", description="row 1")
    lost.respond("lost_response").respond("http:409", times=None, after=1)
    service.on("payouts.list").respond("http:503", times=None)
    assert (await batch.run(patience=1.0)).counts["in_doubt"] == 1
    payouts = service._core.world.tenants[service.api_key].payouts
    (wrong,) = (each for each in payouts if each.amount == Decimal("10.25"))
    wrong.amount = Decimal("10.3")
    service.clear_rules()
    service.on("payouts.create", description="row 1").respond("http:409", times=None)
    report = await batch.run(wait_final=60.0)
    assert (report.counts["conflict"], report.exit_code) == (1, 1)
    turn(service, payouts.index(wrong), status, completed=status == "completed", failed=status == "failed")
    for certificate in (await batch.reconcile(), await batch.reconcile()):
        assert extra(certificate.report) == (int(status == "completed"), 0)
        assert told(certificate.report) == booked(service)
        (finding,) = certificate.findings
        assert finding == f"row 1: in conflict, and the list shows {wrong.id}, XCD 10.3, {status}"


async def test_the_payout_of_a_row_that_was_rejected_is_the_rows_after_all(
    service: Sandbox, batch: PayoutBatch
) -> None:
    service.on("payouts.create", description="row 1").respond("http:422")
    assert (await run_rows(batch, 2)).counts["rejected"] == 1
    row, _ = await ledger_rows(batch)
    binding = batch._ledger.known.binding
    # as if the refused request had been carried out all the same
    await batch._service.send(row, binding, 60.0, lambda: True)
    report = (await batch.reconcile()).report
    assert (report.counts["created"], report.counts["rejected"], extra(report)) == (2, 0, (0, 0))
    assert told(report) == booked(service)


async def test_a_payout_of_the_batch_whose_row_is_gone_is_found_by_its_proof(
    service: Sandbox, client: AsyncPayments, place: Place, tmp_path: Path
) -> None:
    """The ledger was lost, and then a row was taken out of the file."""
    fails(service, 3)
    async with PayoutBatch.open(tmp_path / "lost", client) as batch:
        await batch.load(items(3), batch_id="batch")
        await batch.run(wait_final=60.0)
    async with open_at(place, client) as batch:
        await batch.load(items(1), batch_id="batch")
        await batch.run(wait_final=60.0)
        certificate = await batch.reconcile()
        assert extra(certificate.report) == (0, 1)
        assert told(certificate.report) == booked(service)
        second = service.books.payouts()[1].id
        said = "which has this batch's proof, and a reference that no row has"
        assert certificate.findings == (f"the list shows {second}, XCD 2.01, completed, {said}",)


def lives(service: Sandbox, place: int = 0, status: str = "completed") -> str:
    """The service shows a payout as arrived, counted from the oldest, that had failed. Gives its id."""
    turn(service, place, status, completed=status == "completed", failed=False)
    return str(service.books.payouts()[place].id)


async def retried(batch: PayoutBatch, count: int = 2) -> None:
    """The first row's payout fails, and the row is made new again."""
    await run_rows(batch, count, wait_final=60.0)
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


@EITHER
async def test_many_retried_rows_share_one_reading(service: Sandbox, batch: PayoutBatch) -> None:
    fails(service, *range(1, 31))
    await run_rows(batch, 40, wait_final=60.0)
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
