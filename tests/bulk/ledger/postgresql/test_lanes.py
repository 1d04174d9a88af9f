"""Processes that add figures to one lane at the same time."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from payments_async.bulk._ledger import run_figures
from payments_async.bulk._ledger.transactions import Transaction
from payments_async.bulk._protocol.run_figures import RunFigures, RunSeries, SeriesBucket
from tests.support.databases import batch, connected, waits_for_lock


def _figures(begin: int, end: int) -> RunFigures:
    """A payout in each of these seconds."""
    return RunFigures(RunSeries(tuple(SeriesBucket(at, created=1) for at in range(begin, end))))


async def test_two_processes_of_a_lane_shorten_it_at_the_same_time(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_figures, "MOST_BUCKETS", 8)
    async with batch(database) as ledger, connected(database) as one, connected(database) as two:
        number, waits = ledger.facts.batch.batch, asyncio.Event()
        await one.commit(lambda work: run_figures.write(work, number, "a", _figures(100, 108)))
        written = asyncio.Event()

        async def slow(work: Transaction) -> None:
            await run_figures.write(work, number, "a", _figures(108, 109))
            await work.read()
            written.set()
            await waits.wait()

        first = asyncio.ensure_future(one.commit(slow))
        await written.wait()
        second = asyncio.ensure_future(
            two.commit(lambda work: run_figures.write(work, number, "a", _figures(109, 110)))
        )
        with psycopg.connect(database, autocommit=True) as observer:
            await waits_for_lock(observer)
        waits.set()
        await asyncio.gather(first, second)
        series = await run_figures.series(one, number)
    assert series.total.created == 10


async def test_between_two_readings_of_a_whole_series_only_its_end_is_read(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with batch(database) as ledger, connected(database) as other:
        number, now = ledger.facts.batch.batch, int(ledger.now())

        async def added(figures: RunFigures) -> int:
            await other.commit(lambda work: run_figures.write(work, number, "a", figures))
            return (await ledger.series()).total.created

        assert await added(_figures(now - 200, now - 190)) == 10
        assert await added(_figures(now - 5, now)) == 15
        assert await added(_figures(now - 150, now - 149)) == 15, "so old a part is not read again"
        wide = SeriesBucket(now // 64 * 64 + 64, 64, created=1)  # among the seconds that are read again
        assert await added(RunFigures(RunSeries((wide,)))) == 17, "it was merged meanwhile"
        await added(_figures(now - 150, now - 149))
        monkeypatch.setattr(run_figures, "_WHOLE_EVERY", 0.0)
        assert (await ledger.series()).total.created == 18
