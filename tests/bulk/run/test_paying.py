"""Running a batch: what is sent, what is learned of each answer, and what stops a run."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import BatchFigures, PayoutBatch
from payments_async.sandbox import Sandbox
from tests.support.batches import (
    assert_true,
    in_process,
    items,
    ledger_rows,
    over_socket,
    paid,
    runtime_of,
)
from tests.support.desks import Pay
from tests.support.sightings import posts


async def test_every_row_is_paid_and_the_report_says_so(service: Sandbox, pay: Pay) -> None:
    rows = items(40)
    report = await pay(rows)
    assert_true(report, service, rows)
    assert report.counts["created"] == 40
    assert report.sums["XCD"]["created"] == Decimal("820.40")
    assert (report.is_complete, report.exit_code, report.stopped) == (True, 0, None)


async def test_a_complete_batch_sends_nothing_when_it_is_run_again(service: Sandbox, pay: Pay) -> None:
    await pay(items(5))
    report = await pay(items(5))
    assert posts(service) == 5
    assert report.exit_code == 0


async def test_progress_is_reported_after_each_commit_and_cannot_break_the_run(pay: Pay) -> None:
    told: list[BatchFigures] = []

    def hear(progress: BatchFigures) -> None:
        told.append(progress)
        raise RuntimeError("a listener's own")

    report = await pay(items(300), on_progress=hear)
    assert report.exit_code == 0
    created = [progress.counts["created"] for progress in told]
    assert created == sorted(created)
    assert created[-1] == 300


async def test_a_rejected_row_keeps_the_services_words_and_the_others_are_paid(
    service: Sandbox, batch: PayoutBatch
) -> None:
    service.on("payouts.create", description="row 2").respond("http:422")
    await batch.load(items(3))
    report = await batch.run()
    row = (await ledger_rows(batch))[1]
    assert (report.exit_code, report.counts["rejected"]) == (1, 1)
    assert row.failure_code == "HTTP 422"
    assert "sandbox" in (row.failure_message or "")


@pytest.mark.parametrize("fault", ["http:401", "http:403", "http:404"])
async def test_what_says_nothing_of_the_row_halts_the_batch_and_changes_no_row(
    service: Sandbox, pay: Pay, fault: str
) -> None:
    rows = items(300)
    service.on("payouts.create").respond(fault, times=None)
    report = await pay(rows, concurrency=4)
    assert (report.exit_code, report.resumable, report.is_complete) == (2, "after_change", False)
    assert report.counts["not_started"] + report.counts["under_way"] == 300
    assert posts(service) <= 4
    assert fault.removeprefix("http:") in (report.stopped or "")
    service.clear_rules()
    report = await pay(rows)
    assert report.exit_code == 0
    assert_true(report, service, rows)


async def test_a_refused_key_is_found_out_before_any_intent(service: Sandbox, tmp_path: Path) -> None:
    key = service.new_key("inactive")
    async with in_process(service, api_key=key) as client:
        report = await paid(tmp_path / "l", client, items(3))
    assert (report.exit_code, report.counts["not_started"]) == (2, 3)
    assert key not in str(report.stopped)


async def test_an_unreachable_service_holds_the_batch_back(service: Sandbox, tmp_path: Path) -> None:
    with service:
        client = over_socket(service)
    async with client:
        report = await paid(tmp_path / "l", client, items(3))
    assert (report.exit_code, report.resumable, report.counts["not_started"]) == (75, "now", 3)


async def test_a_429_leaves_the_row_and_waits_for_retry_after(
    service: Sandbox, client: AsyncPayments, pay: Pay
) -> None:
    service.on("payouts.create").respond("429:7", times=6)
    report = await pay(items(2), concurrency=1)
    assert sum(runtime_of(client).slept) >= 6 * 7
    assert report.exit_code == 0
    assert posts(service) == 8


async def test_an_outage_pauses_the_batch_instead_of_putting_every_row_in_doubt(
    service: Sandbox, pay: Pay
) -> None:
    rows = items(200)
    service.on("payouts.create").respond("http:503", times=200)
    report = await pay(rows, concurrency=50)
    assert report.exit_code == 0
    assert_true(report, service, rows)
    assert not any(request.operation == "payouts.list" for request in service.requests[:-2])


async def test_two_ledgers_of_one_batch_pay_it_once(
    service: Sandbox, client: AsyncPayments, tmp_path: Path
) -> None:
    rows = items(200)
    runtime = None
    runtime = runtime_of(client)
    other = in_process(service, runtime=runtime)
    reports = await asyncio.gather(
        paid(tmp_path / "a", client, rows, concurrency=7), paid(tmp_path / "b", other, rows, concurrency=5)
    )
    for report in reports:
        assert report.exit_code == 0
        assert_true(report, service, rows)


@pytest.mark.parametrize("later", [0.0, 90_000.0], ids=["at once", "the next day"])
async def test_a_deleted_ledger_leads_to_the_same_references_and_no_second_payout(
    service: Sandbox, client: AsyncPayments, tmp_path: Path, later: float
) -> None:
    rows = items(30)
    await paid(tmp_path / "a", client, rows)
    runtime_of(client).advance(later)
    service.advance(later)
    report = await paid(tmp_path / "b", client, rows)
    assert report.exit_code == 0
    assert_true(report, service, rows)


@pytest.mark.parametrize(("key", "told"), [(None, "replaced during the run"), ("nonsense", "malformed")])
async def test_a_key_replaced_during_a_run_halts_it(
    service: Sandbox, tmp_path: Path, key: str | None, told: str
) -> None:
    keys = [service.api_key]
    async with (
        in_process(service, api_key=lambda: keys[-1]) as client,
        PayoutBatch.open(tmp_path / "l", client) as batch,
    ):
        await batch.load(items(500))
        report = await batch.run(lambda _: keys.append(key or service.new_key()), concurrency=2)
        assert report.exit_code == (75 if key is None else 2)
        assert told in str(report.stopped)
        assert report.counts["created"] == len(service.books.payouts())
        keys.append(service.api_key)
        assert (await batch.run()).exit_code == 0
