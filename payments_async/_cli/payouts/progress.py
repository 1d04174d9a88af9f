"""Views of a run's progress: a bar with figures on a terminal, lines elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final, Protocol

import attrs
from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..._runtime import SYSTEM, Timer
from ...bulk import BatchFigures, SpeedFigures
from ...bulk._texts.figures import activity_text, answers_text, leading_sums
from ...bulk._texts.quantities import counted, duration_text, rate_text
from ...bulk.sources import FileStat, Source, SourceItem
from ...bulk.sources import open_source as open_file
from ...models._masking import clean
from ...models.common import grouped
from .._output import INDENT, Show
from .summary import minute_chart

_EVERY: Final = 1.0
_MINUTE: Final = 60
"""Seconds that the chart has once a minute is over."""
_LEFT: Final = INDENT + 4
_NAMES: Final = {"waiting": "Waiting", "reading": "Reading", "following": "Following"}
"""Activities that have a name of their own."""
_NOT_TAKEN: Final = (("rejected", "rejected"), ("conflict", "in conflict"))
_ENDED: Final = (
    ("arrived", "arrived"),
    ("returned", "returned"),
    ("failed", "failed"),
    ("not_final", "not final yet"),
)
_AFTER: Final = ("following", "reconciling")
"""Activities that send no rows."""


class ProgressView(Protocol):
    """Shows the progress of a run."""

    def read(self, rows: int, number: int = 1) -> None:
        """Show the rows read in this pass: the first one checks the input, the second records it."""

    def show(self, figures: BatchFigures, at: float) -> None:
        """Show the figures of this moment, in seconds."""

    def note(self, text: str) -> None:
        """Show a sentence at once, unless it was the last one; "" ends it."""


@attrs.define
class LinesView:
    """JSON lines or lines of text: at most one in so many seconds."""

    _show: Show
    _every: float = _EVERY
    _shown_at: float | None = None
    _later: Timer | None = None
    """Shows what came soon after a line, when its time is over."""
    _noted: str = ""

    def read(self, rows: int, number: int = 1) -> None:
        """A line, unless there was one just before."""
        if self._is_time(SYSTEM.monotonic()):
            facts: dict[str, Any] = {"rows": rows, "pass": number}
            self._show.step("Reading", counted(rows, "row"), good=None, **facts)

    def show(self, figures: BatchFigures, at: float) -> None:
        """A line, now or when it is time."""
        self.close()
        if self._is_time(at):
            self._print(figures)
        else:
            self._later = SYSTEM.call_later(self._every, lambda: self.show(figures, SYSTEM.monotonic()))

    def close(self) -> None:
        """Show nothing later."""
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _print(self, figures: BatchFigures) -> None:
        speed = figures.speed.per_second if figures.speed else 0.0
        left = figures.seconds_left
        self._show.step(
            "Progress",
            f"{figures.done:,} of {counted(figures.rows, 'row')}"
            + (f", {rate_text(speed)}" if speed else ""),
            good=None,
            **figures.facts(),
            per_second=round(speed, 1),
            seconds_left=None if left is None else round(left),
        )

    def note(self, text: str) -> None:
        """A line of its own."""
        if text and text != self._noted:
            self._show.step("Note", text, good=None, message=text)
        self._noted = text

    def _is_time(self, at: float) -> bool:
        if self._shown_at is not None and at - self._shown_at < self._every:
            return False
        self._shown_at = at
        return True


@attrs.define
class BarView:
    """A bar and a few lines of figures, redrawn in place."""

    _name: str
    _figures: BatchFigures | None = None
    _read: int = 0
    _number: int = 1
    _note: str = ""

    def read(self, rows: int, number: int = 1) -> None:
        """Keep this for the next drawing."""
        self._read, self._number = rows, number

    def show(self, figures: BatchFigures, at: float) -> None:
        """Keep this for the next drawing."""
        self._figures = figures

    def note(self, text: str) -> None:
        """A line under the figures."""
        self._note = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        figures = self._figures
        if figures is None:
            rows = counted(self._read, "row") if self._read else "…"
            rows += f", pass {self._number}" if self._number > 1 else ""
            yield Text(f"  · {self._name:<{INDENT}}{rows}", "dim")
            return
        yield self._bar(figures, options.max_width)
        pad = " " * _LEFT
        chart, answers = _speed_lines(figures, options.max_width - _LEFT)
        lines = (self._rows(figures), activity_text(figures.activity), self._pace(figures), chart, answers)
        for line in filter(None, (*lines, *_money(figures))):
            style = "cyan" if line is chart else "dim"
            yield Text(pad + line, style, no_wrap=True, overflow="ellipsis")
        if self._note:
            yield Text(pad + clean(self._note), "bold yellow")

    def _bar(self, figures: BatchFigures, width: int) -> Table:
        done, rows = _done_and_total(figures)
        count = f"{done:,} of {rows:,}"
        share = f"{done * 100 // max(rows, 1)} %"
        room = max(width - _LEFT - len(count) - len(share) - 5, 10)
        grid = Table.grid(padding=(0, 1))
        bar = ProgressBar(rows, done, width=min(room, 60), complete_style="cyan", finished_style="cyan")
        name = _NAMES.get(figures.activity.doing, self._name) if figures.activity else self._name
        grid.add_row(f"  · {name:<{INDENT - 1}}", bar, count, f"[dim]{share}[/]")
        return grid

    def _rows(self, figures: BatchFigures) -> str:
        parts = [f"{figures.counts['created']:,} created", f"{figures.counts['in_doubt']:,} in doubt"]
        if figures.is_followed:
            ended = [(figures.counts[word], words) for word, words in _ENDED]
            parts = [f"{rows:,} {words}" for rows, words in ended if rows or words != "returned"]
        parts += [f"{figures.counts[state]:,} {word}" for state, word in _NOT_TAKEN if figures.counts[state]]
        return " · ".join(parts)

    def _pace(self, figures: BatchFigures) -> str:
        speed = figures.speed
        is_paying = figures.activity is None or figures.activity.doing == "paying"
        if not (speed and speed.per_second and is_paying):
            return ""
        left = figures.seconds_left
        parts = [rate_text(speed.per_second) + _limit_text(speed)]
        parts += [f"{sum(speed.minute):,} in the last minute"] if len(speed.minute) == _MINUTE else []
        parts += [f"{duration_text(left)} left"] if left else []
        return " · ".join(parts)


def _limit_text(speed: SpeedFigures) -> str:
    """` of 1,000, closed by a 429`; "" while the limit is unknown."""
    if speed.limit is None:
        return ""
    closed = ", closed by a 429" if speed.closed else ""
    return f" of {speed.limit:,.0f}{closed}" if speed.limit >= 10 else f" of {speed.limit:,.1f}{closed}"


def _speed_lines(figures: BatchFigures, width: int) -> tuple[str, str]:
    """The last minute as a chart, and what came back; "" where it is not known, or no longer of interest."""
    if figures.speed is None or _is_all_sent(figures):
        return "", ""
    return minute_chart(figures.speed, width), answers_text(figures.speed)


def _is_all_sent(figures: BatchFigures) -> bool:
    """Return whether a pace is of no interest any longer."""
    return figures.activity is not None and figures.activity.doing in _AFTER


def _done_and_total(figures: BatchFigures) -> tuple[int, int]:
    """Rows decided of all rows; later, payouts ended of all that were created."""
    if figures.is_followed:
        return figures.over, figures.counts["created"]
    return figures.done, figures.rows


def _money(figures: BatchFigures) -> Iterator[str]:
    pairs = [(currency, grouped(done), grouped(asked)) for currency, done, asked in leading_sums(figures)]
    _, wide, wide_asked = (max(map(len, each)) for each in zip(("", "", ""), *pairs, strict=True))
    for currency, done, asked in pairs:
        yield f"{currency} {done:>{wide}} of {asked:>{wide_asked}}"


_EACH: Final = 500


class CountedSource(Source):
    """A source that reports how many rows were read."""

    def __init__(self, source: Source, on_read: Callable[[int, int], object]) -> None:
        super().__init__()
        self._source, self._on_read, self._passes = source, on_read, 0
        self.name: str = source.name

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override] # known once reading has begun
        """The names of the source's columns."""
        return self._source.columns

    async def rows(self) -> AsyncIterator[SourceItem]:
        """The source's rows. Raises what it raises."""
        items, rows, latest, self._passes = 0, 0, None, self._passes + 1
        async for item in self._source.rows():
            items += 1
            if item.number not in (None, latest):  # the faults of one row follow each other
                rows, latest = rows + 1, item.number
            if items % _EACH == 0:
                self._on_read(rows, self._passes)
            yield item
        self._on_read(rows, self._passes)

    def stat(self) -> FileStat | None:
        """The size and time by which a change of the source is seen."""
        return self._source.stat()

    def fingerprint(self) -> str:
        """The hash of the source's rows."""
        return self._source.fingerprint()


def readable(path: str, **form: Any) -> Source:
    """The file as a source; `form`: options of `open_source`. Raises SourceUnreadable when it is none."""
    source = open_file(path, **form)
    source.stat()
    return source
