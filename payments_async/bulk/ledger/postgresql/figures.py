"""Counts and sums of the rows of a chunk, kept beside it so that no status has to read rows. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal

import attrs

from ...protocol import totals as _totals
from ...protocol.ends import End, Ends, end_of
from ...protocol.records import LedgerRow, StateTotals
from ...protocol.row_state import RowState
from ...protocol.totals import Sums, as_text
from ..hash_chain import as_json

_S = RowState


@attrs.frozen
class RowFigures:
    """Counts and sums of some rows."""

    totals: StateTotals = attrs.field(factory=dict)
    ends: Ends = attrs.field(factory=Ends)
    """The created rows by the final status of their payouts."""
    generation: int = 0
    """The highest generation of the rows."""

    def moved(self, changes: Iterable[tuple[LedgerRow, LedgerRow]]) -> RowFigures:
        """Compute the figures once the first row of each pair has become the second."""
        pairs = list(changes)
        totals = {**self.totals, **_totals.moved(self.totals, pairs)}
        ends = {**self.ends.totals, **self.ends.moved(pairs)}
        return RowFigures(
            {place: total for place, total in totals.items() if total[0]},
            Ends({end: total for end, total in ends.items() if total[0]}),
            max(self.generation, *(after.known.generation for _, after in pairs), 0),
        )

    def count(self, *states: RowState) -> int:
        """Count the rows in any of these states."""
        return sum(rows for (state, _), (rows, _) in self.totals.items() if state in states)

    @property
    def awaited(self) -> int:
        """The number of created rows whose payouts are not final."""
        return self.count(_S.CREATED) - sum(rows for rows, _ in self.ends.totals.values())

    @property
    def totals_text(self) -> str:
        """The totals as JSON text: `{"NEW":{"XOF":[500,"12345.00"]}}`."""
        found: dict[str, dict[str, tuple[int, str]]] = {}
        for (state, currency), (rows, amount) in sorted(self.totals.items()):
            found.setdefault(state, {})[currency] = (rows, as_text(amount))
        return as_json(found)

    @property
    def finals_text(self) -> str:
        """The final statuses as JSON text: `[["completed",false,"XOF",500,"12345.00"]]`."""
        ended = sorted(self.ends.totals.items())
        return as_json([(*end, rows, as_text(sum_)) for end, (rows, sum_) in ended])

    @classmethod
    def read(cls, totals: str, finals: str, generation: int) -> RowFigures:
        """Parse what the other two wrote. Raises ValueError, TypeError, ArithmeticError or AttributeError."""
        states = {RowState(state): of_state for state, of_state in json.loads(totals).items()}
        return cls(
            {
                (state, currency): (int(rows), Decimal(amount))
                for state, of_state in states.items()
                for currency, (rows, amount) in of_state.items()
            },
            Ends(
                {
                    End(str(status), bool(failed), str(currency)): (int(rows), Decimal(sum_))
                    for status, failed, currency, rows, sum_ in json.loads(finals)
                }
            ),
            generation,
        )


def figures_of(rows: Iterable[LedgerRow]) -> RowFigures:
    """Count rows."""
    sums, ends, generation = Sums[tuple[RowState, str]](), Sums[End](), 0
    for row in rows:
        sums.add((row.state, row.currency), row.amount)
        generation = max(generation, row.known.generation)
        if (end := end_of(row)) is not None:
            ends.add(end, row.amount)
    return RowFigures(sums.totals, Ends(ends.totals), generation)


def added_up(figures: Iterable[RowFigures]) -> RowFigures:
    """Add up the figures of several chunks."""
    sums, ends, generation = Sums[tuple[RowState, str]](), Sums[End](), 0
    for each in figures:
        generation = max(generation, each.generation)
        for place, (rows, amount) in each.totals.items():
            sums.add(place, amount, rows)
        for end, (rows, amount) in each.ends.totals.items():
            ends.add(end, amount, rows)
    return RowFigures(sums.totals, Ends(ends.totals), generation)
