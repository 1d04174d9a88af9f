"""What a suite hands back: figures, each with its range and, where there is one, its target."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Figure:
    """One reached value: median and range of the rounds; `at_most` or `at_least` is its target."""

    target: str | None
    """The target's id, such as "P1"; None for a figure that stands beside others for comparison."""
    what: str
    """What was measured, in words a user understands: "payouts.create, 64 in flight"."""
    median: float
    low: float
    high: float
    unit: str = "×"
    """"×" for a ratio; else "µs", "s", "MiB", "KiB", "rows/s", "%" and the like."""
    at_most: float | None = None
    at_least: float | None = None
    chart: str = ""
    """The plot in which this figure is a bar, "" for none; `docs/images/<suite>_<chart>.svg`."""
    note: str = ""
    """What a reader must know to read the figure right."""
    label: str = ""
    """What the bar of a chart is called, where `what` is too long for it."""

    @classmethod
    def of(cls, values: Sequence[float], what: str, unit: str = "×", **about: Any) -> Self:
        """The figure of several rounds (or of one)."""
        return cls(
            about.pop("target", None),
            what,
            statistics.median(values),
            min(values),
            max(values),
            unit,
            **about,
        )

    @property
    def met(self) -> bool | None:
        """Whether the median keeps to the target; None without one."""
        if self.at_most is not None:
            return self.median <= self.at_most
        return None if self.at_least is None else self.median >= self.at_least

    @property
    def goal(self) -> str:
        """The target as text."""
        if self.at_most is not None:
            return f"≤ {number(self.at_most)} {self.unit}".strip()
        return "" if self.at_least is None else f"≥ {number(self.at_least)} {self.unit}".strip()

    def row(self) -> str:
        """A line of the table `HEADER` opens."""
        told = {True: "met", False: "**missed**", None: ""}[self.met]
        span = "" if self.low == self.high else f"{number(self.low)} to {number(self.high)}"
        reached = f"{number(self.median)} {self.unit}".strip()
        what = f"{self.what} ({self.note})" if self.note else self.what
        return f"| {self.target or ''} | {what} | {reached} | {span} | {self.goal} | {told} |"

    def to_dict(self) -> dict[str, Any]:
        """For results.json."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Back from results.json."""
        return cls(**data)


HEADER = "| no. | what | reached | range | target | result |\n| --- | --- | --- | --- | --- | --- |"


def table(figures: Iterable[Figure]) -> str:
    """A Markdown table."""
    return "\n".join([HEADER, *(figure.row() for figure in figures)])


def number(value: float) -> str:
    """As many digits as a reader can use, thousands grouped."""
    size = abs(value)
    if size >= 100 or value == 0:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.1 else f"{value:.2g}"
