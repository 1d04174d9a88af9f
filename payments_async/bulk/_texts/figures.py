"""What a batch's figures say, and what its run does now, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Final, TypeVar

import attrs

from .._protocol.outcomes import Outcome, add_amount
from ..report import Activity, BatchFigures
from .outcomes import NAMES
from .quantities import counted, duration_text, money_text

if TYPE_CHECKING:
    from .._export.causes import Cause  # loads SQLAlchemy, which commands about one payout do without

B = TypeVar("B", bound=BatchFigures)
_MISSING: Final = ("failed", "returned", "rejected", "cancelled")  # of all others, money may still arrive


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
    word = leading(figures)
    return [
        (currency, each[word] or each["asked"] * 0, each["asked"])  # zero, with its decimals
        for currency, each in figures.sums.items()
    ]


def missing(figures: BatchFigures) -> list[str]:
    """The outcomes of rows whose money did not arrive, and will not without a new payout."""
    return [word for word in _MISSING if figures.counts[word]]


def shortfall_text(figures: BatchFigures) -> str:
    """`GHS 10,311.38 did not arrive: 143 failed, 60 rejected`; empty while all may arrive."""
    sums, words = dict[str, Decimal](), missing(figures)
    for currency, each in figures.sums.items():
        for word in words:
            if each[word]:
                add_amount(sums, currency, each[word])
    rows = ", ".join(f"{figures.counts[word]:,} {NAMES[word].strip().lower()}" for word in words)
    came_back = ", or came back" if "returned" in words else ""
    return f"{money_text(sums)} did not arrive{came_back}: {rows}" if words else ""


def seconds_left(figures: BatchFigures, pace: float) -> float | None:
    """Seconds until every row is decided, at `pace` rows a second; None when that cannot be said."""
    rows = figures.rows - figures.done
    return rows / pace if rows and pace else None


def activity_text(activity: Activity | None) -> str:
    """`waiting, next check in 12 s: …`, or how much of the list was read; empty while rows are paid."""
    if activity is None or activity.doing == "paying":
        return ""
    if activity.doing in ("reading", "reconciling"):
        so_far = f", {counted(activity.listed, 'payout')} so far" if activity.listed else ""
        return f"reading the service's list{so_far}"
    text = "following the payouts" if activity.doing == "following" else "waiting"
    if activity.next_look is not None:
        text += f", next check in {duration_text(max(activity.next_look, 0.0))}"
    return f"{text}: {activity.why}" if activity.why else text  # a narrow terminal cuts the reason off
