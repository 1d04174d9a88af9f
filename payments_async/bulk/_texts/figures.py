"""Counts and sums of a batch, what a run does now, and both in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

import attrs

from .._export.causes import Cause
from .._protocol.outcomes import Outcome
from .._protocol.run_figures import RunSeries, SpeedFigures
from .._report import Progress
from .quantities import duration_text, plain_sums, took_text

_OPEN: Final = ("not_started", "under_way", "in_doubt")
_SHORT_RUN: Final = 3


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


def figures_of(progress: Progress, causes: Iterable[Cause] = ()) -> BatchFigures:
    """The figures of a batch's progress or report."""
    activity = None if progress.activity is None else attrs.asdict(progress.activity)
    contradicting = sum(cause.count for cause in causes if cause.outcome is Outcome.NOT_FINAL)
    return BatchFigures(progress.counts, progress.sums, activity, contradicting=contradicting)


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


def answers_text(speed: SpeedFigures) -> str:
    """`p95 180 ms · 3 refused (429) · 12 other errors · 1 unanswered`, from the first answer on."""
    parts = [] if speed.p95 is None else [f"p95 {took_text(speed.p95)}"]
    parts += [
        f"{speed.refused:,} refused (429)",
        f"{speed.failed:,} other error{'' if speed.failed == 1 else 's'}",
    ]
    return " · ".join([*parts, f"{speed.no_answer:,} unanswered"])
