"""Counts and exact sums of rows by outcome and currency, updated with every commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import reduce
from typing import Final, Generic, TypeVar

from ...models.common import amount_text
from .outcomes import GROUPS, Outcome
from .records import LedgerRow, RowTotals

P = TypeVar("P")
EXACT: Final = Context(prec=200, traps=[Inexact, InvalidOperation])
"""A context for exact sums: a sum that would be rounded raises instead."""

_NOTHING: Final = (0, Decimal(0))


def as_text(amount: Decimal) -> str:
    """Format an amount as plain digits, never with an exponent: `10.10`, `100`."""
    return format(amount, "f")


def brief(figures: object) -> str:
    """Format counts and sums for a repr: `{CREATED: 3}`, amounts as plain digits, without zeros."""
    if isinstance(figures, Mapping):
        pairs = [f"{name}: {brief(value)}" for name, value in figures.items() if value]
        return f"{{{', '.join(pairs)}}}"
    return as_text(figures) if isinstance(figures, Decimal) else str(figures)


class Sums(Generic[P]):
    """Running totals of groups, to which rows are added and from which they are removed."""

    __slots__ = ("totals",)

    def __init__(self, begun: Mapping[P, tuple[int, Decimal]] | None = None) -> None:
        self.totals: dict[P, tuple[int, Decimal]] = dict(begun or {})
        """The totals so far."""

    def add(self, group: P, amount: Decimal, rows: int = 1) -> None:
        """Add one row, or the sum of several."""
        before, total = self.totals.get(group, _NOTHING)
        self.totals[group] = (before + rows, EXACT.add(total, amount))

    def remove(self, group: P, amount: Decimal) -> None:
        """Remove one row."""
        rows, total = self.totals.get(group, _NOTHING)
        self.totals[group] = (rows - 1, EXACT.subtract(total, amount))


def moved(totals: RowTotals, changes: Iterable[tuple[LedgerRow, LedgerRow]]) -> RowTotals:
    """Compute the totals that change when the first row of each pair becomes the second."""
    sums = Sums(totals)
    for before, after in changes:
        sums.remove((before.outcome, before.currency), before.amount)
        sums.add((after.outcome, after.currency), after.amount)
    return {place: total for place, total in sums.totals.items() if total != totals.get(place)}


def by_currency(totals: RowTotals) -> dict[str, Decimal]:
    """Sum over all outcomes: {currency: sum}, without currencies that no row has any more."""
    sums: dict[str, Decimal] = {}
    for (_, currency), (rows, amount) in totals.items():
        if rows:
            sums[currency] = EXACT.add(sums.get(currency, Decimal(0)), amount)
    return sums


def payable(totals: RowTotals) -> dict[str, Decimal]:
    """Sum the rows that are not cancelled: {currency: what is paid when every row is}."""
    return by_currency({place: total for place, total in totals.items() if place[0] is not Outcome.CANCELLED})


def counts_of(totals: RowTotals) -> dict[str, int]:
    """{word of `GROUPS`: its rows}."""
    rows = Counter[Outcome]()
    for (outcome, _), (number, _) in totals.items():
        rows[outcome] += number
    return {word: sum(rows[outcome] for outcome in outcomes) for word, outcomes in GROUPS.items()}


def sums_of(totals: RowTotals) -> dict[str, dict[str, Decimal]]:
    """{currency: {word of `GROUPS`: the sum of its rows, major units}}."""
    found: dict[str, dict[str, Decimal]] = {}
    for currency in sorted(by_currency(totals)):
        amounts = {outcome: totals.get((outcome, currency), _NOTHING)[1] for outcome in Outcome}
        found[currency] = {
            word: reduce(EXACT.add, (amounts[outcome] for outcome in outcomes), _NOTHING[1])
            for word, outcomes in GROUPS.items()
        }
    return found


def disagreements(kept: RowTotals, counted: RowTotals) -> list[str]:
    """Describe each place where the stored totals and the counted ones differ."""
    found = []
    for place in sorted({*kept, *counted}):
        (rows, amount), (seen, sum_seen) = kept.get(place, _NOTHING), counted.get(place, _NOTHING)
        if (rows, amount) != (seen, sum_seen):
            outcome, currency = place
            recorded, there = amount_text(currency, amount), amount_text(currency, sum_seen)
            words = outcome.replace("_", " ")
            found.append(f"rows {words}: {rows:,} recorded ({recorded}), {seen:,} found ({there})")
    return found
