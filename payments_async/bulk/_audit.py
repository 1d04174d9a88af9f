"""The whole list against the whole ledger: what each says of the payouts of a batch."""

from __future__ import annotations

from typing import Final

import attrs

from ..models import Payout
from ._evidence import testify
from ._later import Later
from ._records import LedgerRow
from ._service import Service
from ._states import RowState
from ._walk import pages
from ._witness import Witness
from .ledger import Ledger

_TOLD: Final = 100
_LATER: Final = (
    "the list shows {}, a later payout of it that this ledger does not know of; "
    "pay the row by no other means before you have looked at it"
)


@attrs.frozen
class Audit:
    """What a comparison of the ledger with the service's list has shown."""

    seen: int
    """Created rows whose payouts the list shows as they were asked for."""
    missing: int
    """Created rows whose payouts it does not show."""
    differing: int
    """Rows of which the list shows something else than the ledger says."""
    findings: tuple[str, ...]
    """The first of these, in words, by row number."""


class Auditor:
    """Compares page by page, in the memory of one bit for each row."""

    def __init__(self, ledger: Ledger, service: Service) -> None:
        self._ledger, self._service = ledger, service
        self._seen = bytearray()
        self._counts = {"seen": 0, "missing": 0, "differing": 0}
        self._findings: list[str] = []

    async def audit(self) -> Audit:
        """Read the list from its newest payout to its oldest, then the ledger's created rows.

        Raises PaymentsError when the list cannot be read to its end, or not whole.
        """
        later = Later(self._ledger)
        async for page in pages(self._service):
            for row, words in await later.take(page):
                self._note("differing", f"row {row.number}: {_LATER.format(words)}")
            by_reference: dict[str, list[Payout]] = {}
            for payout in page:
                if payout.reference is not None:
                    by_reference.setdefault(payout.reference, []).append(payout)
            for row in await self._ledger.by_references(by_reference):
                for payout in by_reference[row.reference]:
                    self._compare(row, payout)
        async for row in self._ledger.rows(RowState.CREATED):
            if not self._has(row.number):
                self._note("missing", f"row {row.number}: {row.known.payout_id} is not in the list")
        return Audit(**self._counts, findings=tuple(self._findings))

    def _compare(self, row: LedgerRow, payout: Payout) -> None:
        if row.state is not RowState.CREATED:
            if row.state is not RowState.CONFLICT:
                self._note("differing", f"row {row.number}: {row.state}, and the list shows {payout.id}")
            return
        if self._has(row.number):
            # a list that grows while it is read may show a payout on two pages, never two payouts
            if payout.id != row.known.payout_id:
                told = f"row {row.number}: {payout.id} has its reference, beside {row.known.payout_id}"
                self._note("differing", told)
            return
        self._mark(row.number)
        if payout.id != row.known.payout_id or testify(row, payout) is not Witness.EQUAL:
            told = f"row {row.number}: {row.known.payout_id}, and the list shows {payout.id} differently"
            self._note("differing", told)
        else:
            self._counts["seen"] += 1

    def _note(self, kind: str, finding: str) -> None:
        self._counts[kind] += 1
        if len(self._findings) < _TOLD:
            self._findings.append(finding)

    def _mark(self, number: int) -> None:
        place = number >> 3
        if place >= len(self._seen):
            self._seen.extend(bytes(place + 1 - len(self._seen)))
        self._seen[place] |= 1 << (number & 7)

    def _has(self, number: int) -> bool:
        place = number >> 3
        return place < len(self._seen) and bool(self._seen[place] >> (number & 7) & 1)
