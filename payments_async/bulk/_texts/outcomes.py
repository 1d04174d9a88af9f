"""What tables and lines call outcomes, causes, rows and batches. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..report import BatchFigures
from .quantities import money_text

if TYPE_CHECKING:  # these load SQLAlchemy, which commands about one payout do without
    from .._export.causes import Cause
    from .._protocol.records import StatusChange

_LONG_NAME: Final = 40
_LONG_REASON: Final = 160
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
_NOT_PAID: Final = ("failed", "returned", "rejected", "conflict", "in_excess")


def failures_text(figures: BatchFigures) -> str:
    """`15 failed, 1 rejected, 2 in conflict`: the rows that did not end as they should; empty without any."""
    counts = figures.counts
    texts = [f"{counts[word]:,} {NAMES[word].strip().lower()}" for word in _NOT_PAID if counts[word]]
    return ", ".join(texts + [f"{figures.contradicting:,} contradictory"] * bool(figures.contradicting))


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


def status_text(change: StatusChange) -> str:
    """`completed`, or `completed (contradicts itself)`."""
    status = change.status or "none shown"
    return f"{status} (contradicts itself)" if change.contradicts else status
