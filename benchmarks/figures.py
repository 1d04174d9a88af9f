"""What a suite hands back: figures, each with its range and its target, if any; kept in results.json."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

KEPT = Path(__file__).with_name("results.json")


@dataclass(frozen=True)
class Figure:
    """One reached value: median and range of the rounds; `at_most` or `at_least` is its target."""

    what: str
    """What was measured, in words a user understands: "payouts.create, 64 in flight"."""
    median: float
    low: float
    high: float
    unit: str = "×"
    """"×" for a ratio; else "µs", "MiB", "%" and the like."""
    at_most: float | None = None
    at_least: float | None = None

    @classmethod
    def of(cls, values: Sequence[float], what: str, unit: str = "×", **target: float | None) -> Self:
        """The figure of several rounds (or of one)."""
        return cls(what, statistics.median(values), min(values), max(values), unit, **target)

    @property
    def met(self) -> bool | None:
        """Whether the median keeps to the target; None without one."""
        if self.at_most is not None:
            return self.median <= self.at_most
        return None if self.at_least is None else self.median >= self.at_least

    def row(self) -> str:
        """A line of the table `HEADER` opens."""
        span = "" if self.low == self.high else f"{number(self.low)} to {number(self.high)}"
        goal, result = "", {True: "met", False: "**missed**", None: ""}[self.met]
        for sign, bound in (("≤", self.at_most), ("≥", self.at_least)):
            goal = goal if bound is None else f"{sign} {number(bound)} {self.unit}".strip()
        reached = f"{number(self.median)} {self.unit}".strip()
        return f"| {self.what} | {reached} | {span} | {goal} | {result} |"


HEADER = "| what | reached | range | target | result |\n| --- | --- | --- | --- | --- |"


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


@dataclass(frozen=True)
class Reached:
    """One suite's figures, and when and where they were measured."""

    name: str
    figures: list[Figure]
    circumstances: str
    """The day, Python, processor and libraries, how long it took and how busy the machine was."""


def read(path: Path = KEPT) -> dict[str, Reached]:
    """The suites that were kept, by name."""
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {
        name: Reached(name, [Figure(**each) for each in suite["figures"]], suite["circumstances"])
        for name, suite in kept.items()
    }


def write(suites: Iterable[Reached], path: Path = KEPT) -> None:
    """Keep them, in their order."""
    kept = {
        each.name: {
            "circumstances": each.circumstances,
            "figures": [
                {name: value for name, value in asdict(figure).items() if value is not None}
                for figure in each.figures
            ],
        }
        for each in suites
    }
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
