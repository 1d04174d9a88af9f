"""How many of a chunk's rows the stop rules of the whole batch let be taken. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import attrs

from ....protocol.outcomes import Outcome
from ....protocol.stop_rules import StopRules, Totals, stop_reason
from ....protocol.totals import EXACT
from ...chunks import Chunk

NewRows = Sequence[tuple[int, str, Decimal]]
"""Number, currency and amount of new rows, in the order of their numbers."""


class Allowance(NamedTuple):
    """What may be taken of a chunk."""

    granted_to: int
    """The highest row number; 0 when no row may be taken."""
    stopped: str | None
    """The reason why no further row of the batch may be taken; None while they may."""


@attrs.frozen
class Taken:
    """Rows that were or may be taken, of any outcome, with their sums per currency."""

    rows: int = 0
    sums: Mapping[str, Decimal] = attrs.field(factory=dict)

    def __add__(self, other: Taken) -> Taken:
        sums = dict(self.sums)
        for currency, amount in other.sums.items():
            sums[currency] = EXACT.add(sums.get(currency, Decimal(0)), amount)
        return Taken(self.rows + other.rows, sums)

    @property
    def totals(self) -> Totals:
        """The same for the stop rules, as if all were under way."""
        return Totals(
            {Outcome.UNDER_WAY: self.rows},
            {(Outcome.UNDER_WAY, code): sum_ for code, sum_ in self.sums.items()},
        )


def limits_rows(rules: StopRules) -> bool:
    """True if the rules limit which rows are taken before any outcome is known."""
    return rules.max_amount is not None or rules.max_rows is not None


def promised(chunk: Chunk, new: NewRows = ()) -> Taken:
    """Count a chunk's rows that were or may be taken.

    `new`: the new rows up to `granted_to`, for a chunk of which only a part was granted.
    """
    is_whole = chunk.granted_to >= chunk.last
    untaken = {Outcome.CANCELLED} if is_whole else {Outcome.CANCELLED, Outcome.NOT_STARTED}
    taken = _of(new)
    for (outcome, currency), (rows, amount) in chunk.figures.totals.items():
        if outcome not in untaken:
            taken += Taken(rows, {currency: amount})
    return taken


def _of(new: NewRows) -> Taken:
    sums = dict[str, Decimal]()
    for _, currency, amount in new:
        sums[currency] = EXACT.add(sums.get(currency, Decimal(0)), amount)
    return Taken(len(new), sums)


def allowance(rules: StopRules, taken: Taken, chunk: Chunk, new: NewRows) -> Allowance:
    """Find the last of a chunk's first new rows that the rules allow.

    `taken`: all that was promised elsewhere, and this chunk's rows that are not new.
    """
    if _fits(rules, taken + _of(new)):
        return Allowance(chunk.last, None)
    granted_to, limits = 0, StopRules(rules.max_amount, rules.max_rows)
    for number, currency, amount in new:
        if reason := stop_reason(limits, taken.totals, amount=amount, currency=currency):
            return Allowance(granted_to, reason)
        granted_to, taken = number, taken + Taken(1, {currency: amount})
    return Allowance(chunk.last, None)


def _fits(rules: StopRules, taken: Taken) -> bool:
    few = rules.max_rows is None or taken.rows <= rules.max_rows
    return few and (rules.max_amount is None or all(sum_ <= rules.max_amount for sum_ in taken.sums.values()))
