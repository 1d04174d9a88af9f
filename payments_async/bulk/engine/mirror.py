"""Pages of the service's list into the ledger: what they show of the batch's rows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

import attrs

from ..._masking import clean
from ...models import Payout
from .._later import Later
from ..ledger.ledger import Ledger
from ..protocol.payout_status import contradiction, mirrored, settled
from ..protocol.records import LedgerRow

_log = logging.getLogger("payments_async")
_TOLD: Final = 100


@attrs.frozen
class Shown:
    """A row and the payout that the list shows under its reference."""

    before: LedgerRow
    """As the ledger had it."""
    row: LedgerRow
    """As the ledger has it now."""
    payout: Payout


class Bits:
    """Which rows are marked: one bit for each, by number."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, number: int) -> bool:
        """Mark a row; whether it was not marked before."""
        place, bit = number >> 3, 1 << (number & 7)
        self._bits.extend(bytes(max(0, place + 1 - len(self._bits))))
        fresh = not self._bits[place] & bit
        self._bits[place] |= bit
        return fresh

    def __contains__(self, number: int) -> bool:
        place = number >> 3
        return place < len(self._bits) and bool(self._bits[place] >> (number & 7) & 1)


class Mirror:
    """Takes pages, in the memory of one page and one bit for each row."""

    def __init__(self, ledger: Ledger, *, settles: bool = False) -> None:
        """`settles`: end the doubt about rows too. Only while no other task sends them."""
        self._ledger, self._settles = ledger, settles
        self._told = Bits()
        self._later = Later(ledger)
        self.contradictions = 0
        """Rows whose payout had ended and is shown otherwise."""
        self.findings: list[str] = []
        """The first of these, in words."""

    async def take(self, page: Sequence[Payout]) -> list[Shown]:
        """Record what a page shows of the batch's rows, all in one commit. Raises LedgerError."""
        if self._settles:
            await self._later.take(page)  # the list is newest first: they come before, or on the same page
        payouts = {payout.reference: payout for payout in page if payout.reference is not None}
        rows = await self._ledger.by_references(payouts)
        outcomes = []
        for row in rows:
            payout = payouts[row.reference]
            self._look(row, payout)
            outcome = mirrored(row, payout)
            if outcome is None and self._settles:
                outcome = settled(row, payout, self._later.of(row))
            if outcome is not None:
                outcomes.append(outcome)
        changed = {row.number: row for row in (await self._ledger.record(outcomes) if outcomes else ())}
        return [Shown(row, changed.get(row.number, row), payouts[row.reference]) for row in rows]

    def _look(self, row: LedgerRow, payout: Payout) -> None:
        finding = contradiction(row, payout)
        if finding is not None and self._told.add(row.number):
            self.note(finding)

    def note(self, finding: str) -> None:
        """Something that must not happen silently."""
        _log.warning("%s", clean(finding))
        self.contradictions += 1
        if len(self.findings) < _TOLD:
            self.findings.append(finding)
