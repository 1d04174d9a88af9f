"""Rows and sums of a batch, as a table with a line for each outcome and a column for each currency. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import attrs
from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table

from ...bulk import BatchReport, Cause, Outcome, Progress, RunSeries, SpeedFigures
from ...models.common import amount_text, grouped
from .._output import FirstThatFits, Show
from .._text import took_text

Money = Mapping[str, Decimal]
"""{currency: sum, major units}."""

_OPEN: Final = ("not_started", "under_way", "in_doubt")
_SHORT_RUN: Final = 3
_LONG_NAME: Final = 40
_LONG_REASON: Final = 160
_MOST_CAUSES: Final = 10


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
    contradicting: int = 0
    """Payouts that contradict themselves, which are not final; 0 where the causes were not read."""

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
    def lead(self) -> str:
        """The word whose sum comes first: `arrived` once payouts are followed, `created` before."""
        is_followed = self.is_followed or (self.activity or {}).get("doing") == "following"
        return "arrived" if is_followed or (self.over and self.done == self.rows) else "created"

    def led(self) -> list[tuple[str, Decimal, Decimal]]:
        """Each currency, its sum of `lead`, and what was asked."""
        sums = [(currency, each[self.lead], each["asked"]) for currency, each in self.sums.items()]
        return [(currency, done or asked * 0, asked) for currency, done, asked in sums]

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


def seconds_left(figures: BatchFigures, per_second: float) -> float | None:
    """Seconds until every open row is decided, if as many of them are created as so far; None if unknown."""
    rows = figures.counts["not_started"] + figures.counts["under_way"]
    share = figures.counts["created"] / (figures.done or 1)
    return rows * share / per_second if rows and share and per_second else None


def length_and_pace(run: RunSeries) -> tuple[float, float] | None:
    """The seconds from a run's first answer to its last, and payouts created a second.

    None for a short run: it is counted in whole seconds.
    """
    total = run.total
    is_long = total.created and total.seconds >= _SHORT_RUN
    return (float(total.seconds), total.per_second) if is_long else None


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


NAMES: Final[Mapping[str, str]] = {
    "asked": "Asked",
    "not_started": "Not started",
    "cancelled": "Cancelled",
    "rejected": "Rejected",
    "under_way": "Under way",
    "in_doubt": "In doubt",
    "conflict": "In conflict",
    "created": "Created",
    "not_final": "  not final yet",
    "arrived": "  arrived",
    "failed": "  failed",
    "returned": "  returned",
    "moved_in_conflict": "Moved in conflict",
    "in_excess": "In excess",
}
"""{word: what tables call it}, in their order: money by outcome."""
EXTRA: Final = ("moved_in_conflict", "in_excess")
"""Payouts that stand for no row."""
ALWAYS: Final = ("asked", "rejected", "in_doubt", "created")
"""What tables show also without rows."""
_STYLES: Final = {
    "asked": "bold",
    **dict.fromkeys(("created", "arrived"), "green"),
    **dict.fromkeys(("returned", "failed", *EXTRA), "bold red"),
    "not_final": "dim",
    **dict.fromkeys(("rejected", "conflict"), "red"),
    "in_doubt": "bold yellow",
}


def state_table(figures: BatchFigures) -> FirstThatFits:
    """Money by outcome. Those without rows are left out, except the most important ones.

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
    for word, name in NAMES.items():
        number = figures.counts[word]
        if number or word in ALWAYS:
            sums = (figures.sums[currency][word] for currency in beside)
            cells = (grouped(amount) if amount else "" for amount in sums)
            style = _STYLES.get(word, "") if number else "dim"
            table.add_row(name, f"{number:,}", *cells, style=style)
    return table


def _with_list(table: Table, figures: BatchFigures) -> Table:
    """The table, and below it the currencies, which are too many for columns."""
    both = Table.grid()
    both.add_row(table)
    both.add_row("")
    money = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    word = figures.lead
    for name in ("", word.capitalize(), "Asked"):
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


def failures_text(figures: BatchFigures) -> str:
    """`15 failed, 1 rejected, 2 in conflict`: the rows that did not end as they should; empty without any."""
    counts = figures.counts
    texts = [f"{counts[each]:,} {words}" for each, words in _NOT_PAID.items() if counts[each]]
    return ", ".join(texts + [f"{figures.contradicting:,} contradictory"] * bool(figures.contradicting))


def figures_of(progress: Progress, causes: Iterable[Cause] = ()) -> BatchFigures:
    """The figures of a batch's progress or report."""
    activity = None if progress.activity is None else attrs.asdict(progress.activity)
    contradicting = sum(cause.count for cause in causes if cause.outcome is Outcome.NOT_FINAL)
    return BatchFigures(progress.counts, progress.sums, activity, contradicting=contradicting)


def title_of(batch_id: str) -> str:
    """The batch for people: a hash is cut short."""
    return f"batch {batch_id[:12]}…" if len(batch_id) > _LONG_NAME else f"batch {batch_id}"


def cause_text(cause: Cause) -> str:
    """`20 × HTTP 422: The given data was invalid. · GHS 649.60`."""
    reason = textwrap.shorten(cause.reason or "no reason given", _LONG_REASON, placeholder="…")
    return f"{cause.count:,} × {reason} · {money_text(cause.sums)}"


def more_causes(causes: Sequence[Cause]) -> str:
    """`12 rows with 3 more causes`: what is not shown one by one; empty without any."""
    rows = sum(cause.count for cause in causes)
    return f"{rows:,} rows with {len(causes):,} more causes" if rows else ""


def show_causes(causes: Sequence[Cause], show: Show) -> None:
    """Show people the rows to look at by cause."""
    for cause in causes[:_MOST_CAUSES]:
        is_open = cause.outcome is Outcome.IN_DOUBT
        show.step(
            NAMES[cause.outcome].strip().capitalize(), cause_text(cause), good=None if is_open else False
        )
    if more := more_causes(causes[_MOST_CAUSES:]):
        show.step("More", more, good=None)


def result(
    report: BatchReport, code: int, steps: Iterable[str], causes: Iterable[Cause] = ()
) -> dict[str, Any]:
    """A report for programs, with the rows to look at by cause, the exit code and what to do next."""
    facts = figures_of(report).facts()
    return {
        "batch_id": report.batch_id,
        **facts,
        "complete": report.complete,
        "balanced": report.balanced,
        "stopped": report.stopped,
        "resumable": report.resumable,
        "payable": plain_sums(report.payable),
        "causes": [cause.facts() for cause in causes],
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
