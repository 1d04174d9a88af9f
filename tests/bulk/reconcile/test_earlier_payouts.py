"""An earlier payout of a retried row lives again: nothing is sent beside it, and the row gets it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_async import AsyncPayments
from payments_async.bulk import AnyBatch, BatchReport, PayoutBatch
from payments_async.bulk._engine.earlier_payouts import EarlierPayouts, SendPermission
from payments_async.bulk._engine.reading import ListReading
from payments_async.bulk._engine.recorder import Recorder
from payments_async.bulk._engine.stopping import Stopping
from payments_async.bulk._protocol.outcomes import ExtraPayout
from payments_async.sandbox import Sandbox
from tests.bulk.reconcile.test_extra_payouts import booked, told
from tests.bulk.reconcile.test_retry_failed import fails
from tests.bulk.reconcile.test_turned_payouts import turn
from tests.support.batches import alter, in_process, item, items, ledger_rows, open_at, runtime_of
from tests.support.fleet import lists, posts
from tests.support.places import EITHER, Place
from tests.support.scripted import altered


def lives(service: Sandbox, place: int = 0, status: str = "completed") -> str:
    """The service shows a payout as arrived, counted from the oldest, that had failed. Gives its id."""
    turn(service, place, status, completed=status == "completed", failed=False)
    return str(service.books.payouts()[place].id)


def earlier_of(batch: PayoutBatch, stopping: Stopping | None = None) -> EarlierPayouts:
    """What looks for a batch's earlier payouts before a later one is sent."""
    ledger, work = batch._ledger, batch._service
    return EarlierPayouts(ledger, work, Recorder(ledger, work.runtime), stopping or Stopping(work.runtime))


async def retried(batch: PayoutBatch, count: int = 2) -> None:
    """The first row's payout fails, and the row is made new again."""
    await batch.load(items(count))
    await batch.run(wait_final=60.0)
    assert (await batch.retry_failed()).rows == (1,)


@EITHER
async def test_a_retried_row_whose_first_payout_arrives_is_not_sent_again(
    service: Sandbox, batch: AnyBatch
) -> None:
    fails(service, 1)
    await retried(batch)
    first, before = lives(service), posts(service)
    report = await batch.run(wait_final=60.0)
    assert (report.counts["arrived"], report.exit_code, posts(service)) == (2, 0, before)
    assert told(report) == booked(service)
    row, _ = await ledger_rows(batch)
    assert (row.known.payout_id, row.known.generation, row.reference[-3:]) == (first, 1, "~g1")
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
    service: Sandbox, batch: AnyBatch
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
    assert certificate.report.sums["XOF"]["moved_in_conflict"] == Decimal("1.01")
    assert told(certificate.report) == booked(service)
    assert not certificate.is_clean


@pytest.mark.parametrize("state", ["rejected", "cancelled", "not_started"])
async def test_a_reading_gives_the_payout_to_a_row_that_is_not_sent(
    service: Sandbox, batch: AnyBatch, state: str
) -> None:
    fails(service, 1)
    await retried(batch)
    if state == "rejected":
        service.on("payouts.create", description="row 1").respond("http:422")
        await batch.run()
    elif state == "cancelled":
        assert (await batch.load([item(2)], accept_edits=True)).cancelled == 1
    assert batch.status().counts[state] == 1
    lives(service)
    certificate = await batch.reconcile()
    assert (certificate.report.counts["arrived"], certificate.is_clean) == (2, True)
    assert told(certificate.report) == booked(service)
    (event,) = certificate.audit.turns
    assert event.endswith(", an earlier payout of it, is completed on the list")


@EITHER
async def test_a_row_in_doubt_beside_a_living_first_payout_is_only_looked_up(
    service: Sandbox, batch: AnyBatch
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
    assert (await ledger_rows(batch))[0].known.payout_id == first
    assert (await batch.reconcile()).is_clean
    assert batch.status().exit_code == 0


async def test_a_row_is_not_paid_again_while_the_list_hides_its_first_payout(
    service: Sandbox, place: Place
) -> None:
    """The list may be late, and that payout may live again."""
    fails(service, 1)
    hidden = list[str]()

    def hide(request: Any, answer: Any) -> Any:
        if request.method != "GET" or not hidden:
            return answer
        page = json.loads(answer.body)
        page["data"] = [each for each in page["data"] if each["id"] not in hidden]
        return altered(answer, body=json.dumps(page).encode())

    async with in_process(service) as client:
        alter(client, hide)
        async with open_at(place, client) as batch:
            await retried(batch)
            before = posts(service)
            hidden.append(service.books.payouts()[0].id)
            assert (await batch.run(patience=1.0)).counts["in_doubt"] == 1
            row, _ = await ledger_rows(batch)
            assert row.failure_code == "an earlier payout of it lives, or is not on the list"
            assert posts(service) == before
            hidden.clear()
            report = await batch.run(wait_final=60.0)
            assert (report.counts["arrived"], posts(service)) == (2, before + 1)
            assert (await batch.reconcile()).is_clean


async def test_a_generation_that_was_never_sent_holds_no_later_one_up(
    service: Sandbox, batch: AnyBatch
) -> None:
    """The first payout fails, arrives before the second is sent, comes back, and the third fails too."""
    rule = service.on("payouts.create", description="row 1")
    rule.outcome("fail:RECIPIENT_ERROR", times=2)
    await retried(batch)
    lives(service)
    assert (await batch.run(wait_final=60.0)).counts["arrived"] == 2
    turn(service, 0, "reversed", completed=True, failed=False)
    assert (await batch.reconcile()).report.counts["returned"] == 1
    assert (await batch.retry_failed(rows=[1])).rows == (1,)
    assert (await batch.run(wait_final=60.0)).counts["returned"] == 1
    assert (await batch.retry_failed(rows=[1])).rows == (1,)
    assert (await batch.run(wait_final=60.0)).counts["arrived"] == 2
    assert [each.reference[-3:] for each in service.books.payouts()[2:]] == ["~g2", "~g3"]
    assert (await batch.reconcile()).is_clean


async def test_a_retried_row_waits_for_a_whole_reading_and_others_do_not(
    service: Sandbox, batch: PayoutBatch
) -> None:
    fails(service, 1)
    await retried(batch)
    before = posts(service)
    service.on("payouts.list").respond("http:503", times=None, after=1)
    report: BatchReport = await batch.run(patience=1.0)
    assert (report.counts["in_doubt"], report.exit_code, posts(service)) == (1, 3, before)
    service.clear_rules()
    assert (await batch.run(wait_final=60.0)).counts["arrived"] == 2
    assert posts(service) == before + 1
    assert (await batch.reconcile()).is_clean


async def test_a_refused_key_while_the_list_is_read_halts_the_run(
    service: Sandbox, batch: PayoutBatch
) -> None:
    fails(service, 1)
    await retried(batch)
    before = posts(service)
    service.on("payouts.list").respond("http:401", times=None, after=1)
    report = await batch.run()
    assert (report.exit_code, posts(service)) == (2, before)
    assert "refused the API key" in str(report.stopped)


@EITHER
async def test_many_retried_rows_share_one_reading(service: Sandbox, batch: AnyBatch) -> None:
    fails(service, *range(1, 31))
    await batch.load(items(40))
    await batch.run(wait_final=60.0)
    assert len((await batch.retry_failed()).rows) == 30
    before = lists(service)
    assert (await batch.run()).counts["created"] == 40
    assert lists(service) - before <= 2  # the greeting, and a page with all 40


@pytest.mark.parametrize("seconds", [0.0, 830.0, 850.0])
async def test_a_reading_counts_for_fifteen_minutes_and_until_the_next_command(
    service: Sandbox, client: AsyncPayments, batch: PayoutBatch, seconds: float
) -> None:
    fails(service, 1, 2)
    await batch.load(items(3))
    await batch.run(wait_final=60.0)
    await batch.retry_failed(rows=[1])
    claim, earlier = await batch._ledger.claim(1), earlier_of(batch)
    before = lists(service)
    for _ in range(2):
        assert await earlier.permission(claim.rows[0], unsent=True) is SendPermission.SEND
    assert lists(service) == before + 1
    runtime_of(client).advance(seconds)
    assert await earlier.permission(claim.rows[0], unsent=True) is SendPermission.SEND
    again = lists(service)
    assert again - before == (2 if seconds > 840.0 else 1)
    await batch.retry_failed(rows=[2])
    read = lists(service)
    assert await earlier.permission(claim.rows[0], unsent=True) is SendPermission.SEND
    assert lists(service) == read + 1


async def test_a_drained_run_sends_no_retried_row(service: Sandbox, batch: PayoutBatch) -> None:
    fails(service, 1)
    await retried(batch)
    claim, stopping = await batch._ledger.claim(1), Stopping(batch._service.runtime)
    stopping.drain("enough")
    earlier = earlier_of(batch, stopping)
    assert await earlier.permission(claim.rows[0], unsent=True) is SendPermission.LOOK_UP


async def test_a_row_that_the_reading_decided_is_not_sent(service: Sandbox, batch: PayoutBatch) -> None:
    """It came to life after the row was claimed: while nothing was sent, the row gets it at once."""
    fails(service, 1)
    await retried(batch)
    claim: Any = await batch._ledger.claim(1)
    first = lives(service)
    earlier = earlier_of(batch)
    (row,) = claim.rows
    assert await earlier.permission(row, unsent=False) is SendPermission.LOOK_UP
    assert await earlier.permission(row, unsent=True) is SendPermission.DECIDED
    assert await earlier.permission(row, unsent=True) is SendPermission.DECIDED
    assert attrs.astuple((await ledger_rows(batch))[0].known)[-1] == first


async def test_a_list_that_could_not_be_read_is_not_asked_for_each_row(
    service: Sandbox, client: AsyncPayments, batch: PayoutBatch
) -> None:
    fails(service, 1)
    await retried(batch)
    claim = await batch._ledger.claim(1)
    service.on("payouts.list").respond("http:400", times=None)
    earlier = earlier_of(batch)
    for _ in range(3):
        assert await earlier.permission(claim.rows[0], unsent=True) is SendPermission.LOOK_UP
    before = lists(service)
    runtime_of(client).advance(61.0)
    service.clear_rules()
    assert await earlier.permission(claim.rows[0], unsent=True) is SendPermission.SEND
    assert lists(service) == before + 1


async def test_a_rows_payouts_may_come_on_different_pages_in_any_order(
    service: Sandbox, client: AsyncPayments, batch: PayoutBatch
) -> None:
    fails(service, 1)
    await retried(batch)
    await batch.run(wait_final=60.0)
    first, second = lives(service), (await ledger_rows(batch))[0].known.payout_id
    shown = {payout.id: payout for payout in await client.payouts.list()}
    for order in ((first, second), (second, first)):
        reading = ListReading(batch._ledger, batch._service)
        for name in order:
            await reading.take([shown[name]])
        (judged,) = await reading.end()
        assert [(word, payout.id) for word, payout in judged.judgement.extra] == [
            (ExtraPayout.IN_EXCESS, first)
        ]
        assert judged.row.known.payout_id == second
