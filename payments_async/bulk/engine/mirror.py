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
from ..protocol.payout_status import facts_of, mirrored, turn_of
from ..protocol.records import LedgerRow, RowOutcome
from ..protocol.row_state import RowState


class OtherGenerations:
    """Finds payouts of other generations than the ledger's, page by page."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._latest: int | None = None
        self.shown: dict[int, dict[str, Payout]] = {}
        """{row number: {reference: its later payout}}, of all pages so far."""
        self.references: set[str] = set()
        """The references of these payouts."""

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

    def of(self, number: int) -> tuple[str, ...]:
        """Describe a row's later payouts found so far."""
        return tuple(map(_described, self.shown.get(number, {}).values()))

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
        self.references.add(reference)
        return _described(payout)


def _described(payout: Payout) -> str:
    return f"{facts_of(payout)} under its ~g{parted(payout.reference or '')[1]}"


_log = logging.getLogger("payments_async")
_MOST_TURNS: Final = 100
Settle = Callable[[LedgerRow, Payout, Sequence[str]], RowOutcome | None]
"""Settles a row by its payout on the list, given its later payouts in words; None when it stays open."""


@attrs.frozen
class ListedRow:
    """A row and a payout that the list shows under its reference."""

    before: LedgerRow
    """The row before this page."""
    row: LedgerRow
    """The row as the ledger has it now."""
    payout: Payout


class Mirror:
    """Records the payouts of list pages in the ledger, in the memory of one page."""

    def __init__(self, ledger: Ledger, settle: Settle | None = None) -> None:
        """`settle`: also settle rows that are open. Only while no other task sends them."""
        self._ledger, self._settle = ledger, settle
        self.later: OtherGenerations = OtherGenerations(ledger)
        """Payouts of later generations, if rows are settled."""
        self.turns: list[str] = []
        """The first payouts that had ended, and are now shown with another status."""

    async def take(self, page: Sequence[Payout]) -> list[ListedRow]:
        """Record what a page shows of the batch's rows, all in one commit. Raises LedgerError."""
        if self._settle is not None:
            await self.later.take(page)  # newest first: later generations come before, or on the same page
        shown = dict[str, list[Payout]]()
        for payout in page:
            if payout.reference is not None:
                shown.setdefault(payout.reference, []).append(payout)
        rows = await self._ledger.by_references(shown)
        outcomes = [found for row in rows if (found := self._outcome_of(row, shown[row.reference]))]
        changed = {row.number: row for row in (await self._ledger.record(outcomes) if outcomes else ())}
        return [
            ListedRow(row, changed.get(row.number, row), payout)
            for row in rows
            for payout in shown[row.reference]
        ]

    def _outcome_of(self, row: LedgerRow, payouts: Sequence[Payout]) -> RowOutcome | None:
        """The outcome of a row, by the payouts under its reference: one that proves it created first."""
        found = [outcome for payout in payouts if (outcome := self._outcome(row, payout)) is not None]
        made = (outcome for outcome in found if outcome.known.state is RowState.CREATED)
        return next(made, found[0] if found else None)

    def _outcome(self, row: LedgerRow, payout: Payout) -> RowOutcome | None:
        turn = turn_of(row, payout)
        if turn is not None:
            _log.warning("%s", clean(turn))
            if len(self.turns) < _MOST_TURNS:
                self.turns.append(turn)
        outcome = mirrored(row, payout)
        if outcome is None and self._settle is not None:
            return self._settle(row, payout, self.later.of(row.number))
        return outcome
