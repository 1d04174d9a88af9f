"""Charts as inline SVG: coordinates and words that the templates write. Pure.

Lengths across are percentages and lengths upwards are pixels, so that a chart is as wide as its place and its
words keep their form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from .._common.timestamps import stamp
from .._traffic import Outcome

TOP: Final = 16
"""Above the bars, for the words of one of them."""
HEIGHT: Final = 96
_TONES: Final[Mapping[Outcome, str]] = {"ok": "ok", "refused": "wait", "failed": "bad", "unanswered": "doubt"}
"""The colour of each outcome, from the bottom of a bar to its top."""
_WORDS_OF: Final[Mapping[Outcome, str]] = {
    "ok": "answered",
    "refused": "refused",
    "failed": "failed",
    "unanswered": "without an answer",
}
_TIMES: Final = 300.0
"""Seconds between two times below a chart."""
_NEAR: Final = 4
"""A limit is drawn when it is at most this many times the peak; else it would flatten the chart."""


@attrs.frozen
class ChartMark:
    """A place on an axis, or a note, with its words."""

    at: float
    words: str


@attrs.frozen
class Bar:
    """A bar that leads to what it stands for; `since` and `until` are timestamps."""

    x: float
    since: str
    until: str
    words: str


@attrs.frozen
class Chart:
    """Stacked bars over time, each colour as the data of one SVG path, one unit wide for each bar."""

    peak: int
    """The value of the highest bar."""
    peak_at: str
    columns: int
    wide: float
    """The width of a bar."""
    paths: Mapping[str, str]
    bars: Sequence[Bar]
    legend: Sequence[tuple[str, str, int]]
    """Colour, word and sum of each outcome that there was."""
    marks: Sequence[ChartMark]
    """Values, by their heights."""
    times: Sequence[ChartMark]
    notes: Sequence[ChartMark]
    limit_at: float | None
    """The height of the limit's line."""
    since: str
    until: str


def chart(
    steps: Sequence[tuple[float, Mapping[Outcome, int]]],
    step: float,
    limit: int | None = None,
    notes: Sequence[tuple[float, str]] = (),
    words: Mapping[Outcome, str] = _WORDS_OF,
) -> Chart:
    """A chart of requests by their outcome, `step` seconds a bar, with a limit and notes of what was done."""
    totals = [sum(counts.values()) for _, counts in steps]
    peak, since, wide = max(totals), steps[0][0], 100 / len(steps)
    top = _round(max(peak, limit if limit is not None and limit <= peak * _NEAR else 0, 1))
    until = since + step * len(steps)
    first = -(-since // _TIMES)
    times = [number * _TIMES for number in range(int(first), int(until // _TIMES) + 1)]
    sums = {outcome: sum(counts.get(outcome, 0) for _, counts in steps) for outcome in _TONES}
    return Chart(
        peak=peak,
        peak_at=stamp(steps[totals.index(peak)][0])[11:19],
        columns=len(steps),
        wide=wide,
        paths=_paths([counts for _, counts in steps], top),
        bars=[
            Bar(column * wide, _seconds(at), _seconds(at + step), _label(at, counts, words))
            for column, (at, counts) in enumerate(steps)
            if totals[column]
        ],
        legend=[(_TONES[outcome], words[outcome], count) for outcome, count in sums.items() if count],
        marks=[ChartMark(_y(value, top), f"{value:,}") for value in sorted({0, top // 2, top})],
        times=[ChartMark((at - since) / (until - since) * 100, stamp(at)[11:16]) for at in times],
        notes=_notes(notes, steps, step),
        limit_at=None if limit is None or limit > top else _y(limit, top),
        since=_seconds(since),
        until=_seconds(until),
    )


def _paths(counts: Sequence[Mapping[Outcome, int]], top: int) -> dict[str, str]:
    paths: dict[str, str] = {}
    for column, of_step in enumerate(counts):
        low = float(HEIGHT)
        for outcome, tone in _TONES.items():
            if count := of_step.get(outcome, 0):
                high = low - count / top * HEIGHT
                bar = f"M{column + 0.1:g} {low:.4g}V{high:.4g}h.8V{low:.4g}z"
                paths[tone] = paths.get(tone, "") + bar
                low = high
    return paths


def _notes(
    notes: Sequence[tuple[float, str]], steps: Sequence[tuple[float, object]], step: float
) -> list[ChartMark]:
    """The notes of each bar together."""
    wide, said = 100 / len(steps), dict[float, str]()
    for at, words in notes:
        x = ((at - steps[0][0]) // step + 0.5) * wide
        if 0 < x < 100:
            said[x] = f"{said[x]}; {words}" if x in said else f"{stamp(at)[11:19]} {words}"
    return [ChartMark(x, words) for x, words in said.items()]


def _round(value: int) -> int:
    """The next number that is round, as is its half if it is more than one."""
    size = int("1".ljust(len(str(value)), "0"))
    return size * next(digit for digit in (1, 2, 4, 6, 8, 10) if digit * size >= value)


def _y(value: int, top: int) -> float:
    return round(TOP + HEIGHT - value / top * HEIGHT, 1)


def _label(at: float, counts: Mapping[Outcome, int], words: Mapping[Outcome, str]) -> str:
    parts = [f"{counts[outcome]:,} {word}" for outcome, word in words.items() if counts.get(outcome)]
    return f"{stamp(at)[11:19]}: {', '.join(parts)}"


def _seconds(at: float) -> str:
    """A timestamp to the second."""
    return f"{stamp(at)[:19]}Z"
