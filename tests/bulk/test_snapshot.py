"""What a reader sees of a batch at one moment: of its own work, and of other processes'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk import BatchFigures
from payments_async.bulk.ledger_errors import LedgerMissing
from payments_async.sandbox import Sandbox
from tests.support.batches import item, items
from tests.support.desks import Desk
from tests.support.places import EITHER


@EITHER
async def test_a_snapshot_has_all_that_a_reader_shows(
    desk: Desk, service: Sandbox, place: Path | str
) -> None:
    service.on("payouts.create", description="row 2").respond("http:422", times=None)
    async with desk.client(service) as client, desk.open(place, client, batch_id="batch") as batch:
        with pytest.raises(LedgerMissing):
            await batch.snapshot()
        loaded = await batch.load(items(3))
        before = await batch.snapshot()
        report = await batch.run()
        after = await batch.snapshot()
        assert (after.report.counts, after.report.activity) == (report.counts, None)
        assert after.series == await batch.series()
        assert before.at <= after.at <= batch.now()
        runs = await batch.run_times()
        assert batch.header() == after.header
    binding = before.header.binding
    assert (binding.batch_id, binding.environment, before.header.rows) == ("batch", "sandbox", loaded.rows)
    assert before.series.buckets == ()
    assert (after.speed.failed, after.speed.p50 is None) == (1, False)
    assert (after.rule, after.workers) == (None, ())
    assert [before.at <= run.begin <= run.end <= after.at for run in runs] == [True] * isinstance(place, Path)


async def test_a_snapshot_during_a_run_says_what_is_being_done(
    desk: Desk, service: Sandbox, batch: Any
) -> None:
    await batch.load([item(1)])
    seen: list[str] = []

    def note(progress: BatchFigures) -> None:
        activity = batch.status().activity
        seen.append("" if activity is None else activity.doing)

    await batch.run(note)
    assert set(seen) == {"paying"}
    assert batch.status().activity is None


async def test_a_snapshot_of_a_database_is_of_what_all_have_recorded(
    desk: Desk, service: Sandbox, database: Any
) -> None:
    async with desk.client(service) as client, desk.open(database, client, batch_id="june") as one:
        await one.load(items(3))
        async with desk.open(database, client, batch_id="june") as two:
            await two.plan(max_rows=1)
            await two.pause("lunch")
        now = await one.snapshot()
        assert now.report.stopped == "paused: lunch"
        await one.resume()
        await one.run(max_rows=1)
        assert "--max-rows" in str((await one.snapshot()).rule)
