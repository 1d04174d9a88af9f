"""`SharedBatch.run`, on a batch in a database: one process, or several at once, as with a file."""

from __future__ import annotations

import asyncio

import pytest

from payments_async.bulk import BatchFigures, OutcomesUnrecorded, SharedBatch
from payments_async.bulk._ledger.postgresql.leased_chunks import LeasedChunks
from tests.support.fleet import Fleet, books, disk_is_full


async def test_a_run_pays_the_batch_and_certifies_it(fleet: Fleet) -> None:
    seen: list[BatchFigures] = []
    batch = await fleet.loaded(120)
    report = await batch.run(seen.append)
    assert (report.exit_code, report.complete, report.stopped) == (0, True, None)
    assert (await batch.reconcile()).is_clean
    assert (await batch.run()).exit_code == 0
    assert len(books(fleet.sandbox)) == 120
    assert {figures.rows for figures in seen} == {120}  # how far it is seen to be depends on the machine


async def test_several_processes_may_run_one_batch(fleet: Fleet) -> None:
    one = await fleet.loaded(200)
    async with SharedBatch.open(fleet.url, await fleet.client(), batch_id="june") as two:
        reports = await asyncio.gather(one.run(), two.run())
    assert [report.exit_code for report in reports] == [0, 0]
    assert len(books(fleet.sandbox)) == 200


async def test_the_rules_of_a_run_are_those_of_the_batch(fleet: Fleet) -> None:
    batch = await fleet.loaded(120)
    report = await batch.run(max_rows=70)
    assert (report.exit_code, report.resumable) == (75, "after_change")
    assert "70" in str(report.stopped)
    assert report.counts["created"] == 70
    assert (await batch.run()).exit_code == 0
    assert len(books(fleet.sandbox)) == 120


async def test_a_lossy_standby_is_accepted_once_and_by_no_run(fleet: Fleet) -> None:
    accepted = "SELECT lossy_standby FROM payments.batches"
    batch = await fleet.loaded(1)
    await batch.run(max_rows=0)
    assert fleet.query(accepted) == [(False,)]
    await batch.plan(max_rows=0, lossy_standby=True)
    assert (await batch.run()).exit_code == 0
    assert fleet.query(accepted) == [(True,)]


async def test_a_paused_batch_is_not_paid_until_it_is_resumed(fleet: Fleet) -> None:
    batch = await fleet.loaded(3)
    await batch.plan()
    await batch.pause("lunch")
    report = await batch.run()
    assert (report.exit_code, report.stopped) == (75, "the batch is paused: lunch")
    await batch.resume()
    assert (await batch.run()).exit_code == 0


async def test_a_run_that_is_stopped_gives_its_chunks_back(fleet: Fleet) -> None:
    batch = await fleet.loaded(200)

    def stop(progress: BatchFigures) -> None:  # not before: on a busy machine a first report comes sooner
        if progress.counts["created"]:
            batch.stop("enough")

    report = await batch.run(stop, concurrency=2)
    assert (report.exit_code, report.stopped, report.resumable) == (75, "enough", "now")
    assert 0 < report.counts["created"] < 200
    assert report.counts["under_way"] == 0
    assert (await batch.run()).exit_code == 0


@pytest.mark.usefixtures("brief_leases")
async def test_outcomes_that_cannot_be_recorded_are_raised_and_learned_again(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = await fleet.loaded(120)
    with monkeypatch.context() as patch:
        patch.setattr(LeasedChunks, "record", disk_is_full)
        with pytest.raises(OutcomesUnrecorded, match="disk is full") as caught:
            await batch.run()
    assert len(caught.value.outcomes) == len(books(fleet.sandbox))
    assert (await batch.run()).exit_code == 0
    assert len(books(fleet.sandbox)) == 120
