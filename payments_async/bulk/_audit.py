"""The whole list against the whole ledger: what each says of the payouts of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from ..models import Payout
from ._evidence import expected, shown
from ._later import Later
from .engine.mirror import Bits
from .engine.payout_list import pages
from .engine.service import Service
from .ledger.ledger import Ledger
from .protocol.matching import MONEY, Witness, compared, judge
from .protocol.records import LedgerRow
from .protocol.row_state import RowState

_TOLD: Final = 100
_NAMED: Final = 5
_LATER: Final = (
    "the list shows {}, a later payout of it that this ledger does not know of; "
    "pay the row by no other means before you have looked at it"
)


@attrs.frozen
class FieldCount:
    """Of how many created rows one field was compared with what the list shows."""

    compared: int = 0
    not_shown: int = 0
    """Rows whose payouts the list shows without it: they were not compared."""

    def with_row(self, *, is_shown: bool) -> FieldCount:
        """One more row."""
        return FieldCount(self.compared + is_shown, self.not_shown + (not is_shown))


@attrs.frozen
class Audit:
    """What a comparison of the ledger with the service's list has shown."""

    seen: int
    """Created rows whose payouts the list shows as they were asked for, amount and currency compared."""
    missing: int
    """Created rows whose payouts it does not show."""
    differing: int
    """Rows of which the list shows something else than the ledger says."""
    uncompared: int
    """Created rows whose payouts it shows without an amount or a currency, and not otherwise differently."""
    fields: Mapping[str, FieldCount]
    """{field: of how many created rows it was compared}: `amount`, `currency`, and `metadata.payments_sdk`,
    the proof that stands for all the row asks for; without proofs, each detail that was asked for instead."""
    findings: tuple[str, ...]
    """The first of these, in words, by row number."""


class Auditor:
    """Compares page by page, in the memory of one bit for each row."""

    def __init__(self, ledger: Ledger, service: Service) -> None:
        self._ledger, self._service = ledger, service
        self._seen = Bits()
        self._counts = {"seen": 0, "missing": 0, "differing": 0, "uncompared": 0}
        self._fields = dict.fromkeys(MONEY, FieldCount())
        self._uncompared: list[int] = []
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
            if row.number not in self._seen:
                self._note("missing", f"row {row.number}: {row.known.payout_id} is not in the list")
        uncompared = _told(self._counts["uncompared"], self._uncompared)
        return Audit(**self._counts, fields=self._fields, findings=(*uncompared, *self._findings))

    def _compare(self, row: LedgerRow, payout: Payout) -> None:
        if row.state is not RowState.CREATED:
            if row.state is not RowState.CONFLICT:
                self._note("differing", f"row {row.number}: {row.state}, and the list shows {payout.id}")
        elif self._seen.add(row.number):
            self._hold(row, payout)
        elif payout.id != row.known.payout_id:
            told = f"row {row.number}: {payout.id} has its reference, beside {row.known.payout_id}"
            self._note("differing", told)
        elif _is_other(judge(expected(row), shown(payout))):
            # a list that grows while it is read may show a payout on two pages, never in two ways
            told = f"row {row.number}: {row.known.payout_id}, and the list shows it in two ways"
            self._note("differing", told)

    def _hold(self, row: LedgerRow, payout: Payout) -> None:
        """Compare a created row with what the list shows under its reference."""
        asked, found = expected(row), shown(payout)
        fields = compared(asked, found)
        for name, is_shown in fields.items():
            self._fields[name] = self._fields.get(name, FieldCount()).with_row(is_shown=is_shown)
        witness = judge(asked, found) if payout.id == row.known.payout_id else Witness.FOREIGN
        kind = _kind(witness, shows_money=all(fields[name] for name in MONEY))
        if kind == "differing":
            told = f"row {row.number}: {row.known.payout_id}, and the list shows {payout.id} differently"
            self._note(kind, told)
            return
        self._counts[kind] += 1
        if kind == "uncompared":
            self._uncompared = sorted([*self._uncompared, row.number])[:_NAMED]

    def _note(self, kind: str, finding: str) -> None:
        self._counts[kind] += 1
        if len(self._findings) < _TOLD:
            self._findings.append(finding)


def _kind(witness: Witness, *, shows_money: bool) -> str:
    """Which count of an `Audit` a created row belongs to that the list shows."""
    if _is_other(witness):
        return "differing"
    if not shows_money:
        return "uncompared"
    return "seen" if witness is Witness.EQUAL else "differing"


def _is_other(witness: Witness) -> bool:
    return witness in (Witness.FOREIGN, Witness.OTHER_BODY)


def _told(uncompared: int, first: Sequence[int]) -> tuple[str, ...]:
    """So many rows that were not compared, as a finding; `first` are the first of their numbers."""
    if not uncompared:
        return ()
    rows = "1 row was" if uncompared == 1 else f"{uncompared} rows were"
    more = f" and {uncompared - len(first)} more" if uncompared > len(first) else ""
    which = f"row{'s' * (uncompared > 1)} {', '.join(map(str, first))}{more}"
    return (f"{rows} not compared: the list shows no amount or no currency of {which}",)
