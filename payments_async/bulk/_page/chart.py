"""The chart of a batch's page as inline SVG: coordinates and words that the template writes. Pure.

Lengths across are percentages and lengths upwards are pixels, so that a chart is as wide as its place and its
words keep their form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import attrs

from .._ledger.figures import Series
from .._texts.quantities import clock, moment

TOP: Final = 22
HEIGHT: Final = 140
_LEAST_SHARE: Final = 0.8
"""Percent that a part of a bar takes at least, so that it is seen."""


@attrs.frozen
class Part:
    """A part of a stacked bar."""

    tone: str
    word: str
    count: int
    x: float
    width: float


def stacked(counts: Sequence[tuple[str, str, int]]) -> list[Part]:
    """One bar of all rows: tone, word and count of each part. Those without rows are left out."""
    there = [count for count in counts if count[2]]
    total = sum(count for _, _, count in there)
    wanted = [max(count / total * 100, _LEAST_SHARE) for _, _, count in there]
    parts, x = list[Part](), 0.0
    for (tone, word, count), width in zip(there, wanted, strict=True):
        share = width * 100 / sum(wanted)
        parts.append(Part(tone, word, count, round(x, 2), round(share, 2)))
        x += share
    return parts


@attrs.frozen
class SpeedChart:
    """Rows decided a second over time. Paths are drawn in 1,000 by 100 units and stretched."""

    created: str
    """The path around all rows that were decided."""
    others: str
    """The path around those that were rejected or are in conflict."""
    ticks: Sequence[tuple[float, str]]
    """Lines across: height in pixels from the top, and the number."""
    begin: str
    end: str
    sentence: str
    """The chart in words."""


def speed_chart(series: Series) -> SpeedChart | None:
    """Draw when rows were decided. None before any was."""
    counts = [*zip(series.created, series.others, strict=True)]
    if not counts:
        return None
    every = [(created + others) / series.width for created, others in counts]
    top = max(every) * 1.04
    is_one_day = moment(series.begin)[:10] == moment(series.end)[:10]
    begin, end = (clock(at) if is_one_day else moment(at) for at in (series.begin, series.end))
    total = sum(series.created) + sum(series.others)
    return SpeedChart(
        _path(every, top),
        _path([others / series.width for _, others in counts], top),
        _ticks(top),
        begin,
        end,
        f"From {begin} to {end} UTC: {total:,} rows decided, {max(every):,.1f} a second at most.",
    )


def _path(heights: Sequence[float], top: float) -> str:
    """A path from the base and back to it, level within each span."""
    wide = 1000 / len(heights)
    corners = ["M0 100", f"V{100 - heights[0] / top * 100:.4g}"]
    for place, (height, after) in enumerate(pairwise(heights), start=1):
        if after != height:
            corners.append(f"H{place * wide:.5g}V{100 - after / top * 100:.4g}")
    return "".join([*corners, "H1000V100Z"])


def _ticks(top: float) -> list[tuple[float, str]]:
    """One to four lines at round numbers: height and number."""
    size = 10.0 ** math.floor(math.log10(top))
    step = next(size * n for n in (0.5, 1.0, 2.0, 5.0) if top / (size * n) < 4.5)
    lines = [step * n for n in range(1, int(top / step) + 1)]
    return [(round(TOP + HEIGHT * (1 - line / top), 1), f"{line:,g}") for line in lines]
