"""The list says otherwise than the ledger, or two things at once: nobody is paid again, somebody is told."""

from __future__ import annotations

from decimal import Decimal

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import PayoutBatch
from payments_async.sandbox import Sandbox, VirtualClock
from tests.support.batches import alter, item, items, ledger_rows, run_rows
from tests.support.spoiled import repeating, spoiling

BEGAN = VirtualClock.frozen().now()
"""The service's time when a test begins."""
TURNS = {
    "reversed": ("reversed", True, False),
    "failed": ("failed", False, True),
    "cancelled": ("cancelled", False, False),
    "pending": ("pending", False, False),
    "completed with failed_at": ("completed", True, True),
}
"""{turn: the status, whether it has completed_at, whether it has failed_at}."""


def turn(service: Sandbox, place: int, status: str, completed: bool, failed: bool) -> None:
    """The service shows a payout, counted from the oldest, with another status than before."""
    payout = service._core.world.tenants[service.api_key].payouts[place]
    payout.status = status
    payout.completed_at = payout.created_at if completed else None
    payout.failed_at = payout.created_at if failed else None


@pytest.mark.parametrize(
    ("place", "turned"),
    [*(("sqlite", turned) for turned in TURNS), ("postgresql", "reversed")],
    indirect=["place"],
)
async def test_a_status_that_turned_is_recorded_by_the_reading_that_saw_it_and_told_once(
    service: Sandbox, batch: PayoutBatch, turned: str
) -> None:
    assert (await run_rows(batch, 3, wait_final=60.0)).counts["arrived"] == 3
    before = await batch.reconcile()
    assert (before.is_clean, before.is_settled, before.audit.turns) == (True, True, ())
    turn(service, 1, *TURNS[turned])
    certificate = await batch.reconcile()
    (event,) = certificate.audit.turns
    assert event.startswith("row 2: po")
    assert f" had ended as completed, and the list shows {TURNS[turned][0]}" in event
    is_clear = turned != "completed with failed_at"
    again = await batch.reconcile()
    assert again.audit.turns == ()
    for each in (certificate, again):
        assert each.is_clean is each.agrees is is_clear
        assert each.is_settled is (is_clear and turned != "pending")
        assert ["contradicts itself" in finding for finding in each.findings] == [True] * (not is_clear)
    shown = await batch.row(2)
    assert shown is not None
    said = [(each.status, each.contradicts) for each in shown.statuses]
    assert (said[0], said[-2]) == (("pending", False), ("completed", False))
    assert said[-1] == (TURNS[turned][0], not is_clear)
    assert {each.payout_id for each in shown.statuses} == {shown.payout_id}
    times = [each.at for each in shown.statuses]
    assert times == sorted(times)
    assert BEGAN <= (shown.statuses[-2].service_at or 0.0) <= service.clock.now()
    report = await batch.status()
    assert report == certificate.report
    assert report.counts["returned"] == (turned in ("reversed", "failed", "cancelled"))
    assert report.counts["failed"] == 0
    assert report.exit_code == (1 if report.counts["returned"] else 0)
    assert report.counts["not_final"] == (turned in ("pending", "completed with failed_at"))


async def test_a_payout_that_contradicts_itself_is_not_waited_for(
    service: Sandbox, batch: PayoutBatch
) -> None:
    await run_rows(batch, 3, wait_final=60.0)
    turn(service, 1, *TURNS["completed with failed_at"])
    assert not (await batch.reconcile()).is_clean
    asked = len(service.requests)
    report = await batch.run(wait_final=60.0)
    assert (report.counts["not_final"], report.stopped, report.exit_code) == (1, None, 1)
    assert len(service.requests) == asked


async def test_of_many_turns_the_first_hundred_are_told(service: Sandbox, batch: PayoutBatch) -> None:
    await run_rows(batch, 101, wait_final=60.0)
    for number in range(101):
        turn(service, number, *TURNS["reversed"])
    certificate = await batch.reconcile()
    assert (len(certificate.audit.turns), certificate.report.counts["returned"]) == (100, 101)


async def test_a_row_is_not_retried_while_an_earlier_payout_of_it_has_not_failed(
    service: Sandbox, batch: PayoutBatch
) -> None:
    service.on("payouts.create", description="row 1").outcome("fail:RECIPIENT_ERROR", times=2)
    await run_rows(batch, 2, wait_final=60.0)
    first = next(entry for entry in service.books.payouts() if entry.status == "failed")
    await batch.retry_failed()
    await batch.run(wait_final=60.0)
    place_of_first = [entry.id for entry in service.books.payouts()].index(first.id)
    turn(service, place_of_first, "processing", completed=False, failed=False)
    for rows in (None, [1]):
        report = await batch.retry_failed(rows=rows)
        assert report.rows == ()
        (left,) = report.left
        said = f"the list shows {first.id}, XCD 1.01, processing, an earlier payout of it"
        assert left.reason == f"{said} that has not failed"
    (left,) = (await batch.retry_failed(rows=[2])).left
    assert (left.number, left.reason) == (2, "its payout is completed")
    turn(service, place_of_first, "failed", completed=False, failed=True)
    assert (await batch.retry_failed()).rows == (1,)


async def test_a_row_in_conflict_whose_payout_is_not_listed_is_named(
    service: Sandbox, client: AsyncPayments, batch: PayoutBatch
) -> None:
    service.on("payouts.create", description="row 1").respond("http:409", times=None)
    await batch.load(items(2))
    other = (await client.payouts.create(**_stranger())).id
    payout = service._core.world.tenants[service.api_key].payouts_by_id[other]
    payout.reference = (await ledger_rows(batch))[0].reference
    report = await batch.run(wait_final=60.0)
    assert report.counts["conflict"] == 1
    payout.reference = None
    assert (await batch.reconcile()).findings == ("row 1: in conflict, and its payout is not in the list",)


def _stranger() -> dict[str, object]:
    request = item(9)[1]
    return {"amount": 1, "currency": "XCD", "method": request.method, "instrument": request.instrument}


@pytest.mark.parametrize("rows", [None, [1]])
@pytest.mark.parametrize("unread", [False, True])
async def test_a_row_is_not_retried_while_the_list_does_not_show_an_earlier_payout_of_it(
    service: Sandbox, batch: PayoutBatch, rows: list[int] | None, unread: bool
) -> None:
    """That payout may have arrived: only the list can say so."""
    service.on("payouts.create", description="row 1").outcome("fail:RECIPIENT_ERROR", times=2)
    await run_rows(batch, 1, wait_final=60.0)
    first = (await ledger_rows(batch))[0].reference
    await batch.retry_failed()
    await batch.run(wait_final=60.0)
    payouts = service._core.world.tenants[service.api_key].payouts
    if unread:
        alter(batch._service._client, spoiling(first))
    else:
        payouts.pop(0)
    report = await batch.retry_failed(rows=rows)
    assert report.rows == ()
    (left,) = report.left
    why = ", which may be one of the 1 that could not be read" if unread else ""
    assert left.reason == f"the list does not show an earlier payout of it{why}"


@pytest.mark.parametrize("number", [pytest.param(7, id="one page"), pytest.param(150, id="two pages")])
async def test_a_payout_that_a_reading_shows_in_two_statuses_makes_no_clean_certificate(
    batch: PayoutBatch, number: int
) -> None:
    await run_rows(batch, 150, wait_final=60.0)
    alter(batch._service._client, repeating(number, later=number == 150, status="reversed"))
    (finding,) = (await batch.reconcile()).findings
    assert finding.startswith(f"row {number}: ")
    assert finding.endswith(" is completed and reversed on the list")


@pytest.mark.parametrize("status", ["failed", "cancelled", "reversed"])
async def test_what_had_arrived_and_was_returned_is_paid_again_only_by_its_row_number(
    service: Sandbox, batch: PayoutBatch, status: str
) -> None:
    await run_rows(batch, 2, wait_final=60.0)
    turn(service, 0, *TURNS[status])
    for dry_run in (True, False):
        report = await batch.retry_failed(dry_run=dry_run)
        assert report.rows == ()
        (left,) = report.left
        assert left.number == 1
    assert left.reason == (
        "its payout had arrived and was returned: name the row to pay its XCD 1.01 once more"
    )
    assert (await batch.status()).counts["returned"] == 1
    assert (await batch.retry_failed(rows=[1])).rows == (1,)
    assert (await batch.run(wait_final=60.0)).counts["arrived"] == 2
    assert len(service.books.payouts()) == 3


async def test_a_turn_that_only_the_retry_itself_has_seen_is_no_reason_to_pay_again(
    service: Sandbox, batch: PayoutBatch
) -> None:
    """One page of one reading may be wrong."""
    await run_rows(batch, 1, wait_final=60.0)
    turn(service, 0, *TURNS["failed"])
    report = await batch.retry_failed(rows=[1])
    assert report.rows == ()
    assert "this reading alone says that it has failed" in report.left[0].reason
    turn(service, 0, *TURNS["failed"])
    assert (await batch.retry_failed(rows=[1])).rows == (1,)


@pytest.mark.parametrize(
    ("status", "completed"),
    [("completed", True), ("completed", False), ("processing", False), ("failed", True)],
)
async def test_a_payout_that_arrived_and_is_shown_as_failed_too_is_not_paid_a_second_time(
    service: Sandbox, batch: PayoutBatch, status: str, completed: bool
) -> None:
    await run_rows(batch, 2)
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
    assert (await run_rows(batch, [item(1)], wait_final=60.0)).counts["failed"] == 1
    turn(service, 0, "failed", completed=True, failed=True)
    report = await batch.retry_failed()
    assert (report.rows, [left.number for left in report.left]) == ((), [1])
    assert "completed_at" in report.left[0].reason
    assert not (await batch.reconcile()).is_clean
    (row,) = await ledger_rows(batch)
    assert (row.service_status, row.outcome) == ("failed", "not_final")
    assert len(service.books.payouts()) == 1
