"""Writes what pages of the service's list show of a batch's rows into the ledger.

It also finds payouts of later generations than the ledger knows: an earlier ledger, since lost, had sent
those rows again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import attrs

from ...models import Payout
from ...models._masking import clean
from ..ledger.ledger import Ledger
from ..protocol.generations import earlier_references, later_references, parted
from ..protocol.outcomes import Outcome
from ..protocol.payout_status import contradiction, facts_of, mirrored
from ..protocol.records import LedgerRow, RowOutcome, RowSet


class OtherGenerations:
    """Finds payouts of other generations than the ledger's, page by page."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._latest: int | None = None
        self.shown: dict[int, dict[str, Payout]] = {}
        """{row number: {reference: its later payout}}, of all pages so far."""

    async def take(self, page: Iterable[Payout]) -> list[tuple[LedgerRow, str]]:
        """Read a page. Returns rows with later payouts that no page showed before, with one of them each."""
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
        """Describe a row's later payouts found so far."""
        return tuple(map(_described, self.shown.get(row.number, {}).values()))

    async def past(self, page: Iterable[Payout]) -> list[tuple[LedgerRow, Payout]]:
        """Read a page. Returns its payouts of earlier generations, with their rows."""
        if self._latest is None:
            self._latest = await self._ledger.latest_generation()
        pairs = [
            (name, payout)
            for payout in page
            for name in later_references(payout.reference or "", self._latest)
        ]
        names = {name for name, _ in pairs}
        rows = {row.reference: row for row in (await self._ledger.by_references(names) if names else ())}
        return [(rows[name], payout) for name, payout in pairs if name in rows]

    def _note(self, row: LedgerRow, payout: Payout) -> str | None:
        reference = payout.reference or ""
        shown = self.shown.setdefault(row.number, {})
        if reference in shown:
            return None  # a list that grows while it is read may show a payout on two pages
        shown[reference] = payout
        return _described(payout)


def _described(payout: Payout) -> str:
    return f"{facts_of(payout)} under its ~g{parted(payout.reference or '')[1]}"


_log = logging.getLogger("payments_async")
_MOST_FINDINGS: Final = 100
Settle = Callable[[LedgerRow, Payout, Sequence[str]], RowOutcome | None]
"""Settles a row by its payout on the list, given its later payouts in words; None when it stays open."""


@attrs.frozen
class ListedRow:
    """A row and the payout that the list shows under its reference."""

    before: LedgerRow
    """The row before this page."""
    row: LedgerRow
    """The row as the ledger has it now."""
    payout: Payout


class Mirror:
    """Records the payouts of list pages in the ledger, in the memory of one page and one bit a row."""

    def __init__(self, ledger: Ledger, settle: Settle | None = None, *, keeps_arrived: bool = False) -> None:
        """`settle`: also settle rows that are open. Only while no other task sends them.

        `keeps_arrived`: record no other status of a payout that had ended and not failed.
        """
        self._ledger, self._settle, self._keeps_arrived = ledger, settle, keeps_arrived
        self.contradicted: RowSet = RowSet()
        """Rows of which `findings` tells, or would tell, a contradiction."""
        self.later: OtherGenerations = OtherGenerations(ledger)
        """Payouts of later generations, if rows are settled."""
        self.contradictions: int = 0
        """Rows whose payout was final and is now shown with another status."""
        self.findings: list[str] = []
        """Descriptions of the first contradictions."""

    async def take(self, page: Sequence[Payout]) -> list[ListedRow]:
        """Record what a page shows of the batch's rows, all in one commit. Raises LedgerError."""
        if self._settle is not None:
            await self.later.take(page)  # newest first: later generations come before, or on the same page
        payouts = {payout.reference: payout for payout in page if payout.reference is not None}
        rows = await self._ledger.by_references(payouts)
        outcomes = []
        for row in rows:
            payout = payouts[row.reference]
            self._note_contradiction(row, payout)
            is_kept = self._keeps_arrived and row.outcome is Outcome.ARRIVED
            outcome = None if is_kept else mirrored(row, payout)
            if outcome is None and self._settle is not None:
                outcome = self._settle(row, payout, self.later.of(row))
            if outcome is not None:
                outcomes.append(outcome)
        changed = {row.number: row for row in (await self._ledger.record(outcomes) if outcomes else ())}
        return [ListedRow(row, changed.get(row.number, row), payouts[row.reference]) for row in rows]

    def _note_contradiction(self, row: LedgerRow, payout: Payout) -> None:
        finding = contradiction(row, payout)
        if finding is not None and self.contradicted.add(row.number):
            self.note(finding)

    def note(self, finding: str) -> None:
        """Add a contradiction to the count and the findings."""
        _log.warning("%s", clean(finding))
        self.contradictions += 1
        if len(self.findings) < _MOST_FINDINGS:
            self.findings.append(finding)
