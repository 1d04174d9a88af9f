"""Created payouts followed until they are final: what it costs, when it ends, what it tells."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import BatchFigures, PayoutBatch, RowState
from payments_async.bulk._ledger.figures import awaited
from payments_async.sandbox import Sandbox
from tests.support.batches import alter, in_process, items, ledger_rows, open_at, run_rows, runtime_of
from tests.support.places import EITHER, Place
from tests.support.sightings import lists
from tests.support.spoiled import spoiling


def ends(service: Sandbox, words: str, number: int | None = None) -> None:
    fields: dict[str, Any] = {} if number is None else {"description": f"row {number}"}
    service.on("payouts.create", **fields).outcome(words)


@EITHER
async def test_a_payout_that_failed_is_reported_and_the_exit_code_says_so(
    service: Sandbox, batch: PayoutBatch, place: Place
) -> None:
    ends(service, "fail:RECIPIENT_ERROR", 2)
    plain = await run_rows(batch, 3)
    assert (plain.exit_code, plain.counts["failed"], plain.counts["not_final"]) == (0, 0, 3)
    report = await batch.run(wait_final=60.0)
    assert (report.exit_code, report.counts["failed"], report.is_complete) == (1, 1, True)
    assert report.counts["arrived"] == 2
    row = (await ledger_rows(batch))[1]
    assert (row.state, row.service_status) == (RowState.CREATED, "failed")
    assert row.failure_code == "RECIPIENT_ERROR"
    async with open_at(place) as other:
        assert (await other.status()).counts["failed"] == 1


async def test_the_time_is_kept_and_said_to_be_over(
    service: Sandbox, client: AsyncPayments, batch: PayoutBatch
) -> None:
    ends(service, "hang", 1)
    report = await run_rows(batch, 2, wait_final=100.0)
    assert sum(runtime_of(client).slept) <= 102.0
    assert (report.exit_code, report.counts["not_final"], report.is_complete) == (75, 1, True)
    assert "1 payout is not final yet" in str(report.stopped)
    service.settle(service.books.payouts(status="processing")[0].id)
    assert (await batch.run(wait_final=100.0)).exit_code == 0


async def test_a_payout_that_cannot_be_read_is_reported_and_not_waited_for_in_silence(
    batch: PayoutBatch,
) -> None:
    await run_rows(batch, 2)
    alter(batch._service._client, spoiling((await ledger_rows(batch))[0].reference))
    report = await batch.run(wait_final=100.0)
    assert (report.exit_code, report.counts["not_final"]) == (75, 1)
    assert "1 of the list's payouts could not be read" in str(report.stopped)


async def test_the_list_is_never_walked_more_often_than_every_five_seconds(
    service: Sandbox, client: AsyncPayments, batch: PayoutBatch
) -> None:
    ends(service, "hang")
    await run_rows(batch, 1)
    before, began = lists(service), runtime_of(client).monotonic()
    for _ in range(12):
        await batch.run(wait_final=2.5)
    seconds = runtime_of(client).monotonic() - began
    assert lists(service) - before <= 1 + seconds / 5.0


async def test_lists_that_fail_are_read_again_and_cost_nothing_but_time(
    service: Sandbox, tmp_path: Path
) -> None:
    ends(service, "complete after=30s")
    client = in_process(service, max_retries=0)
    async with client, PayoutBatch.open(tmp_path / "l", client) as batch:
        await run_rows(batch, 250)
        rule = service.on("payouts.list")
        for place, word in enumerate(("http:503", "reset", "lost_response", "http:400", "bad_json")):
            rule.respond(word, times=2, after=3 * place + 1)
        report = await batch.run(wait_final=3600.0)
        assert not service.unused_rules
    assert (report.exit_code, report.counts["arrived"]) == (0, 250)


async def test_a_list_that_cannot_be_read_for_long_is_begun_anew_and_told_at_the_end(
    service: Sandbox, tmp_path: Path
) -> None:
    client = in_process(service, max_retries=0)
    async with client, PayoutBatch.open(tmp_path / "l", client) as batch:
        await run_rows(batch, 2)
        service.on("payouts.list").respond("http:503", times=None)
        report = await batch.run(wait_final=600.0)
        assert (report.exit_code, report.counts["not_final"]) == (75, 2)
        assert "the service's list cannot be read (payouts.list: HTTP 503" in str(report.stopped)


async def test_a_key_that_is_refused_ends_the_following_at_once(service: Sandbox, batch: PayoutBatch) -> None:
    await run_rows(batch, 2)
    before = lists(service)
    service.on("payouts.list").respond("http:401", times=None)
    report = await batch.run(wait_final=600.0)
    assert (report.exit_code, report.resumable, lists(service) - before) == (2, "after_change", 1)
    assert "401" in str(report.stopped)


@EITHER
async def test_following_goes_on_after_a_restart_with_what_is_not_final(
    service: Sandbox, place: Place
) -> None:
    ends(service, "complete after=900s", 1)
    async with in_process(service) as client, open_at(place, client) as batch:
        await run_rows(batch, 5)

        def cancel(figures: BatchFigures) -> None:
            if figures.counts["arrived"] == 4:
                following.cancel()

        following = asyncio.ensure_future(batch.run(cancel, wait_final=3600.0))
        with pytest.raises(asyncio.CancelledError):
            await following
    async with in_process(service) as client, open_at(place, client) as batch:
        assert (await batch.status()).counts["arrived"] == 4
        assert (await awaited(batch._ledger)).count == 1
        report = await batch.run(wait_final=3600.0)
    assert (report.exit_code, report.counts["arrived"]) == (0, 5)


async def test_stop_ends_the_following_and_a_later_one_goes_on(service: Sandbox, batch: PayoutBatch) -> None:
    ends(service, "complete after=300s")
    await batch.load(items(2))
    calls = 0

    def on_progress(_: Any) -> None:
        nonlocal calls
        calls += lists(service) > 2
        if calls == 1:
            batch.stop("enough")

    report = await batch.run(on_progress, wait_final=3600.0)
    assert (report.stopped, report.exit_code, report.counts["not_final"]) == ("enough", 75, 2)
    assert (await batch.run(wait_final=3600.0)).exit_code == 0


async def test_a_run_that_was_stopped_is_not_followed(batch: PayoutBatch) -> None:
    report = await run_rows(batch, 3, lambda _: batch.stop("enough"), wait_final=60.0)
    assert report.stopped == "enough"
    assert report.counts["not_final"] == report.counts["created"]


@pytest.mark.parametrize("answered", [True, False])
async def test_why_a_payout_failed_is_recorded_with_its_creation(
    service: Sandbox, batch: PayoutBatch, answered: bool
) -> None:
    if not answered:  # as often as it is posted: the list then shows what became of it
        service.on("payouts.create", description="row 1").respond("lost_response", times=8)
    service.on("payouts.create", description="row 1").outcome("fail:RECIPIENT_ERROR immediate")
    report = await run_rows(batch, 2)
    row, _ = await ledger_rows(batch)
    assert (row.service_status, row.outcome) == ("failed", "failed")
    assert row.failure_code == "RECIPIENT_ERROR"
    assert report.counts["failed"] == 1
