"""Paired rounds: these machines are shared, so two things are measured in turn and their ratios compared."""

from __future__ import annotations

import statistics
from collections.abc import Callable

Measure = Callable[[], float]
"""One round; gives CPU seconds per operation."""


def ratios(ours: Measure, theirs: Measure, rounds: int = 7) -> list[float]:
    """The ratio of each pair, ours over theirs, after one round of each that does not count."""
    ours(), theirs()
    return [ours() / theirs() for _ in range(rounds)]


def row(name: str, values: list[float]) -> str:
    """A line of a Markdown table: median and range."""
    return f"| {name} | {statistics.median(values):.2f} | {min(values):.2f} to {max(values):.2f} |"


HEADER = "| ours over theirs, CPU | median | range |\n| --- | --- | --- |"
