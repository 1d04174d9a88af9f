"""Counts and sums of the rows of a chunk, kept beside it so that no status has to read rows. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final

import attrs

from ...protocol import totals as _totals
from ...protocol.payout_status import has_failed
from ...protocol.records import LedgerRow, StateTotals
from ...protocol.row_state import RowState
from ...protocol.totals import EXACT, Sums, as_text

_S = RowState
_NONE: Final = (0, 0)
_encode = json.JSONEncoder(separators=(",", ":")).encode


@attrs.frozen
class RowFigures:
    """Counts and sums of some rows."""

    totals: StateTotals = attrs.field(factory=dict)
    finals: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)
    """{final status of a payout: (rows, how many of them failed)}."""
    generation: int = 0
    """The highest generation of the rows."""

    def moved(self, changes: Iterable[tuple[LedgerRow, LedgerRow]]) -> RowFigures:
        """Compute the figures once the first row of each pair has become the second."""
        pairs, finals, generation = list(changes), dict(self.finals), self.generation
        for before, after in pairs:
            generation = max(generation, after.known.generation)
            for row, sign in ((before, -1), (after, 1)):
                if _is_over(row):
                    status = str(row.service_status)
                    rows, failed = finals.get(status, _NONE)
                    finals[status] = (rows + sign, failed + sign * has_failed(row))
        totals = {**self.totals, **_totals.moved(self.totals, pairs)}
        return RowFigures(
            {place: total for place, total in totals.items() if total[0]},
            {status: counts for status, counts in finals.items() if counts[0]},
            generation,
        )

    def count(self, *states: RowState) -> int:
        """Count the rows in any of these states."""
        return sum(rows for (state, _), (rows, _) in self.totals.items() if state in states)

    @property
    def awaited(self) -> int:
        """The number of created rows whose payouts are not final."""
        return self.count(_S.CREATED) - sum(rows for rows, _ in self.finals.values())

    @property
    def totals_text(self) -> str:
        """The totals as JSON text: `{"NEW":{"XOF":[500,"12345.00"]}}`."""
        found: dict[str, dict[str, tuple[int, str]]] = {}
        for (state, currency), (rows, amount) in sorted(self.totals.items()):
            found.setdefault(state, {})[currency] = (rows, as_text(amount))
        return _encode(found)

    @property
    def finals_text(self) -> str:
        """The final statuses as JSON text: `{"COMPLETED":[500,0]}`."""
        return _encode(dict(sorted(self.finals.items())))

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
            {status: (int(rows), int(failed)) for status, (rows, failed) in json.loads(finals).items()},
            generation,
        )


def figures_of(rows: Iterable[LedgerRow]) -> RowFigures:
    """Count rows."""
    sums, finals, generation = Sums(), dict[str, tuple[int, int]](), 0
    for row in rows:
        sums.add(row.state, row.currency, row.amount)
        generation = max(generation, row.known.generation)
        if _is_over(row):
            counted, failed = finals.get(str(row.service_status), _NONE)
            finals[str(row.service_status)] = (counted + 1, failed + has_failed(row))
    return RowFigures(sums.totals, finals, generation)


def _is_over(row: LedgerRow) -> bool:
    return row.state is _S.CREATED and row.final


def added_up(figures: Iterable[RowFigures]) -> RowFigures:
    """Add up the figures of several chunks."""
    totals: dict[tuple[RowState, str], tuple[int, Decimal]] = {}
    finals: dict[str, tuple[int, int]] = {}
    generation = 0
    for each in figures:
        generation = max(generation, each.generation)
        for place, (rows, amount) in each.totals.items():
            before, sum_ = totals.get(place, (0, Decimal(0)))
            totals[place] = (before + rows, EXACT.add(sum_, amount))
        for status, (rows, failed) in each.finals.items():
            before, failed_before = finals.get(status, _NONE)
            finals[status] = (before + rows, failed_before + failed)
    return RowFigures(totals, finals, generation)
