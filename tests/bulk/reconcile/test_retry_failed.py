"""Payouts that have finally failed, paid again: only those, only once each, and with all else still true."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import BulkError, LedgerMismatch, PayoutBatch, RowState
from payments_async.errors import PaymentsError
from payments_async.sandbox import Sandbox
from tests.bulk.reconcile.test_turned_payouts import turn
from tests.support.batches import (
    ReadingLost,
    ReadingStore,
    in_process,
    item,
    ledger_rows,
    run_rows,
    runtime_of,
)
from tests.support.desks import Desk
from tests.support.places import EITHER


def fails(service: Sandbox, *numbers: int, times: int | None = 1) -> None:
    for number in numbers:
        rule = service.on("payouts.create", description=f"row {number}")
        rule.outcome("fail:RECIPIENT_ERROR", times=times)


async def test_a_reason_has_no_key_that_could_be_an_account(service: Sandbox, batch: PayoutBatch) -> None:
    fails(service, 1, 2)
    rows = [("+2290190000001", item(1)[1]), ("emp-2", item(2)[1])]
    await run_rows(batch, rows, wait_final=60.0)
    found = await batch.retry_failed(dry_run=True)
    assert found.reasons == {1: "XCD 1.01: RECIPIENT_ERROR", 2: "emp-2, XCD 2.01: RECIPIENT_ERROR"}


async def test_rejected_rows_are_made_new_only_for_a_key_of_their_project(
    service: Sandbox, batch: PayoutBatch, desk: Desk, tmp_path: Path
) -> None:
    service.on("payouts.create", description="row 2").respond("http:422", times=None)
    await run_rows(batch, 2)
    async with (
        desk.client(service, api_key=service.new_key()) as stranger,
        desk.open(tmp_path / "l", stranger) as theirs,
    ):
        with pytest.raises(LedgerMismatch, match="of the same project"):
            await theirs.retry_failed(rejected=True)
    assert (await batch.status()).counts["rejected"] == 1


@pytest.mark.parametrize("dry_run", [True, False])
async def test_each_row_is_counted_once_though_the_reading_is_lost_between_them(
    service: Sandbox, batch: PayoutBatch, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    fails(service, 1, 2)
    await run_rows(batch, 3, wait_final=60.0)
    make_new, asked = ReadingStore.make_new, list[int]()

    async def losing(store: ReadingStore, ids: Any, decide: Any, *, dry_run: bool) -> Any:
        asked.extend(ids)
        if len(asked) == 2:
            raise ReadingLost
        return await make_new(store, ids, decide, dry_run=dry_run)

    monkeypatch.setattr(ReadingStore, "make_new", losing)
    monkeypatch.setattr("payments_async.bulk._run.retry._GROUP", 1)
    report = await batch.retry_failed(dry_run=dry_run)
    assert (report.rows, report.totals, report.left) == ((1, 2), {"XCD": Decimal("3.02")}, ())
    assert asked == ([1, 2, 1, 2] if dry_run else [1, 2, 2])


@EITHER
async def test_a_failed_payout_is_paid_anew_twice_and_everything_stays_true(
    service: Sandbox, batch: PayoutBatch
) -> None:
    fails(service, 2, times=2)
    rows = [item(1), item(2, reference="salary-2", metadata={"team": "north"}), item(3)]
    await batch.load(rows)
    for generation in (1, 2):
        assert (await batch.run(wait_final=60.0)).counts["failed"] == 1
        report = await batch.retry_failed()
        assert (report.rows, report.left, report.totals) == ((2,), (), {"XCD": Decimal("2.01")})
        row = (await ledger_rows(batch))[1]
        assert (row.state, row.reference) == (RowState.NEW, f"salary-2~g{generation}")
        assert (row.service_status, row.is_final, row.failure_code) == (None, False, None)
        assert (await batch.status()).counts["failed"] == 0
        between = await batch.reconcile()
        assert between.audit.findings == ()
    final = await batch.run(wait_final=60.0)
    assert (final.exit_code, final.counts["arrived"]) == (0, 3)
    assert (await batch.reconcile()).is_clean
    shown = await batch.row("salary-2")  # a row is found by its first reference
    assert shown is not None
    assert (shown.number, shown.reference) == (2, "salary-2~g2")
    assert (await batch.load(rows)).is_new is False
    entries = [entry for entry in service.books.payouts() if "salary-2" in str(entry.reference)]
    assert [(entry.reference, entry.status) for entry in entries] == [
        ("salary-2", "failed"),
        ("salary-2~g1", "failed"),
        ("salary-2~g2", "completed"),
    ]
    assert len(service.books.payouts()) == 5


async def test_a_reference_that_leaves_no_room_for_a_generation_is_left(
    service: Sandbox, batch: PayoutBatch
) -> None:
    fails(service, 1)
    await run_rows(batch, [item(1, reference="r" * 191)], wait_final=60.0)
    report = await batch.retry_failed()
    assert report.rows == ()
    assert "191 are allowed" in str(report.left)


async def test_a_payout_that_completes_between_listing_and_retrying_is_not_paid_anew(
    service: Sandbox, batch: PayoutBatch
) -> None:
    fails(service, 1, 2, 3)
    assert (await run_rows(batch, 3, wait_final=60.0)).counts["failed"] == 3
    for named in ((), (3,)):
        assert (await batch.retry_failed(rows=named, dry_run=True)).rows == named
    turn(service, 0, "completed", completed=True, failed=False)
    turn(service, 1, "processing", completed=False, failed=False)
    report = await batch.retry_failed()
    assert report.rows == (3,)
    assert [(left.number, left.reason) for left in report.left] == [
        (1, "its payout is completed"),
        (2, "its payout is processing"),
    ]
    await batch.run(wait_final=60.0)
    assert len(service.books.payouts()) == 4


async def test_rows_that_cannot_have_failed_are_refused_before_anything_is_changed(
    service: Sandbox, batch: PayoutBatch
) -> None:
    fails(service, 1)
    service.on("payouts.create", description="row 2").respond("http:409", times=None)
    await run_rows(batch, 2, patience=1.0)
    service.advance(60.0)
    asked = len(service.requests)
    for rows, why in (([1, 2], "row 2: in doubt"), ([1, 99], "row 99 is not in the batch")):
        with pytest.raises(BulkError, match=why):
            await batch.retry_failed(rows=rows)
    assert len(service.requests) == asked
    assert (await batch.retry_failed()).rows == (1,)
    assert [row.state for row in await ledger_rows(batch)] == [RowState.NEW, RowState.IN_DOUBT]


async def test_a_list_that_fails_midway_proves_of_no_row_that_all_its_payouts_have_failed(
    service: Sandbox, tmp_path: Path
) -> None:
    fails(service, 1, 150)
    client = in_process(service, max_retries=0)
    async with client, PayoutBatch.open(tmp_path / "l", client) as batch:
        await run_rows(batch, 150, wait_final=60.0, concurrency=1)
        service.on("payouts.list").respond("http:503", after=1)
        with pytest.raises(PaymentsError):
            await batch.retry_failed()
        assert not any(row.generation for row in await ledger_rows(batch))
        assert (await batch.retry_failed()).rows == (1, 150)
        assert (await batch.run(wait_final=60.0)).counts["arrived"] == 150
    assert len(service.books.payouts()) == 152


async def test_a_later_payout_that_was_never_made_is_asked_for_again_though_the_list_shows_the_first(
    service: Sandbox, client: AsyncPayments, batch: PayoutBatch
) -> None:
    fails(service, 1)
    await run_rows(batch, 1, wait_final=60.0)
    await batch.retry_failed()
    service.on("payouts.create").respond("http:409")
    assert (await batch.run(patience=0.0)).exit_code == 3
    runtime_of(client).advance(1_000.0)
    service.advance(1_000.0)
    assert (await batch.run(wait_final=60.0)).counts["arrived"] == 1
