"""Bars as SVG, made from figures. Colours hold on light and dark paper."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from benchmarks.figures import Figure, number

WIDTH, NAMES, LINE, TOP = 720, 220, 26, 44
BARS = WIDTH - NAMES - 90
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#24292f}.title{font-weight:600}.value{fill:#57606a}"
    ".ours{fill:#1a7f64}.theirs{fill:#8c959f}.span{stroke:#57606a}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.value{fill:#9da7b1}.ours{fill:#3fb68b}"
    ".theirs{fill:#6e7681}.span{stroke:#c9d1d9}}"
)


def bars(title: str, figures: Sequence[Figure]) -> str:
    """Horizontal bars in the given order, each with its range; ours stand out."""
    longest = max(figure.high for figure in figures) or 1.0
    height = TOP + LINE * len(figures) + 10
    rows = "".join(_bar(place, figure, BARS / longest) for place, figure in enumerate(figures))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f'<style>{STYLE}</style><text class="title" x="8" y="24">{escape(title)}</text>{rows}</svg>\n'
    )


def _bar(place: int, figure: Figure, scale: float) -> str:
    name = figure.label or figure.what
    top, kind = TOP + place * LINE, "ours" if "payments" in name.lower() else "theirs"
    middle, end = top + 9, NAMES + max(figure.median * scale, 1.0)
    low, high = NAMES + figure.low * scale, NAMES + figure.high * scale
    unit, after = "" if figure.unit == "×" else f" {figure.unit}", max(end, high) + 6
    return (
        f'<text x="{NAMES - 8}" y="{top + 14}" text-anchor="end">{escape(name)}</text>'
        f'<rect class="{kind}" x="{NAMES}" y="{top}" width="{end - NAMES:.1f}" height="18" rx="2"/>'
        f'<line class="span" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>'
        f'<text class="value" x="{after:.1f}" y="{top + 14}">{number(figure.median)}{unit}</text>'
    )


def charted(figures: Sequence[Figure]) -> dict[str, list[Figure]]:
    """The figures of each chart."""
    charts: dict[str, list[Figure]] = {}
    for figure in figures:
        if figure.chart:
            charts.setdefault(figure.chart, []).append(figure)
    return charts
