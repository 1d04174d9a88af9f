"""Figures of runs in both kinds of ledger: stored with outcomes, added up over runs, bounded."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from payments_async.bulk._ledger import run_figures
from payments_async.bulk._ledger.run_figures import RunRecorder
from payments_async.bulk._protocol import row_state
from payments_async.bulk._protocol.attempts import RowAttempt
from payments_async.bulk._protocol.records import RowOutcome
from payments_async.bulk._protocol.row_state import RowState
from payments_async.bulk._protocol.run_figures import MOST_BUCKETS, RunSeries, RunTime, SeriesBucket
from payments_async.bulk.ledger_errors import LedgerError
from tests.support.ledgers import Clock, created
from tests.support.places import BOTH, Place, begun, opened

pytestmark = BOTH
_AT = 1_800_000_100.0


def _worked(recorder: RunRecorder, at: float, *, closed: float = 0.0) -> None:
    """A second of a run: a row that was created at once, one that was not, and no answer for a third."""
    recorder.add(at, "created", 0.1)
    recorder.add(at, "failed", 0.2)
    recorder.attempt(2, RowAttempt(at, "503", 0.2))
    recorder.add(at, "no_answer", 30.0)
    recorder.attempt(3, RowAttempt(at, "timeout", 30.0))
    recorder.limit(at, 16.0, closed)


async def test_figures_are_stored_with_outcomes_and_add_up_over_runs(path: Place) -> None:
    async with await begun(path, 3) as ledger:
        assert (await ledger.series()).buckets == ()
        assert await ledger.attempts([1, 2, 3]) == {}
        rows = (await ledger.claim(3)).rows
        _worked(ledger.recorder, _AT)
        now = await ledger.series()
        assert now.total == SeriesBucket(int(_AT), 1, 1, 0, 1, 1, limit=16.0)
        assert str((await ledger.attempts([2]))[2]) == "503"
        await ledger.record([created(rows[0])])
        assert ledger.recorder.pending().is_empty, "they were stored with the outcome"
        assert await ledger.series() == now
        _worked(ledger.recorder, _AT + 5.0, closed=0.5)
    async with await opened(path, Clock("second", _AT + 50)) as ledger:
        _worked(ledger.recorder, _AT + 9.0)  # the last second of the first run was lost with it
        await ledger.save_figures()
        await ledger.save_figures()
        assert [bucket.at - int(_AT) for bucket in (await ledger.series()).buckets] == [0, 9]
        _worked(ledger.recorder, _AT)  # of a worker whose clock is behind: the same second
        await ledger.save_figures()
        ledger.recorder.attempt(1, RowAttempt(_AT, "409", 0.1))  # an attempt alone
        await ledger.save_figures()
        series, attempts = await ledger.series(), await ledger.attempts([1, 2, 3])
    assert series.buckets[0] == SeriesBucket(int(_AT), 1, 2, 0, 2, 2, limit=16.0)
    assert (series.times.answers, series.times.no_answer) == (6, 3)
    assert {number: str(each) for number, each in attempts.items()} == {
        1: "409",
        2: "503 503 503",
        3: "timeout timeout timeout",
    }


async def test_a_ledger_in_a_file_knows_when_runs_were_at_work_and_which_were_cut_off(path: Place) -> None:
    is_file, later = isinstance(path, Path), Clock("second", _AT)
    async with await begun(path, 5) as ledger:
        assert await ledger.run_times() == ()
        await ledger.claim(1)
        await ledger.record([created(row) for row in (await ledger.claim(1)).rows])
    async with await opened(path, later) as ledger:
        began = later.wall + 1
        paid, doubtful = (await ledger.claim(2)).rows
        await ledger.record([created(paid), RowOutcome(doubtful.number, row_state.doubt(doubtful.known))])
    async with await opened(path, Clock("reconciles", _AT + 50)) as ledger:
        await ledger.record([created(each) async for each in ledger.rows(RowState.IN_FLIGHT)])
        runs = await ledger.run_times()
    assert len(runs) == (2 if is_file else 0), "a database has many processes"
    if is_file:
        assert [run.is_cut_off for run in runs] == [True, False], "one row of the first had no outcome"
        assert runs[1] == RunTime(began, began + 1)
        assert runs[0].begin < runs[0].end


async def test_a_long_run_takes_bounded_room(path: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_figures, "MOST_BUCKETS", 8)
    async with await begun(path, 1) as ledger:
        for second in range(20):
            ledger.recorder.add(_AT + second, "created", 0.1)
            ledger.recorder.limit(_AT + second, 4.0, 0.5)
            await ledger.save_figures(_AT + second + 0.5)
    async with await opened(path, Clock("second")) as ledger:
        series = await ledger.series()
    assert len(series.buckets) <= 8 < MOST_BUCKETS
    assert series.total.created == 20
    assert series.total.closed == 10.0
    assert series.seconds == 4


async def test_figures_stay_for_the_next_commit_when_outcomes_are_refused(path: Place) -> None:
    async with await begun(path, 1) as ledger:
        (row,) = (await ledger.claim(1)).rows
        _worked(ledger.recorder, _AT)
        with pytest.raises(LedgerError):
            await ledger.record([created(attrs.evolve(row, number=99))])
        assert not ledger.recorder.pending().is_empty


async def test_figures_that_cannot_be_stored_or_read_end_nothing(
    path: Place, caplog: pytest.LogCaptureFixture
) -> None:
    async with await begun(path, 2) as ledger:
        rows = (await ledger.claim(2)).rows
        _worked(ledger.recorder, 2.0**70)  # a moment that neither kind of ledger can hold
        for row in rows:
            assert await ledger.record([created(row)])
        await ledger.save_figures()
        assert (await ledger.series()).total.created == 1
        assert str((await ledger.attempts([2]))[2]) == "503"
    assert caplog.text.count("the figures of this run") == 1
    async with await opened(path) as ledger:
        assert (await ledger.series(), await ledger.attempts([2])) == (RunSeries(), {})


async def test_a_row_is_found_by_its_key_its_reference_or_its_number(path: Place) -> None:
    async with await begun(path, 3) as ledger:
        for name in ("row-2", "reference-2", "2"):
            found = await ledger.find(name)
            assert found is not None
            assert found.number == 2
        assert await ledger.find("row-9") is None
        assert await ledger.find("9") is None
        for unstorable in ("row-\udcff", "row-\0"):
            assert await ledger.find(unstorable) is None
