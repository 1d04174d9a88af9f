"""How many of a chunk's rows the stop rules of the whole batch let be taken. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from ...._protocol.outcomes import Outcome, Sums
from ...._protocol.stop_rules import StopRules, allows_any, stop_reason
from ...chunks import Chunk

NewRows = Sequence[tuple[int, str, Decimal]]
"""Number, currency and amount of new rows, in the order of their numbers."""
Taken = Sums[tuple[Outcome, str]]
"""Rows that were or may be taken, with their sums."""


class Allowance(NamedTuple):
    """What may be taken of a chunk."""

    granted_to: int
    """The highest row number; 0 when no row may be taken."""
    stopped: str | None
    """The reason why no further row of the batch may be taken; None while they may."""


def limits_rows(rules: StopRules) -> bool:
    """True if the rules limit which rows are taken before any outcome is known."""
    return rules.max_amount is not None or rules.max_rows is not None


def promise(taken: Taken, chunk: Chunk) -> None:
    """Add a chunk's rows that were or may be taken, of any outcome, as if all were under way.

    A chunk of which only a part was granted has stopped the batch: no other is granted beside it.
    """
    untaken = {Outcome.CANCELLED} if chunk.granted_to else {Outcome.CANCELLED, Outcome.NOT_STARTED}
    for (outcome, currency), (rows, amount) in chunk.figures.totals.items():
        if outcome not in untaken:
            taken.add((Outcome.UNDER_WAY, currency), amount, rows)


def allowance(rules: StopRules, taken: Taken, chunk: Chunk, new: NewRows) -> Allowance:
    """Find the last of a chunk's first new rows that the rules allow, and add those to what is taken.

    `taken`: all that was promised elsewhere, and this chunk's rows that are not new.
    """
    limits, both = StopRules(rules.max_amount, rules.max_rows), Sums(taken.totals)
    for _, currency, amount in new:
        both.add((Outcome.UNDER_WAY, currency), amount)
    if allows_any(limits, both.totals, 0):
        return Allowance(chunk.last, None)
    granted_to = 0
    for number, currency, amount in new:
        if reason := stop_reason(limits, taken.totals, amount=amount, currency=currency):
            return Allowance(granted_to, reason)
        granted_to = number
        taken.add((Outcome.UNDER_WAY, currency), amount)
    return Allowance(chunk.last, None)
