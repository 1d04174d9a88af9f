"""Rows and sums of a batch, as a table with a line for each state and a column for each currency. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import reduce
from typing import Any, Final

import attrs
from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table

from ...bulk import BatchReport, CreatedMoney, Progress, RowState
from ...bulk.protocol.run_figures import SpeedFigures
from ...models.common import amount_text, grouped
from .._output import FirstThatFits
from .._text import took_text

Money = Mapping[str, Decimal]
"""{currency: sum, major units}."""

_EXACT: Final = Context(prec=200, traps=[Inexact, InvalidOperation])
"""Wide enough for any batch; a sum that would be rounded raises instead."""

STATES: Final = ("created", "rejected", "conflict", "in_doubt", "in_flight", "new", "cancelled")
"""The states of a row, in the order of tables."""

_OPEN: Final = ("new", "in_flight", "in_doubt")
_WINDOW: Final = 15.0
_LEAST: Final = 2.0
_MINUTE: Final = 60.0
_LONG_NAME: Final = 40


@attrs.frozen
class EndFigures:
    """Final statuses of the created payouts, as far as the ledger knows, in rows and sums."""

    arrived: int
    failed: int
    awaited: int
    """Not known to be final."""
    money: Mapping[str, CreatedMoney] = attrs.field(factory=dict)
    """{currency: the sum of its created rows, and how much of it arrived}."""

    @property
    def over(self) -> int:
        """Payouts that are final."""
        return self.arrived + self.failed


@attrs.frozen
class BatchFigures:
    """Counts and exact sums by state."""

    rows: int
    counts: Mapping[str, int]
    """{state: its rows}, every state of `STATES`."""
    sums: Mapping[str, Mapping[str, Decimal]]
    """{currency: {state: the sum of its rows, major units}}."""
    ended: EndFigures | None = None
    """None where it was not counted."""
    activity: Mapping[str, Any] | None = None
    """The run's activity, by the names of `bulk.Activity`; None without a run."""
    speed: SpeedFigures | None = None
    """What came back, and how fast; None where it was not read."""

    @classmethod
    def of(
        cls,
        counts: Mapping[Any, int],
        sums: Mapping[str, Mapping[Any, Any]],
        ended: EndFigures | None = None,
        activity: Mapping[str, Any] | None = None,
    ) -> BatchFigures:
        """From a batch's progress or its status file."""
        known = {str(state).lower(): number for state, number in counts.items()}
        every = {state: known.get(state, 0) for state in STATES}
        money = {
            currency: {str(state).lower(): Decimal(amount) for state, amount in by_state.items()}
            for currency, by_state in sorted(sums.items())
        }
        return cls(sum(every.values()), every, money, ended, activity)

    @property
    def done(self) -> int:
        """Rows that are decided."""
        return self.rows - sum(self.counts[state] for state in _OPEN)

    @property
    def is_untouched(self) -> bool:
        """True if no row was ever sent."""
        return self.rows == self.counts["new"] + self.counts["cancelled"]

    def sum_of(self, currency: str, *states: str) -> Decimal:
        """The sum of the rows in these states, major units."""
        return total_of(self.sums[currency].get(state, Decimal(0)) for state in states)

    def payable(self) -> dict[str, Decimal]:
        """{currency: sum of all rows but the cancelled ones}."""
        wanted = [state for state in STATES if state != "cancelled"]
        return {currency: self.sum_of(currency, *wanted) for currency in self.sums}

    def facts(self) -> dict[str, Any]:
        """For programs; amounts are text."""
        sums = {
            currency: {state: plain(amount) for state, amount in by_state.items()}
            for currency, by_state in self.sums.items()
        }
        ended: dict[str, Any] = {}
        if self.ended is not None:
            money = {currency: sums.facts() for currency, sums in self.ended.money.items()}
            ended = {**attrs.asdict(self.ended, recurse=False), "money": money}
        activity = self.activity or {}
        speed = {} if self.speed is None else {"answers": self.speed.facts()}
        return {
            "rows": self.rows,
            "done": self.done,
            **self.counts,
            **ended,
            **activity,
            **speed,
            "sums": sums,
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
    "rejected": "Rejected",
    "conflict": "Conflict",
    "in_doubt": "In doubt",
    "in_flight": "Under way",
    "new": "Not started",
    "cancelled": "Cancelled",
}
_ALWAYS: Final = ("created", "rejected", "in_doubt")


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
    shown = [state for state in STATES if figures.counts[state] or state in _ALWAYS]
    for state in shown:
        sums = (figures.sum_of(currency, state) for currency in beside)
        cells = (grouped(amount) if amount else "" for amount in sums)
        name, style = _NAMES[state], _style(state, figures)
        ended = _ended(figures) if state == "created" else []
        is_last = state == shown[-1]
        table.add_row(
            name, f"{figures.counts[state]:,}", *cells, style=style, end_section=is_last and not ended
        )
        for words, number, shade, sums_of in ended:
            is_end = is_last and words == ended[-1][0]
            cells = (grouped(amount) if (amount := sums_of(currency)) else "" for currency in beside)
            table.add_row(f"  {words}", f"{number:,}", *cells, style=shade, end_section=is_end)
    totals = (grouped(figures.sum_of(currency, *STATES)) for currency in beside)
    table.add_row("All", f"{figures.rows:,}", *totals)
    return table


def _ended(figures: BatchFigures) -> list[tuple[str, int, str, Callable[[str], Decimal | None]]]:
    """Final statuses of the created payouts: name, rows, style, and the sum of a currency."""
    ended = figures.ended
    if ended is None or not figures.counts["created"]:
        return []
    parts = [
        ("arrived", ended.arrived, "green", "arrived"),
        ("failed", ended.failed, "bold red", "failed"),
        ("not final yet", ended.awaited, "dim", "not_final"),
    ]
    return [(words, rows, style, _sum_of(ended, name)) for words, rows, style, name in parts if rows]


def _sum_of(ended: EndFigures, name: str) -> Callable[[str], Decimal | None]:
    return lambda currency: getattr(ended.money.get(currency), name, None)


def _with_list(table: Table, figures: BatchFigures) -> Table:
    """The table, and below it the currencies, which are too many for columns."""
    both = Table.grid()
    both.add_row(table)
    both.add_row("")
    money = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    ended = figures.ended if figures.ended and figures.ended.over else None
    for name in ("", "Arrived" if ended else "Created", "All"):
        money.add_column(name, justify="right" if name else "left", min_width=12 if name else None)
    for currency in figures.sums:
        arrived = _sum_of(ended, "arrived")(currency) or Decimal(0) if ended else None
        amount = figures.sum_of(currency, "created") if arrived is None else arrived
        money.add_row(currency, grouped(amount), grouped(figures.sum_of(currency, *STATES)))
    both.add_row(money)
    return both


def _style(state: str, figures: BatchFigures) -> str:
    if not figures.counts[state]:
        return "dim"
    return {"created": "green", "rejected": "red", "conflict": "red", "in_doubt": "bold yellow"}.get(
        state, ""
    )


def failures_text(report: BatchReport) -> str:
    """`15 failed, 1 rejected, 2 in conflict`: the rows that did not end as they should; empty without any."""
    states = {RowState.REJECTED: "rejected", RowState.CONFLICT: "in conflict"}
    found = [(report.failed, "failed"), *((report.counts[state], word) for state, word in states.items())]
    return ", ".join(f"{count:,} {word}" for count, word in found if count)


def figures_of(progress: Progress) -> BatchFigures:
    """The figures of a batch's progress or report. Only a report has how payouts have ended."""
    ended = None
    if isinstance(progress, BatchReport):
        ended = EndFigures(progress.arrived, progress.failed, progress.awaited, progress.money)
    activity = None if progress.activity is None else attrs.asdict(progress.activity)
    return BatchFigures.of(progress.counts, progress.sums, ended, activity)


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
        "finals": dict(report.finals),
        "exit_code": int(code),
        "next": " ".join(steps),
    }


# Sums


def total_of(amounts: Iterable[Decimal]) -> Decimal:
    """Add amounts exactly: a total that is typed back must not be rounded."""
    return reduce(_EXACT.add, amounts, Decimal(0))


def plain(amount: Decimal) -> str:
    """Plain digits, never an exponent: `10.10`."""
    return format(amount, "f")


def plain_sums(totals: Money) -> dict[str, str]:
    """For programs: `{"XOF": "1200.50"}`."""
    return {currency: plain(amount) for currency, amount in sorted(totals.items())}


def money_text(totals: Money) -> str:
    """For people: `GHS 3.07, XOF 1,200.50`."""
    return ", ".join(amount_text(currency, total) for currency, total in sorted(totals.items())) or "nothing"
