"""Shows the progress of a run: a bar with figures on a terminal, a JSON line a second anywhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final, Protocol

import attrs
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..._runtime import SYSTEM, Timer
from ...bulk.sources import Source, SourceItem
from ...bulk.sources import open_source as open_file
from ...bulk.sources._base import FileStat
from ...models._masking import clean
from .._output import INDENT, Show
from .amounts import grouped
from .messages import counted
from .summary import BatchFigures, Speed, told_activity, told_duration, told_rate

_EVERY: Final = 1.0
_LEFT: Final = INDENT + 4
_NAMES: Final = {"waiting": "Waiting", "following": "Following", "certifying": "Certifying"}
"""What is being done, where it has a name of its own."""


class ProgressView(Protocol):
    """Where the progress of a run is shown."""

    def read(self, rows: int, number: int = 1) -> None:
        """So many rows of the input were read, in this pass: it is checked, then recorded."""

    def show(self, figures: BatchFigures, at: float) -> None:
        """So far it had come at this time, in seconds."""

    def note(self, text: str) -> None:
        """Something the onlooker should know at once."""


@attrs.define
class JsonLinesView:
    """JSON lines: at most one a second, and whatever is said last."""

    _show: Show
    _speed: Speed = attrs.field(factory=Speed)
    _told: float | None = None
    _later: Timer | None = None
    """Tells what came within a second of a line, when the second is over."""

    def read(self, rows: int, number: int = 1) -> None:
        """A line, unless there was one within the last second."""
        if self._is_time(SYSTEM.monotonic()):
            facts: dict[str, Any] = {"rows": rows, "pass": number}
            self._show.step("Reading", "", **facts)

    def show(self, figures: BatchFigures, at: float) -> None:
        """The same."""
        self._speed.saw(at, figures.done)
        self.close()
        if self._is_time(at):
            self._tell(figures)
        else:
            self._later = SYSTEM.call_later(_EVERY, lambda: self.show(figures, SYSTEM.monotonic()))

    def close(self) -> None:
        """Tell nothing later."""
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _tell(self, figures: BatchFigures) -> None:
        left = self._speed.seconds_left(figures.rows - figures.done)
        self._show.step(
            "Progress",
            "",
            **figures.facts(),
            per_second=round(self._speed.per_second, 1),
            seconds_left=None if left is None else round(left),
        )

    def note(self, text: str) -> None:
        """A line of its own."""
        self._show.step("Note", text, told=text)

    def _is_time(self, at: float) -> bool:
        if self._told is not None and at - self._told < _EVERY:
            return False
        self._told = at
        return True


@attrs.define
class BarView:
    """A bar and up to a few lines of figures, drawn over and over in place."""

    _name: str
    _figures: BatchFigures | None = None
    _speed: Speed = attrs.field(factory=Speed)
    _read: int = 0
    _turn: int = 1
    _note: str = ""

    def read(self, rows: int, number: int = 1) -> None:
        """Keep it for the next drawing."""
        self._read, self._turn = rows, number

    def show(self, figures: BatchFigures, at: float) -> None:
        """Keep it for the next drawing."""
        self._speed.saw(at, figures.done)
        self._figures = figures

    def note(self, text: str) -> None:
        """A line under the figures."""
        self._note = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        figures = self._figures
        if figures is None:
            told = counted(self._read, "row") if self._read else "…"
            told += f", pass {self._turn}" if self._turn > 1 else ""
            yield Text(f"  · {self._name:<{INDENT}}{told}", "dim")
            return
        yield self._bar(figures, options.max_width)
        pad = " " * _LEFT
        told = told_activity(figures.activity)
        for line in filter(None, (self._rows(figures), told, self._pace(figures), *_money(figures))):
            yield Text(pad + line, "dim", no_wrap=True, overflow="ellipsis")
        if self._note:
            yield Text(pad + clean(self._note), "bold yellow")

    def _bar(self, figures: BatchFigures, width: int) -> Table:
        done, rows = _come(figures)
        told = f"{done:,} of {rows:,}"
        share = f"{done * 100 // max(rows, 1)} %"
        room = max(width - _LEFT - len(told) - len(share) - 5, 10)
        grid = Table.grid(padding=(0, 1))
        bar = ProgressBar(rows, done, width=min(room, 60), complete_style="cyan", finished_style="cyan")
        name = _NAMES.get((figures.activity or {}).get("doing", ""), self._name)
        name = "Following" if _is_followed(figures) else name
        grid.add_row(f"  · {name:<{INDENT - 1}}", bar, told, f"[dim]{share}[/]")
        return grid

    def _rows(self, figures: BatchFigures) -> str:
        told = [f"{figures.counts['created']:,} created", f"{figures.counts['in_doubt']:,} in doubt"]
        if (ended := figures.ended) is not None and _is_followed(figures):
            told = [f"{ended.arrived:,} arrived", f"{ended.failed:,} failed"]
            told += [f"{ended.awaited:,} not final yet"]
        told += [f"{figures.counts[s]:,} {s}" for s in ("rejected", "conflict") if figures.counts[s]]
        return " · ".join(told)

    def _pace(self, figures: BatchFigures) -> str:
        speed = self._speed.per_second
        if not speed or _is_followed(figures) or (figures.activity or {}).get("waiting"):
            return ""
        left = self._speed.seconds_left(figures.rows - figures.done)
        minute = self._speed.last_minute
        told = [told_rate(speed), *([f"{minute:,} in the last minute"] if minute is not None else [])]
        return " · ".join([*told, *([f"{told_duration(left)} left"] if left else [])])


def _is_followed(figures: BatchFigures) -> bool:
    """Whether every row is decided, and it is the payouts that are waited for."""
    return figures.ended is not None and figures.done == figures.rows


def _come(figures: BatchFigures) -> tuple[int, int]:
    """How far it is, of how much: rows decided, and then payouts ended."""
    if figures.ended is not None and _is_followed(figures):
        return figures.ended.over, figures.counts["created"]
    return figures.done, figures.rows


def _money(figures: BatchFigures) -> Iterator[str]:
    totals = figures.payable()
    moved = {currency: grouped(figures.sum_of(currency, "created")) for currency in totals}
    wide = max((len(amount) for amount in moved.values()), default=0)
    wide_total = max((len(grouped(total)) for total in totals.values()), default=0)
    for currency, total in totals.items():
        yield f"{currency} {moved[currency]:>{wide}} of {grouped(total):>{wide_total}}"


@contextmanager
def board_on(console: Console, show: Show, name: str, *, as_json: bool) -> Iterator[ProgressView]:
    """A bar on a terminal, which goes away at the end; else lines."""
    if as_json or not console.is_terminal:
        with closing(JsonLinesView(show)) as lines:
            yield lines
        return
    bar = BarView(name)
    with Live(bar, console=console, refresh_per_second=8, transient=True):
        yield bar


_EACH: Final = 500


class Watched(Source):
    """A source that tells how many rows were read, and lets signals through meanwhile."""

    def __init__(self, source: Source, tell: Callable[[int, int], object]) -> None:
        super().__init__()
        self._source, self._tell, self._passes = source, tell, 0
        self.name: str = source.name

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override] # the source's own, known once reading has begun
        """The names of the source's columns."""
        return self._source.columns

    async def rows(self) -> AsyncIterator[SourceItem]:
        """The source's rows. Raises what it raises."""
        number, self._passes = 0, self._passes + 1
        async for item in self._source.rows():
            number += 1
            if number % _EACH == 0:
                self._tell(number, self._passes)
                await SYSTEM.sleep(0)  # a file is read without waiting: signals are heard here
            yield item
        self._tell(number, self._passes)

    def stat(self) -> FileStat | None:
        """What shows a change of the source."""
        return self._source.stat()

    def fingerprint(self) -> str:
        """The hash of what the source's rows say."""
        return self._source.fingerprint()


def readable(path: str, *, strict_amounts: bool, delimiter: str | None) -> Source:
    """The file as a source. Raises SourceUnreadable when it cannot be one."""
    source = open_file(path, strict_amounts=strict_amounts, delimiter=delimiter)
    source.stat()
    return source
