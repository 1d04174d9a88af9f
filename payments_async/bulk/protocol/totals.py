"""Counts and exact sums by state and currency, updated with every commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Final, Generic, TypeVar

from ...models.common import amount_text
from .records import LedgerRow, StateTotals
from .row_state import RowState

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


def changed(
    before: Mapping[P, tuple[int, Decimal]], after: Mapping[P, tuple[int, Decimal]]
) -> dict[P, tuple[int, Decimal]]:
    """The totals that differ from those before."""
    return {group: total for group, total in after.items() if total != before.get(group)}


def moved(totals: StateTotals, changes: Iterable[tuple[LedgerRow, LedgerRow]]) -> StateTotals:
    """Compute the totals that change when the first row of each pair becomes the second."""
    sums = Sums(totals)
    for before, after in changes:
        sums.remove((before.state, before.currency), before.amount)
        sums.add((after.state, after.currency), after.amount)
    return changed(totals, sums.totals)


def by_currency(totals: StateTotals) -> dict[str, Decimal]:
    """Sum over all states: {currency: sum}, without currencies that no row has any more."""
    sums: dict[str, Decimal] = {}
    for (_, currency), (rows, amount) in totals.items():
        if rows:
            sums[currency] = EXACT.add(sums.get(currency, Decimal(0)), amount)
    return sums


def payable(totals: StateTotals) -> dict[str, Decimal]:
    """Sum the rows that are not cancelled: {currency: what is paid when every row is}."""
    return by_currency(
        {place: total for place, total in totals.items() if place[0] is not RowState.CANCELLED}
    )


def disagreements(kept: StateTotals, counted: StateTotals) -> list[str]:
    """Describe each place where the stored totals and the counted ones differ."""
    return differences(kept, counted, lambda group: (f"{group[0]} rows", group[1]))


def differences(
    kept: Mapping[P, tuple[int, Decimal]],
    counted: Mapping[P, tuple[int, Decimal]],
    name: Callable[[P], tuple[str, str]],
) -> list[str]:
    """Describe each group whose stored total is not the counted one; `name` gives its name and currency."""
    found = []
    for group in sorted({*kept, *counted}, key=name):
        (rows, amount), (seen, sum_seen) = kept.get(group, _NOTHING), counted.get(group, _NOTHING)
        if (rows, amount) != (seen, sum_seen):
            what, currency = name(group)
            recorded, there = amount_text(currency, amount), amount_text(currency, sum_seen)
            found.append(f"{what}: {rows:,} recorded ({recorded}), {seen:,} found ({there})")
    return found
