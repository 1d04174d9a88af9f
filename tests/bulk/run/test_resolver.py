"""Rows in doubt: what the list, and the next key, tell of them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import PayoutBatch, RowState
from payments_async.sandbox import Sandbox
from tests.support.batches import assert_true, in_process, item, items, ledger_rows, pay_stranger, runtime_of
from tests.support.desks import Pay

DAY = 86_400.0
PROOF_KEY = "payments_sdk"


def keys_of(sandbox: Sandbox) -> list[str | None]:
    """The idempotency keys of the creations that arrived, each once, in order."""
    return list(dict.fromkeys(r.idempotency_key for r in sandbox.requests if r.operation == "payouts.create"))


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
    assert len(keys_of(service)) == 2


async def test_a_409_for_ones_own_payout_is_found_and_confirmed(service: Sandbox, tmp_path: Path) -> None:
    service.on("payouts.create").respond("lost_response").respond("http:409", times=1, after=1)
    assert await state_after(service, tmp_path, items(1)) == (RowState.CREATED, 0, None)
    assert len(service.books.payouts()) == 1


@pytest.mark.parametrize(
    "changes",
    [{}, {"metadata": {PROOF_KEY: f"1.{'a' * 20}.{'b' * 20}.{'c' * 20}.0"}}],
    ids=["without proof", "another batch's"],
)
async def test_another_payout_under_the_reference_is_a_conflict(
    service: Sandbox, tmp_path: Path, changes: dict[str, Any]
) -> None:
    await pay_stranger(service, **changes)
    state, _, why = await state_after(service, tmp_path, [item(1, reference="taken")])
    assert (state, why) == (RowState.CONFLICT, "reference of another payout")


async def test_a_row_paid_before_its_file_was_edited_shows_what_was_paid(
    service: Sandbox, client: AsyncPayments, tmp_path: Path
) -> None:
    for ledger, amount in (("lost", Decimal(11)), ("l", Decimal(12))):
        async with PayoutBatch.open(tmp_path / ledger, client) as batch:
            await batch.load([item(1, amount=amount)], batch_id="batch")
            report = await batch.run()
    assert report.exit_code == 1
    async with PayoutBatch.open(tmp_path / "l") as batch:
        await batch.export(tmp_path / "out.jsonl")
    (entry,) = service.books.payouts()
    told = json.loads((tmp_path / "out.jsonl").read_text())
    assert (told["outcome"], told["failure_code"]) == ("conflict", "other content under its reference")
    assert told["failure_message"].startswith(f"the list shows {entry.id}, XCD 11")


async def test_a_proof_that_cannot_be_read_leaves_the_row_in_doubt_for_the_operator(
    service: Sandbox, pay: Pay
) -> None:
    await pay_stranger(service, metadata={PROOF_KEY: "9.unknown"})
    rows = [item(1, reference="taken"), item(2)]
    report = await pay(rows)
    assert (report.exit_code, report.is_complete) == (3, False)
    assert report.counts["in_doubt"] == report.counts["created"] == 1


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


async def test_a_row_whose_key_is_old_is_looked_up_before_it_is_sent_again(
    service: Sandbox, client: AsyncPayments, pay: Pay
) -> None:
    rows = items(3)
    service.on("payouts.create", description="row 1").respond("lost_response", times=None)
    service.on("payouts.create", description="row 2").respond("lost_request", times=None)
    report = await pay(rows, patience=0.0, drain=1.0)
    assert report.counts["created"] >= 1
    service.clear_rules()
    runtime_of(client).advance(DAY)
    service.advance(DAY)
    before = len(keys_of(service))
    report = await pay(rows)
    assert report.exit_code == 0
    assert_true(report, service, rows)
    assert len(keys_of(service)) == before + 1  # row 2 alone was posted again, under its next key


async def test_a_list_that_cannot_be_read_is_read_again_and_proves_nothing_meanwhile(
    service: Sandbox, tmp_path: Path
) -> None:
    service.on("payouts.create").respond("http:409")
    service.on("payouts.list").respond("http:400", times=2)
    assert await state_after(service, tmp_path, items(1)) == (RowState.CREATED, 1, None)


async def test_a_refused_key_while_reading_the_list_halts_the_run(service: Sandbox, pay: Pay) -> None:
    service.on("payouts.create").respond("http:409")
    service.on("payouts.list").respond("http:401", times=None)
    report = await pay(items(1))
    assert report.exit_code == 3
    assert "401" in str(report.stopped)


async def test_many_rows_in_doubt_share_one_walk_of_the_list(service: Sandbox, pay: Pay) -> None:
    rows = items(120)
    service.on("payouts.create").respond("lost_response", times=120).respond("http:409", times=120, after=120)
    report = await pay(rows, concurrency=120)
    assert_true(report, service, rows)
    assert report.exit_code == 0
    pages = [request for request in service.requests if request.operation == "payouts.list"]
    assert len(pages) == 2 + 2  # and for the certificate
