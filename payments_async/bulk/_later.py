"""Payouts that a row was given later than its ledger knows of: one that was lost had begun the row anew.

Such a payout has the row's reference with a higher `~gN` (`_generations`). As the row may have arrived by it,
whoever reads the list looks for it and tells of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..models import Payout
from .ledger.ledger import Ledger
from .protocol.generations import earlier_references, parted
from .protocol.payout_status import facts_of
from .protocol.records import LedgerRow


class Later:
    """Collects them, page by page, in words."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._latest: int | None = None
        self._told: dict[int, dict[str, str]] = {}

    async def take(self, page: Iterable[Payout]) -> list[tuple[LedgerRow, str]]:
        """The rows to which a page shows later payouts, each with one of these, as none told before."""
        found = [payout for payout in page if payout.reference and parted(payout.reference)[1]]
        if not found:
            return []
        if self._latest is None:
            self._latest = await self._ledger.latest_generation()
        earlier = {each: earlier_references(each, self._latest) for p in found if (each := p.reference)}
        names = {name for names in earlier.values() for name in names}
        rows = {row.reference: row for row in await self._ledger.by_references(names)}
        pairs = [(rows[name], p) for p in found for name in earlier[p.reference or ""] if name in rows]
        return [(row, words) for row, payout in pairs if (words := self._note(row, payout))]

    def of(self, row: LedgerRow) -> tuple[str, ...]:
        """What was found so far of a row's later payouts."""
        return tuple(self._told.get(row.number, {}).values())

    def _note(self, row: LedgerRow, payout: Payout) -> str | None:
        reference = payout.reference or ""
        told = self._told.setdefault(row.number, {})
        if reference in told:
            return None  # a list that grows while it is read may show a payout on two pages
        told[reference] = f"{facts_of(payout)} under its ~g{parted(reference)[1]}"
        return told[reference]
