"""The figures of a run as values: buckets that add up and stay few, answer times, the attempts of a row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pytest

from payments_async.bulk._protocol.attempts import RowAttempt, RowAttempts, one_attempt
from payments_async.bulk._protocol.run_figures import (
    BOUNDS,
    AnswerTimes,
    RunSeries,
    RunTime,
    SeriesBucket,
    SpeedFigures,
    time_class,
)

_BUCKETS: Final = [SeriesBucket(at, created=at, refused=1, limit=10.0, closed=0.5) for at in range(100, 110)]


def _times(*seconds: float, no_answer: int = 0) -> AnswerTimes:
    counts = [0] * (len(BOUNDS) + 1)
    for each in seconds:
        counts[time_class(each)] += 1
    return AnswerTimes(tuple(counts), no_answer)


def test_neighbours_are_merged_until_a_series_is_short_enough() -> None:
    series = RunSeries.of(_BUCKETS, AnswerTimes(), most=4)
    assert [(each.at, each.seconds, each.created) for each in series.buckets] == [
        (100, 4, 100 + 101 + 102 + 103),
        (104, 4, 104 + 105 + 106 + 107),
        (108, 4, 108 + 109),
    ]
    assert (series.seconds, series.begin, series.end) == (4, 100, 112)
    assert series.buckets[0] == SeriesBucket(100, 4, 406, 4, limit=10.0, closed=2.0)
    assert series.total == SeriesBucket(100, 12, sum(range(100, 110)), 10, limit=10.0, closed=5.0)


def test_series_of_two_workers_add_up_in_the_wider_buckets() -> None:
    one = RunSeries((SeriesBucket(8, 4, created=4),), _times(0.1))
    two = RunSeries(
        (SeriesBucket(9, failed=2, closed=1.0), SeriesBucket(12, no_answer=1, limit=5.0)), _times(0.2)
    )
    both = one + two
    assert both == two + one
    assert both.buckets == (
        SeriesBucket(8, 4, created=4, failed=2, closed=1.0),
        SeriesBucket(12, 4, no_answer=1, limit=5.0),
    )
    assert both.times == _times(0.1, 0.2)
    assert one + RunSeries() == one
    assert both.buckets[0].requests == 6
    assert both.buckets[0].per_second == 1.0


def test_the_pace_is_of_the_last_seconds_and_unknown_at_the_very_beginning() -> None:
    slow_then_fast = [SeriesBucket(at, created=10 if at < 130 else 100) for at in range(100, 160)]
    series = RunSeries(tuple(slow_then_fast))
    assert series.recent_rate(160.0) == pytest.approx(90, abs=1)
    assert SpeedFigures.of(series, 160.0).per_second == round(series.recent_rate(160.0), 2)
    assert series.recent_rate(170.0) == pytest.approx(45, abs=1)  # nothing came for ten seconds
    assert series.recent_rate(220.5) == 0.0
    assert RunSeries(series.buckets[:2]).recent_rate(101.5) == 0.0
    assert RunSeries(series.buckets[:2]).recent_rate(102.0) == 10.0
    assert RunSeries().recent_rate(102.0) == 0.0
    resumed = RunSeries((*series.buckets, *(SeriesBucket(at, created=50) for at in range(180, 185))))
    assert resumed.recent_rate(185.0) == 50, "the time between two runs is no part of the pace"


@pytest.mark.parametrize("begin", [102, 105, 130])
def test_a_429_of_three_seconds_changes_neither_the_pace_nor_the_time_left(begin: int) -> None:
    closed = range(begin, begin + 3)
    series = RunSeries(
        tuple(
            SeriesBucket(at, closed=1.0) if at in closed else SeriesBucket(at, created=1_000)
            for at in range(100, 160)
        )
    )
    for now in range(102, 160):
        seen = RunSeries(tuple(each for each in series.buckets if each.at < now))
        assert seen.recent_rate(float(now)) == pytest.approx(1_000)


def test_while_a_limit_stays_closed_for_a_minute_the_pace_is_unknown() -> None:
    series = RunSeries(tuple(SeriesBucket(at, closed=1.0) for at in range(100, 170)))
    assert series.recent_rate(170.0) == 0.0


def test_answers_are_those_of_the_run_in_which_they_came() -> None:
    buckets = tuple(SeriesBucket(at, created=1) for at in (10, 11, 700, 800, 801, 803))
    first, second = RunTime(650.5, 700.9, is_cut_off=True), RunTime(801.2, 803.9)
    silent = RunTime(790.0, 800.1)
    parts = RunSeries(buckets, _times(0.1)).by_run([first, silent, second])
    assert [(run, [bucket.at for bucket in part.buckets]) for run, part in parts] == [
        (None, [10, 11]),
        (first, [700]),
        (silent, [800]),
        (second, [801, 803]),
    ]
    assert [part.times for _, part in parts] == [AnswerTimes()] * 4
    unknown = RunSeries(buckets).by_run([])
    assert [(run, [bucket.at for bucket in part.buckets]) for run, part in unknown] == [
        (None, [10, 11]),
        (None, [700, 800, 801, 803]),
    ]
    assert RunSeries().by_run([first]) == []


def test_a_bucket_is_never_closed_for_longer_than_it_lasts() -> None:
    assert (SeriesBucket(1, closed=0.7) + SeriesBucket(1, closed=0.7)).closed == 1.0


def test_a_chart_gets_buckets_without_gaps() -> None:
    series = RunSeries((SeriesBucket(100, created=3), SeriesBucket(103, created=5)), AnswerTimes())
    assert [each.created for each in series.between(99, 104, 60)] == [0, 3, 0, 0, 5]
    assert [(each.at, each.created) for each in series.between(99, 104, 3)] == [(98, 0), (100, 3), (102, 5)]
    assert series.between(100, 100, 60) == (SeriesBucket(100, created=3),)
    assert RunSeries().between(5.5, 7.0, 60) == (SeriesBucket(5), SeriesBucket(6))
    assert (RunSeries().begin, RunSeries().end, RunSeries().seconds) == (None, None, 1)
    assert RunSeries().total == SeriesBucket(0)


@pytest.mark.parametrize(
    ("seconds", "number"),
    [(0.0, 0), (0.001, 0), (0.0011, 1), (BOUNDS[10], 10), (BOUNDS[10] * 1.001, 11), (1e6, len(BOUNDS))],
)
def test_an_answer_time_is_in_the_first_class_whose_bound_it_does_not_pass(
    seconds: float, number: int
) -> None:
    assert time_class(seconds) == number


def test_percentiles_lie_in_the_class_of_their_answer() -> None:
    times = _times(*(number / 100 for number in range(1, 101)), no_answer=7)
    for percent in (50, 95, 99):
        found = times.percentile(percent)
        assert found is not None
        assert found == pytest.approx(percent / 100, rel=0.2)
    assert times.answers == 100
    assert _times(0.0005).percentile(50) == 0.0005
    assert _times(1e6).percentile(99) == BOUNDS[-1]
    assert AnswerTimes(no_answer=3).percentile(50) is None


def test_the_first_and_the_last_attempts_of_a_row_are_kept() -> None:
    attempts = RowAttempts()
    for number in range(12):
        attempts += one_attempt(RowAttempt(float(number), str(500 + number), 0.25))
    assert attempts.made == 12
    assert attempts.omitted == 4
    assert str(attempts) == "500 501 502 … (4 more) … 507 508 509 510 511"
    assert RowAttempts.read(attempts.facts()) == attempts


def test_attempts_that_two_runs_kept_become_one_list() -> None:
    first = one_attempt(RowAttempt(1.0, "timeout")) + one_attempt(RowAttempt(2.0, "503"))
    later = one_attempt(RowAttempt(3.0, "409", replayed=True)) + one_attempt(RowAttempt(4.0, "201"))
    both = first + later
    assert str(both) == "timeout 503 409 201"
    assert [each.at for each in both] == [1.0, 2.0, 3.0, 4.0]
    assert both.omitted == 0


class _Unwalked(tuple[SeriesBucket, ...]):
    """Buckets that nothing may walk over."""

    def __iter__(self) -> Iterator[SeriesBucket]:
        raise AssertionError


def test_figures_of_a_moment_need_no_walk_over_a_long_series() -> None:
    buckets = [SeriesBucket(at, created=2, refused=1, limit=9.0) for at in range(100, 3700)]
    long = RunSeries(tuple(buckets[:-1]), AnswerTimes()) + RunSeries(tuple(buckets[-1:]), AnswerTimes())
    assert (long.total.created, long.total.refused) == (7200, 3600)
    object.__setattr__(long, "buckets", _Unwalked(buckets))
    figures = SpeedFigures.of(long, 3699.5)
    assert (figures.refused, figures.limit, figures.minute) == (3600, 9.0, (2,) * 60)


def test_a_batch_in_a_few_figures() -> None:
    buckets = (
        SeriesBucket(90, created=9, refused=1, limit=20.0),
        SeriesBucket(100, failed=2, no_answer=1, closed=0.5),
    )
    figures = SpeedFigures.of(RunSeries(buckets, _times(0.1, 0.1, 1.0)), 100.7)
    assert (figures.limit, figures.closed) == (20.0, True)
    assert (figures.refused, figures.failed, figures.no_answer) == (1, 2, 1)
    assert figures.minute == (9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    assert figures.p50 is not None
    assert figures.p99 is not None
    assert 0.08 < figures.p50 < 0.12 < 0.8 < figures.p99 < 1.2
    assert SpeedFigures.of(RunSeries(buckets, AnswerTimes()), 101.0).closed is False
    assert len(SpeedFigures.of(RunSeries(buckets, AnswerTimes()), 900.0).minute) == 60
    assert SpeedFigures.read(json.loads(json.dumps(figures.facts()))) == figures


@pytest.mark.parametrize(
    "facts",
    [
        None,
        [],
        {},
        {"limit": 1},
        {**SpeedFigures().facts(), "minute": 3},
        {**SpeedFigures().facts(), "minute": ["3"]},
        {**SpeedFigures().facts(), "minute": [], "limit": "fast"},
        {**SpeedFigures().facts(), "minute": [], "refused": None},
    ],
)
def test_what_is_no_figures_is_read_as_none(facts: object) -> None:
    assert SpeedFigures.read(facts) is None


def test_a_run_without_answers_has_no_figures_yet() -> None:
    assert SpeedFigures.of(RunSeries(), 100.0) == SpeedFigures(minute=(0,))
