"""Rows that need a person, grouped by cause: outcome and reason, each with its rows and exact sums."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from decimal import Decimal
from typing import Any, ClassVar, Final

import attrs

from .._ledger.ledger import Ledger
from .._protocol.outcomes import NOT_ARRIVED, OF_STATE, Outcome, Sums, as_text, brief, count_rows
from .._protocol.records import LedgerRow
from .._protocol.row_state import RowState
from .row_view import RowView, reason_of, views

_STATES: Final = (RowState.IN_DOUBT, RowState.CONFLICT, RowState.REJECTED)
_MOST_REASONS: Final = 20
"""Reasons of one outcome that are told apart; a service may give each row its own."""
_OTHER: Final = "other reasons"


@attrs.frozen
class Cause:
    """The rows of one outcome that have the same reason."""

    outcomes: ClassVar[tuple[Outcome, ...]] = (
        Outcome.IN_DOUBT,
        Outcome.CONFLICT,
        Outcome.NOT_FINAL,
        Outcome.RETURNED,
        Outcome.FAILED,
        Outcome.REJECTED,
    )
    """The outcomes of rows that need a person, the most urgent first. Of those that are not final, only the
    rows whose payouts contradict themselves."""
    outcome: Outcome
    reason: str | None
    """The reason in the service's words, or how the payout contradicts itself; None without one,
    `other reasons` where these are too many."""
    count: int
    """How many rows it has."""
    sums: Mapping[str, Decimal] = attrs.field(repr=brief)
    """{currency: the sum of their amounts, major units}, exact."""
    rows: tuple[RowView, ...] = ()
    """The first of them."""

    def facts(self) -> dict[str, Any]:
        """The same as JSON values, without the rows themselves."""
        sums = {currency: as_text(amount) for currency, amount in self.sums.items()}
        return {"outcome": self.outcome.value, "reason": self.reason, "count": self.count, "sums": sums}


class Grouping:
    """Groups rows by cause in bounded memory: at most so many reasons, and the first rows of each."""

    def __init__(self, most_rows: int) -> None:
        self._most_rows = most_rows
        self._sums: dict[tuple[Outcome, str | None], Sums[str]] = {}
        self._rows: dict[tuple[Outcome, str | None], list[LedgerRow]] = {}
        self._reasons = dict.fromkeys(Outcome, 0)

    def add(self, row: LedgerRow) -> None:
        """Add a row to its group."""
        cause = row.outcome, reason_of(row)
        if cause not in self._sums and self._reasons[row.outcome] == _MOST_REASONS:
            cause = row.outcome, _OTHER
        if cause not in self._sums:
            self._reasons[row.outcome] += cause[1] != _OTHER
            self._sums[cause], self._rows[cause] = Sums(), []
        self._sums[cause].add(row.currency, row.amount)
        if len(self._rows[cause]) < self._most_rows:
            self._rows[cause].append(row)

    def groups(self) -> list[tuple[Cause, list[LedgerRow]]]:
        """Each cause and its first rows: the most urgent outcome first, of one outcome the largest cause."""
        found = []
        for (outcome, reason), sums in self._sums.items():
            count = sum(number for number, _ in sums.totals.values())
            amounts = {currency: amount for currency, (_, amount) in sorted(sums.totals.items())}
            found.append((Cause(outcome, reason, count, amounts), self._rows[outcome, reason]))
        return sorted(found, key=lambda each: (Cause.outcomes.index(each[0].outcome), -each[0].count))


async def causes(ledger: Ledger, most: int = 50) -> tuple[Cause, ...]:
    """Group the rows that need a person by cause, with at most so many rows in all. Raises LedgerError."""
    grouping = Grouping(most)
    async for row in _rows(ledger):
        grouping.add(row)
    groups = grouping.groups()
    each = most // len(groups) if groups else 0
    shown = iter(await views(ledger, [row for _, rows in groups for row in rows[:each]]))
    return tuple(attrs.evolve(cause, rows=tuple(next(shown) for _ in rows[:each])) for cause, rows in groups)


async def _rows(ledger: Ledger) -> AsyncIterator[LedgerRow]:
    """All rows that need a person, a page at a time."""
    for state in _STATES:
        if count_rows(ledger.totals, *OF_STATE[state]):
            async for row in ledger.rows(state):
                yield row
    if count_rows(ledger.totals, *NOT_ARRIVED, Outcome.NOT_FINAL):
        async for row in ledger.unpaid():
            yield row
