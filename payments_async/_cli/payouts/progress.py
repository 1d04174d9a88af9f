"""Views of a run's progress: a bar with figures on a terminal, lines elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import attrs
from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ...bulk import BatchFigures
from ...bulk._texts.figures import activity_text, seconds_left
from ...bulk._texts.outcomes import NAMES
from ...bulk._texts.quantities import counted, duration_text, rate_text
from ...models._masking import clean
from .._output import INDENT, Show

_MINUTE: Final = 60.0
_BAR: Final = 32  # columns of the bar, where there is room for them


@attrs.define
class Pace:
    """How many rows were decided a second, over the last minute that was seen."""

    _seen: deque[tuple[float, int]] = attrs.field(factory=deque)
    """Moments, and how many rows were decided then."""

    def note(self, figures: BatchFigures, at: float) -> None:
        """Note the figures of a moment, in seconds."""
        self._seen.append((at, figures.done))
        while at - self._seen[0][0] > _MINUTE:
            self._seen.popleft()

    @property
    def per_second(self) -> float:
        """0.0 while it is not known."""
        (first, before), (last, now) = self._seen[0], self._seen[-1]
        return (now - before) / (last - first) if last > first else 0.0


@attrs.define
class LinesView:
    """JSON lines or lines of text: at most one in so many seconds."""

    _show: Show
    _every: float = 1.0
    _pace: Pace = attrs.field(factory=Pace)
    _shown_at: float | None = None
    _shown: Mapping[str, int] | None = None

    def show(self, figures: BatchFigures, at: float) -> None:
        """A line, unless there was one just before."""
        self._pace.note(figures, at)
        if self._shown_at is not None and at - self._shown_at < self._every:
            return
        self._shown_at = at
        self._line(figures)

    def end(self, figures: BatchFigures) -> None:
        """A last line, unless the one before says the same."""
        if self._shown not in (None, figures.counts):
            self._line(figures)

    def _line(self, figures: BatchFigures) -> None:
        self._shown = figures.counts
        pace = self._pace.per_second
        left = seconds_left(figures, pace)
        facts: dict[str, Any] = {
            "per_second": round(pace, 1),
            "seconds_left": None if left is None else round(left),
        }
        text = f"{figures.done:,} of {counted(figures.rows, 'row')}"
        text += f", {rate_text(pace)}" if pace else ""
        self._show.step("Progress", text, good=None, **figures.facts(), **facts)

    def note(self, text: str) -> None:
        self._show.step("Note", text, good=None, message=text)


@attrs.define
class BarView:
    """A bar and two lines of figures, redrawn in place."""

    _name: str
    _figures: BatchFigures | None = None
    _pace: Pace = attrs.field(factory=Pace)
    _note: str = ""

    def show(self, figures: BatchFigures, at: float) -> None:
        """Keep this for the next drawing."""
        self._figures = figures
        self._pace.note(figures, at)

    def note(self, text: str) -> None:
        """A line under the figures."""
        self._note = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        figures = self._figures
        if figures is None:
            yield Text(f"  · {self._name:<{INDENT}}…", "dim")
            return
        done, rows = figures.done, figures.rows
        if figures.is_followed:
            done, rows = figures.over, figures.counts["created"]
        name = self._name if figures.activity is None else figures.activity.doing.capitalize()
        width = max(min(_BAR, options.max_width - 36), 8)
        bar = ProgressBar(rows, done, width=width, complete_style="cyan", finished_style="cyan")
        grid = Table.grid(padding=(0, 1))
        grid.add_row(f"  · {name:<{INDENT - 1}}", bar, f"{done:,} of {rows:,}")
        # rows that are decided are not certified, and nobody knows how long the list is
        yield Text(f"  · {'Certifying':<{INDENT}}…") if name == "Reconciling" else grid
        for line in filter(None, (_counts_text(figures), self._now(figures))):
            yield Text(" " * (INDENT + 4) + line, "dim", no_wrap=True, overflow="ellipsis")
        if self._note:
            yield Text(" " * (INDENT + 4) + clean(self._note), "bold yellow")

    def _now(self, figures: BatchFigures) -> str:
        """What the run does, or how fast it pays."""
        pace, left = self._pace.per_second, seconds_left(figures, self._pace.per_second)
        if (text := activity_text(figures.activity)) or not pace:
            return text
        return rate_text(pace) + (f" · {duration_text(left)} left" if left else "")


ProgressView = LinesView | BarView


def _counts_text(figures: BatchFigures) -> str:
    words = ("arrived", "failed", "not_final") if figures.is_followed else ("created", "in_doubt")
    others = (word for word in ("returned", "rejected", "conflict") if figures.counts[word])
    return " · ".join(f"{figures.counts[word]:,} {NAMES[word].strip().lower()}" for word in (*words, *others))
