"""Counts and sums of created rows by the final status of their payouts: how much arrived. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple

import attrs

from .payout_status import has_failed
from .records import LedgerRow, StateTotals
from .row_state import RowState
from .totals import EXACT, Sums, as_text, changed, differences


class End(NamedTuple):
    """One kind of final payouts."""

    status: str
    """The final status, as the service calls it."""
    failed: bool
    currency: str


@attrs.frozen
class CreatedMoney:
    """The sum of the created rows of one currency, and its parts, in major units.

    `created` is `arrived`, `failed` and `not_final` together.
    """

    created: Decimal
    arrived: Decimal
    failed: Decimal
    not_final: Decimal

    def facts(self) -> dict[str, str]:
        """For JSON, as plain digits."""
        return {name: as_text(amount) for name, amount in attrs.asdict(self).items()}


@attrs.frozen
class Ends:
    """The final statuses of created rows' payouts, counted and summed."""

    totals: Mapping[End, tuple[int, Decimal]] = attrs.field(factory=dict)
    """{kind: (its rows, the sum of their amounts in major units)}."""

    def moved(self, changes: Iterable[tuple[LedgerRow, LedgerRow]]) -> Mapping[End, tuple[int, Decimal]]:
        """Compute the totals that change when the first row of each pair becomes the second."""
        sums = Sums(self.totals)
        for before, after in changes:
            if (end := end_of(before)) is not None:
                sums.remove(end, before.amount)
            if (end := end_of(after)) is not None:
                sums.add(end, after.amount)
        return changed(self.totals, sums.totals)

    @property
    def finals(self) -> dict[str, int]:
        """{final status: rows}."""
        found: dict[str, int] = {}
        for end, (rows, _) in self.totals.items():
            if rows:
                found[end.status] = found.get(end.status, 0) + rows
        return found

    def count(self, *, failed: bool) -> int:
        """Count the rows whose payouts failed, or arrived."""
        return sum(rows for end, (rows, _) in self.totals.items() if end.failed is failed)

    def money(self, totals: StateTotals) -> dict[str, CreatedMoney]:
        """{currency: the sum of its created rows, and what became of it}. `totals`: of all rows."""
        sums = {code: amount for (state, code), (rows, amount) in totals.items() if _is_created(state, rows)}
        return {currency: self._parts(currency, created) for currency, created in sorted(sums.items())}

    def disagreements(self, counted: Ends) -> list[str]:
        """Describe each place where these totals and the counted ones differ."""
        return differences(self.totals, counted.totals, _name)

    def _parts(self, currency: str, created: Decimal) -> CreatedMoney:
        arrived, failed = (self._sum(currency, failed=failed) for failed in (False, True))
        return CreatedMoney(created, arrived, failed, EXACT.subtract(created, EXACT.add(arrived, failed)))

    def _sum(self, currency: str, *, failed: bool) -> Decimal:
        total = Decimal(0)
        for end, (_, amount) in self.totals.items():
            if end.failed is failed and end.currency == currency:
                total = EXACT.add(total, amount)
        return total


def _name(end: End) -> tuple[str, str]:
    return f"payouts that ended as {end.status}", end.currency


def _is_created(state: RowState, rows: int) -> bool:
    return state is RowState.CREATED and rows > 0


def end_of(row: LedgerRow) -> End | None:
    """The kind of final payouts to which a row belongs; None while it has none."""
    if row.state is not RowState.CREATED or not row.final:
        return None
    return End(str(row.service_status), has_failed(row), row.currency)
