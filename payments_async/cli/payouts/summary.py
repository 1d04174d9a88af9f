"""Rows and sums of a batch, as a table with a line for each outcome and a column for each currency. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import attrs
from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table

from ...bulk import BatchReport, Progress
from ...bulk.protocol.run_figures import SpeedFigures
from ...models.common import amount_text, grouped
from .._output import FirstThatFits
from .._text import took_text

Money = Mapping[str, Decimal]
"""{currency: sum, major units}."""

_OPEN: Final = ("not_started", "under_way", "in_doubt")
_WINDOW: Final = 15.0
_LEAST: Final = 2.0
_MINUTE: Final = 60.0
_LONG_NAME: Final = 40


@attrs.frozen
class BatchFigures:
    """Counts and exact sums, and what a run does now."""

    counts: Mapping[str, int]
    """{word: its rows}, as `bulk.Progress.counts`."""
    sums: Mapping[str, Mapping[str, Decimal]]
    """{currency: {word: the sum of its rows, major units}}, as `bulk.Progress.sums`."""
    activity: Mapping[str, Any] | None = None
    """The run's activity, by the names of `bulk.Activity`; None without a run."""
    speed: SpeedFigures | None = None
    """What came back, and how fast; None where it was not read."""
    is_followed: bool = False
    """True once every row is decided, and the run waits for payouts to be final."""

    @classmethod
    def read(cls, status: Mapping[str, Any]) -> BatchFigures:
        """From the content of a status file."""
        sums = {
            currency: {word: Decimal(amount) for word, amount in of_currency.items()}
            for currency, of_currency in status["sums"].items()
        }
        speed = SpeedFigures.read(status.get("speed"))
        return cls(status["rows"], sums, status.get("activity"), speed)

    @property
    def rows(self) -> int:
        """All rows."""
        return self.counts["asked"]

    @property
    def done(self) -> int:
        """Rows that are decided."""
        return self.rows - sum(self.counts[state] for state in _OPEN)

    @property
    def over(self) -> int:
        """Payouts that are final."""
        return self.counts["created"] - self.counts["not_final"]

    @property
    def is_untouched(self) -> bool:
        """True if no row was ever sent."""
        return self.rows == self.counts["not_started"] + self.counts["cancelled"]

    def payable(self) -> dict[str, Decimal]:
        """{currency: sum of all rows but the cancelled ones}."""
        return Progress(self.counts, self.sums).payable

    def facts(self) -> dict[str, Any]:
        """For programs; amounts are text."""
        speed = {} if self.speed is None else {"answers": self.speed.facts()}
        return {
            "rows": dict(self.counts),
            "done": self.done,
            **(self.activity or {}),
            **speed,
            "sums": {currency: plain_sums(sums) for currency, sums in self.sums.items()},
        }


@attrs.define
class Speed:
    """The speed of deciding rows: per second over the last 15 seconds, and within the last minute."""

    _recent: deque[tuple[float, int]] = attrs.field(factory=deque)
    _minute: deque[tuple[float, int]] = attrs.field(factory=deque)

    def add(self, at: float, done: int) -> None:
        """Note how many rows were decided at this time, in seconds."""
        for window, seconds in ((self._recent, _WINDOW), (self._minute, _MINUTE)):
            window.append((at, done))
            while len(window) > 2 and at - window[1][0] >= seconds:
                window.popleft()

    @property
    def per_second(self) -> float:
        """Rows a second; 0 while it is unknown."""
        if len(self._recent) < 2:
            return 0.0
        (began, before), (at, done) = self._recent[0], self._recent[-1]
        return (done - before) / (at - began) if at > began else 0.0

    @property
    def last_minute(self) -> int | None:
        """Rows of the last minute, which the service limits; None during the first minute."""
        (began, before), (at, done) = self._minute[0], self._minute[-1]
        return done - before if at - began >= _MINUTE else None

    def seconds_left(self, rows: int) -> float | None:
        """Seconds until so many more rows are decided; None while it is unknown."""
        is_early = not self._recent or self._recent[-1][0] - self._recent[0][0] < _LEAST
        return None if is_early or self.per_second <= 0 else rows / self.per_second


def activity_text(activity: Mapping[str, Any] | None, since: float = 0.0) -> str:
    """`3 rows wait, next check in 12 s: …`, or how much of the list was read. `since`: seconds ago."""
    if not activity:
        return ""
    waiting, listed, seconds = activity["waiting"], activity["listed"], activity["next_look"]
    text = f"{waiting:,} row{' waits' if waiting == 1 else 's wait'}" if waiting else ""
    if not waiting and listed:
        text = f"{listed:,} payout{'' if listed == 1 else 's'} of the service's list read"
    if text and seconds is not None:
        text += f", next check in {duration_text(round(max(seconds - since, 0.0)))}"
    return f"{text}: {activity['why']}" if waiting else text  # the reason last: a narrow terminal cuts it off


def rate_text(per_second: float) -> str:
    """`1,135 a second`; below ten with a tenth."""
    return f"{per_second:,.1f} a second" if per_second < 10 else f"{per_second:,.0f} a second"


def answers_text(speed: SpeedFigures) -> str:
    """`p95 180 ms · 3 refused (429) · 12 other errors · 1 unanswered`, from the first answer on."""
    parts = [] if speed.p95 is None else [f"p95 {took_text(speed.p95)}"]
    parts += [
        f"{speed.refused:,} refused (429)",
        f"{speed.failed:,} other error{'' if speed.failed == 1 else 's'}",
    ]
    return " · ".join([*parts, f"{speed.no_answer:,} unanswered"])


_BLOCKS: Final = "▁▂▃▄▅▆▇█"


def minute_chart(speed: SpeedFigures, width: int) -> str:
    """`▁▂▅█▇▇  peak 310 a second`: payouts in each of the last seconds, 60 at most, in so many columns."""
    peak = max(speed.minute, default=0)
    text = f"  peak {rate_text(peak)}"
    if not peak:
        return ""
    highest, shown = len(_BLOCKS) - 1, speed.minute[-max(width - len(text), 8) :]
    return "".join(_BLOCKS[round(each / peak * highest)] if each else " " for each in shown) + text


def duration_text(seconds: float) -> str:
    """`42 s`, `3 min 20 s`, `2 h 05 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


_NAMES: Final = {
    "created": "Created",
    "arrived": "  arrived",
    "returned": "  returned",
    "failed": "  failed",
    "not_final": "  not final yet",
    "rejected": "Rejected",
    "conflict": "Conflict",
    "in_doubt": "In doubt",
    "under_way": "Under way",
    "not_started": "Not started",
    "cancelled": "Cancelled",
}
_EXTRA: Final = {"moved_in_conflict": "Moved in conflict", "in_excess": "In excess"}
"""Payouts that stand for no row."""
_ALWAYS: Final = ("created", "rejected", "in_doubt")
_STYLES: Final = {
    **dict.fromkeys(("created", "arrived"), "green"),
    **dict.fromkeys(("returned", "failed"), "bold red"),
    "not_final": "dim",
    **dict.fromkeys(("rejected", "conflict"), "red"),
    "in_doubt": "bold yellow",
}


def state_table(figures: BatchFigures) -> FirstThatFits:
    """The table. States without rows are left out, except the most important ones.

    Currencies that have no room side by side come below it.
    """
    beside, below = _states(figures, [*figures.sums]), _with_list(_states(figures, []), figures)
    return FirstThatFits([Padding(table, (1, 0, 1, 4), expand=False) for table in (beside, below)])


def _states(figures: BatchFigures, beside: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("")
    table.add_column("Rows", justify="right", min_width=9)
    for currency in beside:
        table.add_column(currency, justify="right", min_width=12)
    shown = [word for word in _NAMES if figures.counts[word] or word in _ALWAYS]
    for word in shown:
        number = figures.counts[word]
        sums = (figures.sums[currency][word] for currency in beside)
        cells = (grouped(amount) if amount else "" for amount in sums)
        style = _STYLES.get(word, "") if number else "dim"
        table.add_row(_NAMES[word], f"{number:,}", *cells, style=style, end_section=word == shown[-1])
    totals = (grouped(figures.sums[currency]["asked"]) for currency in beside)
    table.add_row("All", f"{figures.rows:,}", *totals)
    for word, name in _EXTRA.items():
        if number := figures.counts[word]:
            cells = (
                grouped(amount) if (amount := figures.sums[currency][word]) else "" for currency in beside
            )
            table.add_row(name, f"{number:,}", *cells, style="bold red")
    return table


def _with_list(table: Table, figures: BatchFigures) -> Table:
    """The table, and below it the currencies, which are too many for columns."""
    both = Table.grid()
    both.add_row(table)
    both.add_row("")
    money = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    word = "arrived" if figures.over else "created"
    for name in ("", word.capitalize(), "All"):
        money.add_column(name, justify="right" if name else "left", min_width=12 if name else None)
    for currency, sums in figures.sums.items():
        money.add_row(currency, grouped(sums[word]), grouped(sums["asked"]))
    both.add_row(money)
    return both


_NOT_PAID: Final = {
    "failed": "failed",
    "returned": "returned",
    "rejected": "rejected",
    "conflict": "in conflict",
    "in_excess": "in excess",
}


def failures_text(counts: Mapping[str, int]) -> str:
    """`15 failed, 1 rejected, 2 in conflict`: the rows that did not end as they should; empty without any."""
    return ", ".join(f"{counts[each]:,} {words}" for each, words in _NOT_PAID.items() if counts[each])


def figures_of(progress: Progress) -> BatchFigures:
    """The figures of a batch's progress or report."""
    activity = None if progress.activity is None else attrs.asdict(progress.activity)
    return BatchFigures(progress.counts, progress.sums, activity)


def title_of(batch_id: str) -> str:
    """The batch for people: a hash is cut short."""
    return f"batch {batch_id[:12]}…" if len(batch_id) > _LONG_NAME else f"batch {batch_id}"


def result(report: BatchReport, code: int, steps: Iterable[str]) -> dict[str, Any]:
    """A report for programs, with the exit code and what to do next."""
    facts = figures_of(report).facts()
    return {
        "batch_id": report.batch_id,
        **facts,
        "complete": report.complete,
        "balanced": report.balanced,
        "stopped": report.stopped,
        "resumable": report.resumable,
        "payable": plain_sums(report.payable),
        "exit_code": int(code),
        "next": " ".join(steps),
    }


# Sums


def plain(amount: Decimal) -> str:
    """Plain digits, never an exponent: `10.10`."""
    return format(amount, "f")


def plain_sums(totals: Money) -> dict[str, str]:
    """For programs: `{"XOF": "1200.50"}`."""
    return {currency: plain(amount) for currency, amount in sorted(totals.items())}


def money_text(totals: Money) -> str:
    """For people: `GHS 3.07, XOF 1,200.50`."""
    return ", ".join(amount_text(currency, total) for currency, total in sorted(totals.items())) or "nothing"
