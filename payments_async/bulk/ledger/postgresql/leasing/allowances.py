"""How many of a chunk's rows the stop rules of the whole batch let be taken. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple

from ....protocol.row_state import RowState
from ....protocol.stop_rules import StopRules, Totals, stop_reason
from ....protocol.totals import EXACT
from ..chunks import Chunk

_S = RowState
NewRows = Sequence[tuple[int, str, Decimal]]
"""Number, currency and amount of new rows, in the order of their numbers."""


class Allowance(NamedTuple):
    """What may be taken of a chunk."""

    granted_to: int
    """The highest row number; 0 when no row may be taken."""
    stopped: str | None
    """The reason why no further row of the batch may be taken; None while they may."""


def limits_rows(rules: StopRules) -> bool:
    """True if the rules limit which rows are taken before any outcome is known."""
    return rules.max_amount is not None or rules.max_rows is not None


def promised(chunk: Chunk, new: NewRows = ()) -> Totals:
    """Count a chunk's rows that were or may be taken, as if all were in flight.

    `new`: the new rows up to `granted_to`, for a chunk of which only a part was granted.
    """
    totals = chunk.figures.totals
    states = {_S.CANCELLED} if chunk.granted_to >= chunk.last else {_S.CANCELLED, _S.NEW}
    taken = [(currency, total) for (state, currency), total in totals.items() if state not in states]
    return _in_flight([*taken, *((currency, (1, amount)) for _, currency, amount in new)])


def added_up(parts: Iterable[Totals]) -> Totals:
    """Add up what was promised of several chunks."""
    found = []
    for each in parts:
        count = each.count(_S.IN_FLIGHT)
        sums = [(currency, (0, amount)) for (_, currency), amount in each.sums.items()]
        found += [("", (count, Decimal(0))), *sums]
    return _in_flight(found)


def _in_flight(parts: Iterable[tuple[str, tuple[int, Decimal]]]) -> Totals:
    count, sums = 0, dict[tuple[RowState, str], Decimal]()
    for currency, (rows, amount) in parts:
        count += rows
        if currency:
            place = (_S.IN_FLIGHT, currency)
            sums[place] = EXACT.add(sums.get(place, Decimal(0)), amount)
    return Totals({_S.IN_FLIGHT: count}, sums)


def allowance(rules: StopRules, taken: Totals, chunk: Chunk, new: NewRows) -> Allowance:
    """Find the last of a chunk's first new rows that the rules allow.

    `taken`: all that was promised elsewhere, and this chunk's rows that are not new.
    """
    whole = added_up((taken, _in_flight([(currency, (1, amount)) for _, currency, amount in new])))
    if _fits(rules, whole):
        return Allowance(chunk.last, None)
    granted_to, tally = 0, taken
    limits = StopRules(rules.max_amount, rules.max_rows)
    for number, currency, amount in new:
        if reason := stop_reason(limits, tally, amount=amount, currency=currency):
            return Allowance(granted_to, reason)
        granted_to, tally = number, added_up((tally, _in_flight([(currency, (1, amount))])))
    return Allowance(chunk.last, None)


def _fits(rules: StopRules, taken: Totals) -> bool:
    few = rules.max_rows is None or taken.count(_S.IN_FLIGHT) <= rules.max_rows
    return few and (rules.max_amount is None or all(sum_ <= rules.max_amount for sum_ in taken.sums.values()))
