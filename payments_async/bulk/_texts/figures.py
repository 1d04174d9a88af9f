"""What a batch's figures say, and what its run does now, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeVar

import attrs

from .._activity import Activity
from .._export.causes import Cause
from .._protocol.outcomes import Outcome
from .._protocol.run_figures import RunSeries, SpeedFigures
from .._report import BatchFigures
from .quantities import duration_text, took_text

_SHORT_RUN: Final = 3
B = TypeVar("B", bound=BatchFigures)


def figures_in(status: Mapping[str, Any]) -> BatchFigures:
    """The figures in the content of a status file."""
    sums = {
        currency: {word: Decimal(amount) for word, amount in of_currency.items()}
        for currency, of_currency in status["sums"].items()
    }
    speed, given = SpeedFigures.read(status.get("speed")), status.get("activity")
    known = attrs.fields_dict(Activity)  # a run of another version may write more
    activity = Activity(**{name: given[name] for name in known if name in given}) if given else None
    return BatchFigures(status["rows"], sums, activity=activity, speed=speed)


def with_causes(figures: B, causes: Iterable[Cause]) -> B:
    """The figures with those payouts that contradict themselves."""
    count = sum(cause.count for cause in causes if cause.outcome is Outcome.NOT_FINAL)
    return attrs.evolve(figures, contradicting=count)


def leading(figures: BatchFigures) -> str:
    """The word whose sum comes first: `arrived` once payouts are followed, `created` before."""
    is_last = figures.is_followed or (figures.over and figures.done == figures.rows)
    return "arrived" if is_last else "created"


def leading_sums(figures: BatchFigures) -> list[tuple[str, Decimal, Decimal]]:
    """Each currency, its sum of `leading`, and what was asked."""
    sums = [(currency, each[leading(figures)], each["asked"]) for currency, each in figures.sums.items()]
    return [(currency, done or asked * 0, asked) for currency, done, asked in sums]


def length_and_pace(run: RunSeries) -> tuple[float, float] | None:
    """The seconds from a run's first answer to its last, and payouts created a second.

    None for a short run: it is counted in whole seconds.
    """
    total = run.total
    is_long = total.created and total.seconds >= _SHORT_RUN
    return (float(total.seconds), total.per_second) if is_long else None


def activity_text(activity: Activity | None, since: float = 0.0) -> str:
    """`3 rows wait, next check in 12 s: …`, or how much of the list was read. `since`: seconds ago."""
    if not activity:
        return ""
    waiting, listed, seconds = activity.waiting, activity.listed, activity.next_look
    if activity.doing == "reading" or (listed and not waiting and seconds is None):
        so_far = f", {listed:,} payout{'' if listed == 1 else 's'} so far" if listed else ""
        return f"reading the service's list{so_far}"
    text = f"{waiting:,} row{' waits' if waiting == 1 else 's wait'}" if waiting else ""
    if not waiting and listed:
        text = f"{listed:,} payout{'' if listed == 1 else 's'} of the service's list read"
    if text and seconds is not None:
        text += f", next check in {duration_text(round(max(seconds - since, 0.0)))}"
    if not waiting:
        return activity.why or text  # new rows wait for room in a guard's sums
    return f"{text}: {activity.why}"  # the reason last: a narrow terminal cuts it off


def answers_text(speed: SpeedFigures) -> str:
    """`p95 180 ms · 3 refused (429) · 12 other errors · 1 unanswered`, from the first answer on."""
    parts = [] if speed.p95 is None else [f"p95 {took_text(speed.p95)}"]
    parts += [
        f"{speed.refused:,} refused (429)",
        f"{speed.failed:,} other error{'' if speed.failed == 1 else 's'}",
    ]
    return " · ".join([*parts, f"{speed.no_answer:,} unanswered"])
