"""Charts of a batch's page as inline SVG: coordinates and words that the templates write. Pure.

Lengths across are percentages and lengths upwards are pixels, so that a chart is as wide as its place and its
words keep their form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from .._protocol.run_figures import AnswerTimes, RunSeries, RunTime, SeriesBucket
from .._texts.quantities import clock, counted, duration_text, moment, took_text

TOP: Final = 22
HEIGHT: Final = 140
_BUCKETS: Final = 120
_BARS: Final = 14
_FEWEST: Final = 8
"""Classes of answer times that are drawn at least: they have a round time among them."""
_GAP: Final = 6.0
"""Percent that the time between two runs takes, at most."""
_GAPS: Final = 36.0
"""Percent that all these times take, at most."""
_CUT_OFF: Final = "was killed or cut off, with rows under way"
_NEAR: Final = 4
"""A limit is drawn when it is at most this many times the peak; else it would flatten the chart."""
_LEAST_SHARE: Final = 0.8
"""Percent that a part of a bar takes at least, so that it is seen."""
_ROOM: Final = 84.0
"""Percent of the histogram for answers; what is left is for those that never came."""
_LABELS: Final = 72.0
"""Percent up to which a time has room before the words for requests without an answer."""
_APART: Final = 14.0
"""Percent between two times at least, so that they have room on a phone."""
_HALF: Final = 6.0
"""Percent that half a time takes. Nearer to the edge than that it begins at its mark."""
_WORD: Final = 14
"""Pixels that a line of words takes."""
Run = tuple[RunTime | None, RunSeries]
"""A run that is drawn: when it was at work, where that is known, and what came back."""


@attrs.frozen
class Part:
    """A part of a stacked bar."""

    tone: str
    word: str
    count: int
    x: float
    width: float


def stacked(counts: Sequence[tuple[str, str, int]]) -> list[Part]:
    """One bar of all rows: tone, word and count of each part. A part without rows has no width."""
    total = sum(count for _, _, count in counts)
    wanted = [max(count / total * 100, _LEAST_SHARE) if count else 0.0 for _, _, count in counts]
    scale = 100 / (sum(wanted) or 1)
    parts, x = [], 0.0
    for (tone, word, count), width in zip(counts, wanted, strict=True):
        parts.append(Part(tone, word, count, round(x, 2), round(width * scale, 2)))
        x += width * scale
    return parts


@attrs.frozen
class Gap:
    """Time between two runs, which is drawn narrower than it was."""

    x: float
    width: float
    words: str
    is_cut_off: bool
    """True if the run before it left rows under way."""


@attrs.frozen
class SpeedChart:
    """Payouts a second over time. Paths are drawn in 1,000 by 100 units and stretched."""

    area: str
    line: str
    bands: Sequence[tuple[float, float]]
    """Times when the limit was closed: where they begin and how wide they are, in percent."""
    gaps: Sequence[Gap]
    """Times between the runs; after the last run one without width if that was cut off."""
    ticks: Sequence[tuple[float, str]]
    """Lines across: height in pixels from the top, and the number."""
    limit: float | None
    limit_at: float | None
    """Height of the limit's line in pixels from the top; None when it is far above the chart."""
    begin: str
    end: str
    note: str
    """The caption, such as `limit 1,000 · closed once, for 1.0 s`."""
    sentence: str
    """The chart in words."""


@attrs.frozen
class _Stretch:
    """A run on the axis: from and how wide, in percent."""

    shown: Sequence[SeriesBucket]
    x: float
    width: float

    def place(self, at: float) -> float:
        begin, last = self.shown[0].at, self.shown[-1]
        return self.x + (at - begin) / (last.at + last.seconds - begin) * self.width


def speed_chart(runs: Sequence[Run], left: float | None) -> SpeedChart | None:
    """Draw the runs on one axis; `left`: seconds that the last one still needs. None without figures."""
    if not runs:
        return None
    begin, end = runs[0][1].begin or 0, runs[-1][1].end or 0
    worked = sum(series.total.seconds for _, series in runs)
    rest = min(left or 0.0, 2.0 * worked)
    gap = min(_GAP, _GAPS / max(len(runs) - 1, 1))
    scale = (100.0 - gap * (len(runs) - 1)) / (worked + rest)
    stretches, x = list[_Stretch](), 0.0
    for _, series in runs:
        whole = series.total
        shown = series.between(whole.at, series.end or 0, math.ceil(_BUCKETS * whole.seconds / worked))
        stretches.append(_Stretch(shown, x, whole.seconds * scale))
        x += stretches[-1].width + gap
    shown = tuple(bucket for each in stretches for bucket in each.shown)
    limit, peak = _limit_of(shown), max(each.per_second for each in shown)
    near = limit is not None and limit <= _NEAR * max(peak, 1.0)
    top = max(peak, limit if near and limit else 0.0, 1.0) * 1.04
    limit_at = _height(limit, top) if near and limit else None
    closed = sum(each.closed for each in shown)
    gaps = _gaps(runs, stretches)
    return SpeedChart(
        area="".join(f"{_corners(each, top)}V100H{each.x * 10:.5g}Z" for each in stretches),
        line="".join(_corners(each, top) for each in stretches),
        bands=[_band(bucket, each) for each in stretches for bucket in each.shown if bucket.closed],
        gaps=gaps,
        ticks=[tick for tick in _ticks(top) if limit_at is None or abs(tick[0] - limit_at) > _WORD],
        limit=limit,
        limit_at=limit_at,
        begin=clock(begin),
        end=f"≈ {clock(end + rest)}" if rest else clock(end),
        note=_note(limit, shown, closed),
        sentence=_sentence(shown, begin, end, worked, closed) + "".join(f" {each.words}." for each in gaps),
    )


def _gaps(runs: Sequence[Run], stretches: Sequence[_Stretch]) -> list[Gap]:
    """The times between the runs, and the end of the last one if that was cut off."""
    found = []
    for (before, earlier), (after, later), here, there in zip(
        runs, runs[1:], stretches, stretches[1:], strict=False
    ):
        x = here.x + here.width
        span = (before.end if before else earlier.end or 0), (after.begin if after else later.begin or 0)
        words = f"{'Not running' if before and after else 'No answer'} {_span_text(*span)}"
        is_cut_off = before is not None and before.is_cut_off
        words += f"; the run before {_CUT_OFF}" if is_cut_off else ""
        found.append(Gap(round(x, 2), round(there.x - x, 2), words, is_cut_off))
    last, of_last = runs[-1][0], stretches[-1]
    if last is not None and last.is_cut_off:
        words = f"At {clock(last.end)} the last run {_CUT_OFF}"
        found.append(Gap(round(of_last.x + of_last.width, 2), 0.0, words, is_cut_off=True))
    return found


def _span_text(begin: float, end: float) -> str:
    """`08:15:46 to 08:17:03`, with the dates where these differ."""
    is_one_day = moment(begin)[:10] == moment(end)[:10]
    return " to ".join(map(clock if is_one_day else moment, (begin, end)))


def _limit_of(shown: Iterable[SeriesBucket]) -> float | None:
    limits = [each.limit for each in shown if each.limit is not None]
    return limits[-1] if limits else None


def _corners(stretch: _Stretch, top: float) -> str:
    """A path that is level within each bucket."""
    parts = [f"M{stretch.x * 10:.5g} 100"]
    for each in stretch.shown:
        x = min(stretch.place(each.at + each.seconds) * 10, 1000)
        parts.append(f"V{100 - each.per_second / top * 100:.4g}H{x:.5g}")
    return "".join(parts)


def _band(bucket: SeriesBucket, stretch: _Stretch) -> tuple[float, float]:
    x = stretch.place(bucket.at)
    return round(x, 2), round(max(stretch.place(bucket.at + bucket.closed) - x, 0.4), 2)


def _height(value: float, top: float) -> float:
    return round(TOP + HEIGHT * (1 - value / top), 1)


def _ticks(top: float) -> list[tuple[float, str]]:
    """One to four lines at round numbers: height and number."""
    size = 10.0 ** math.floor(math.log10(top))
    step = next(size * n for n in (0.5, 1.0, 2.0, 5.0) if top / (size * n) < 4.5)
    return [(_height(step * n, top), f"{step * n:,g}") for n in range(1, int(top / step) + 1)]


def _note(limit: float | None, shown: Sequence[SeriesBucket], closed: float) -> str:
    parts = [] if limit is None else [f"limit {limit:,.0f} a second"]
    refused = sum(each.refused for each in shown)
    parts += [f"{refused:,} × 429"] if refused else []
    parts += [f"closed for {duration_text(round(closed, 1))}"] if closed else []
    return " · ".join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in parts)


def _sentence(shown: Sequence[SeriesBucket], begin: float, end: float, worked: float, closed: float) -> str:
    """The chart in words, without a total: of a run that is killed the last second has no figures."""
    total = sum(each.created for each in shown)
    peak = max(each.per_second for each in shown)
    words = (
        f"From {_span_text(begin, end)} UTC: {total / worked:,.1f} payouts a second while a run was at work, "
        f"{peak:,.0f} at most."
    )
    if (limit := _limit_of(shown)) is not None:
        words += f" The limit is {limit:,.0f} a second."
    if closed:
        words += f" It was closed for {duration_text(round(closed, 1))} after an answer 429."
    return words


@attrs.frozen
class TimeBar:
    """Answers of one class."""

    x: float
    width: float
    y: float
    height: float
    words: str


@attrs.frozen
class TimeChart:
    """Answer times as a histogram."""

    bars: Sequence[TimeBar]
    ticks: Sequence[tuple[float, str, str]]
    """Marks below: where in percent, the time, and how that is anchored there."""
    no_answer: int
    missing_y: float
    missing_height: float
    percentiles: Sequence[tuple[str, str]]
    rows: Sequence[tuple[str, int]]
    """The same as a table: class, answers."""

    @property
    def sentence(self) -> str:
        """The chart in words."""
        times = ", ".join(f"{name} {text}" for name, text in self.percentiles)
        return f"Answer times: {times}. {counted(self.no_answer, 'request')} had no answer."


def time_chart(times: AnswerTimes) -> TimeChart | None:
    """Draw the answer times. None without any request."""
    if not times.answers and not times.no_answer:
        return None
    groups = _groups(times.counts)
    top = max([times.no_answer, *(count for _, _, count in groups)])
    wide = _ROOM / max(len(groups), 1)
    bars = [
        TimeBar(
            x=round(place * wide, 2),
            width=round(wide * 0.84, 2),
            y=_height(count, top),
            height=round(HEIGHT * count / top, 1),
            words=f"{_class_text(low, high)}: {count:,}",
        )
        for place, (low, high, count) in enumerate(groups)
    ]
    found = [(name, times.percentile(percent)) for name, percent in (("p50", 50), ("p95", 95), ("p99", 99))]
    return TimeChart(
        bars,
        _time_ticks(groups, wide),
        times.no_answer,
        _height(times.no_answer, top),
        round(HEIGHT * times.no_answer / top, 1),
        [(name, took_text(seconds)) for name, seconds in found if seconds is not None],
        [(_class_text(low, high), count) for low, high, count in groups if count],
    )


def _groups(counts: Sequence[int]) -> list[tuple[float, float, int]]:
    """Classes from about the first with answers to the last, joined until they are few: from, to, answers."""
    used = [place for place, count in enumerate(counts) if count]
    if not used:
        return []
    beside = max(_FEWEST - 1 - (used[-1] - used[0]), 0) // 2
    first = max(min(used[0] - beside, len(counts) - _FEWEST), 0)
    last, size = max(used[-1], first + _FEWEST - 1), 1
    while (last - first) // size + 1 > _BARS:
        size *= 2
    edges = [0.0, *AnswerTimes.bounds, math.inf]
    return [
        (edges[place], edges[min(place + size, last + 1)], sum(counts[place : min(place + size, last + 1)]))
        for place in range(first, last + 1, size)
    ]


def _time_ticks(groups: Sequence[tuple[float, float, int]], wide: float) -> list[tuple[float, str, str]]:
    """Round times along the axis, as many as have room, decades first."""
    if not groups:
        return []
    low, high, _ = groups[0]
    first, size = _place_of(low), _place_of(high) - _place_of(low)
    found: dict[float, float] = {}
    centres: list[float] = []
    for time in (0.0, *(digit * 10.0**power for digit in (1, 5, 2) for power in range(-3, 3))):
        x = (_place_of(time) - first) / size * wide
        centre = x + _HALF if time and x < _HALF else x
        if x >= 0 and centre <= _LABELS and all(abs(centre - other) >= _APART for other in centres):
            found[time] = round(x, 2)
            centres.append(centre)
    return [(x, took_text(time), "start" if x < _HALF else "middle") for time, x in sorted(found.items())]


def _place_of(seconds: float) -> float:
    """Where a time lies on the scale of the classes, which is logarithmic."""
    return (
        math.log(seconds / AnswerTimes.bounds[0], AnswerTimes.bounds[1] / AnswerTimes.bounds[0]) + 1
        if seconds
        else 0.0
    )


def _class_text(low: float, high: float) -> str:
    if high == math.inf:
        return f"over {took_text(low)}"
    return f"{took_text(low)} to {took_text(high)}" if low else f"up to {took_text(high)}"


def attempt_tone(answer: str) -> str:
    """The colour of an attempt's answer: amber for a refusal, and for what is in doubt; red for a failure."""
    kinds: Mapping[str, str] = {"2": "ok", "4": "wait", "5": "bad"}
    return kinds.get(answer[:1], "idle") if answer.isdigit() else "wait"
