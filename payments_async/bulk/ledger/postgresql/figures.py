"""Counts and sums of the rows of a chunk, kept beside it so that no status has to read rows. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ...protocol import totals as _totals
from ...protocol.outcomes import Outcome
from ...protocol.records import LedgerRow, RowTotals
from ...protocol.totals import Sums, read_totals, totals_text


@attrs.frozen
class RowFigures:
    """Counts and sums of some rows."""

    totals: RowTotals = attrs.field(factory=dict)
    generation: int = 0
    """The highest generation of the rows."""

    def moved(self, changes: Iterable[tuple[LedgerRow, LedgerRow]]) -> RowFigures:
        """Compute the figures once the first row of each pair has become the second."""
        pairs = list(changes)
        totals = {**self.totals, **_totals.moved(self.totals, pairs)}
        return RowFigures(
            {place: total for place, total in totals.items() if total[0]},
            max(self.generation, *(after.known.generation for _, after in pairs), 0),
        )

    def count(self, *outcomes: Outcome) -> int:
        """Count the rows of any of these outcomes."""
        return sum(rows for (outcome, _), (rows, _) in self.totals.items() if outcome in outcomes)

    @property
    def totals_text(self) -> str:
        """The totals as JSON text."""
        return totals_text(self.totals)

    @classmethod
    def read(cls, totals: str, generation: int) -> RowFigures:
        """Parse what `totals_text` wrote. Raises ValueError, TypeError, ArithmeticError or AttributeError."""
        return cls(read_totals(totals, Outcome), generation)


def figures_of(rows: Iterable[LedgerRow]) -> RowFigures:
    """Count rows."""
    sums, generation = Sums[tuple[Outcome, str]](), 0
    for row in rows:
        sums.add((row.outcome, row.currency), row.amount)
        generation = max(generation, row.known.generation)
    return RowFigures(sums.totals, generation)


def added_up(figures: Iterable[RowFigures]) -> RowFigures:
    """Add up the figures of several chunks."""
    sums, generation = Sums[tuple[Outcome, str]](), 0
    for each in figures:
        generation = max(generation, each.generation)
        for place, (rows, amount) in each.totals.items():
            sums.add(place, amount, rows)
    return RowFigures(sums.totals, generation)
