"""Charts as inline SVG: the coordinates that the templates write. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from .._common.timestamps import stamp
from .._traffic import STEP, Outcome, TrafficStep

WIDTH: Final = 900
HEIGHT: Final = 100
_GAP: Final = 4
_LEAST_HEIGHT: Final = 5.0
"""Of a bar, so that one request in a minute can be seen below a high limit."""
_TONES: Final[Mapping[Outcome, tuple[str, str]]] = {
    "ok": ("ok", "answered"),
    "refused": ("wait", "refused"),
    "failed": ("bad", "failed"),
    "unanswered": ("none", "without an answer"),
}
"""The colour of each outcome and its word, from the bottom of a bar to its top."""


@attrs.frozen
class Bar:
    """A bar that leads to what it stands for; `since` and `until` are timestamps."""

    x: float
    since: str
    until: str
    label: str


@attrs.frozen
class BarChart:
    """Stacked bars, each colour as the data of one SVG path."""

    peak: int
    """The value of the highest bar."""
    wide: float
    """The width of a bar with the gap after it."""
    paths: Mapping[str, str]
    bars: Sequence[Bar]
    legend: Sequence[tuple[str, str, int]]
    """Colour, word and sum of each outcome that there was."""
    since: str
    until: str


def request_chart(steps: Sequence[TrafficStep]) -> BarChart:
    """Stacked bars of requests by their outcome."""
    peak, wide = max(step.total for step in steps), WIDTH / len(steps)
    paths: dict[str, list[str]] = {}
    bars = []
    for column, step in enumerate(steps):
        x, low = column * wide, float(HEIGHT)
        for outcome, (tone, _) in _TONES.items():
            if count := step.requests.get(outcome, 0):
                high = low - count / peak * HEIGHT
                paths.setdefault(tone, []).append(f"M{x:g} {low:.4g}V{high:.4g}h{wide - _GAP:g}V{low:.4g}")
                low = high
        if step.total:
            bars.append(Bar(x, _seconds(step.at), _seconds(step.at + STEP), _label(step)))
    sums = {outcome: sum(step.requests.get(outcome, 0) for step in steps) for outcome in _TONES}
    return BarChart(
        peak=peak,
        wide=wide,
        paths={tone: "".join(parts) for tone, parts in paths.items()},
        bars=bars,
        legend=[(*_TONES[outcome], count) for outcome, count in sums.items() if count],
        since=_seconds(steps[0].at),
        until=_seconds(steps[-1].at + STEP),
    )


@attrs.frozen
class LimitChart:
    """Requests of each minute against a limit."""

    path: str
    limit_at: float
    """The height of the limit's line."""
    label: str


def limit_chart(counts: Sequence[int], limit: int) -> LimitChart:
    """Bars of the requests of each minute, the newest last, below the line of the limit."""
    top, wide = max(limit, *counts, 1) * 1.1, WIDTH / len(counts)
    bars = (
        f"M{at * wide:g} {HEIGHT}v-{max(count / top * HEIGHT, _LEAST_HEIGHT):.4g}h{wide - _GAP:g}V{HEIGHT}"
        for at, count in enumerate(counts)
        if count
    )
    label = f"the last {len(counts)} minutes: {max(counts):,} at most, limit {limit:,}"
    return LimitChart("".join(bars), round(HEIGHT - limit / top * HEIGHT, 1), label)


def sparkline(values: Sequence[float], width: int = 100, height: int = 24) -> str:
    """The data of a path through the values, the first at the left edge and the last at the right."""
    top = max(values) or 1.0
    across = width / max(1, len(values) - 1)
    points = (f"{n * across:.4g} {height - value / top * height:.4g}" for n, value in enumerate(values))
    return "M" + "L".join(points)


def _label(step: TrafficStep) -> str:
    counts = ((word, step.requests.get(outcome, 0)) for outcome, (_, word) in _TONES.items())
    parts = [f"{count:,} {word}" for word, count in counts if count]
    return f"{stamp(step.at)[11:19]}: {', '.join(parts)}"


def _seconds(at: float) -> str:
    """A timestamp to the second."""
    return f"{stamp(at)[:19]}Z"
