"""Rows in doubt: what the list, and the next key, tell of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from payments_async import AsyncPayments
from payments_async.bulk import PayoutBatch, RowState
from payments_async.sandbox import Sandbox
from tests.support.batches import assert_true, in_process, items, ledger_rows, runtime_of
from tests.support.desks import Pay


async def state_after(
    service: Sandbox, tmp_path: Path, rows: Any, **options: Any
) -> tuple[RowState, int, str | None]:
    """The state of the first row after a run, its epoch, and why."""
    async with in_process(service) as client, PayoutBatch.open(tmp_path / "l", client) as batch:
        await batch.load(rows)
        await batch.run(**options)
        row = (await ledger_rows(batch))[0]
    return row.state, row.epoch, row.failure_code


async def test_a_409_without_a_payout_leads_to_the_next_key_once_nothing_can_be_under_way(
    service: Sandbox, client: AsyncPayments, pay: Pay
) -> None:
    service.on("payouts.create").respond("http:409")
    report = await pay(items(1))
    assert sum(runtime_of(client).slept) > 900
    assert_true(report, service, items(1))
    assert report.exit_code == 0
    keys = {each.idempotency_key for each in service.requests if each.operation == "payouts.create"}
    assert len(keys) == 2


async def test_a_refusal_in_doubt_rejects_the_row_only_when_its_absence_is_proven(
    service: Sandbox, client: AsyncPayments, pay: Pay
) -> None:
    service.on("payouts.create").respond("lost_request").respond("http:422", times=None, after=1)
    report = await pay(items(1))
    assert sum(runtime_of(client).slept) > 900
    assert (report.exit_code, report.counts["rejected"]) == (1, 1)
    assert service.books.payouts() == []


async def test_a_row_without_patience_stays_in_doubt_and_is_resolved_by_a_later_run(
    service: Sandbox, tmp_path: Path
) -> None:
    service.on("payouts.create").respond("http:409")
    state, _, why = await state_after(service, tmp_path, items(1), patience=60.0)
    assert (state, why) == (RowState.IN_DOUBT, "HTTP 409")
    assert await state_after(service, tmp_path, items(1)) == (RowState.CREATED, 1, None)


async def test_a_list_that_cannot_be_read_is_read_again_and_proves_nothing_meanwhile(
    service: Sandbox, tmp_path: Path
) -> None:
    service.on("payouts.create").respond("http:409")
    service.on("payouts.list").respond("http:400", times=2)
    assert await state_after(service, tmp_path, items(1)) == (RowState.CREATED, 1, None)


async def test_many_rows_in_doubt_share_one_walk_of_the_list(service: Sandbox, pay: Pay) -> None:
    rows = items(120)
    service.on("payouts.create").respond("lost_response", times=120).respond("http:409", times=120, after=120)
    report = await pay(rows, concurrency=120)
    assert_true(report, service, rows)
    assert report.exit_code == 0
    pages = [request for request in service.requests if request.operation == "payouts.list"]
    assert len(pages) == 2 + 2  # and for the certificate
