"""Compares what a reading of the service's list shows with the ledger, row by row and field by field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

import attrs

from ...models import Amount, Payout
from ..engine.mirror import ListedRow
from ..ledger.ledger import Ledger
from ..protocol.extra_payouts import extra_of
from ..protocol.identifiers import Identity, Proof
from ..protocol.matching import MONEY, Match, compared, expected, judge, shown
from ..protocol.outcomes import ExtraPayout
from ..protocol.payout_status import described, facts_of, failure_of, status_finding, turn_of
from ..protocol.records import ExtraTotals, LedgerRow, RowSet
from ..protocol.row_state import RowState
from ..protocol.totals import Sums

_MOST_FINDINGS: Final = 100
_NAMED: Final = 5
_UNKNOWN: Final = "the list shows {}, which has this batch's proof, and a reference that no row has"
_NO_CURRENCY: Final = "XXX"
"""The code of ISO 4217 for none."""
_PAST: Final = "row {}: {} had failed and the row was retried, and the list shows {}"


@attrs.frozen
class FieldCount:
    """Counts the created rows of which one field was compared with the list."""

    compared: int = 0
    not_shown: int = 0
    """Rows whose payouts the list shows without the field: they were not compared."""

    def with_row(self, *, is_shown: bool) -> FieldCount:
        """Count one more row."""
        return FieldCount(self.compared + is_shown, self.not_shown + (not is_shown))


@attrs.frozen
class Audit:
    """The result of comparing the ledger with the service's list."""

    seen: int
    """Created rows whose payouts the list shows as requested, amount and currency included."""
    missing: int
    """Created rows whose payouts the list does not show."""
    differing: int
    """Rows whose payouts differ between list and ledger, in content or status, and rows in conflict."""
    uncompared: int
    """Created rows whose payouts the list shows without an amount or currency, but otherwise equal."""
    fields: Mapping[str, FieldCount]
    """{field: the count of rows compared}: `amount`, `currency`, and `metadata.payments_sdk`,
    the proof that covers the whole request; without proofs, each detail instead."""
    findings: tuple[str, ...]
    """The first differences."""
    turns: tuple[str, ...]
    """The first payouts that had ended, and that the list now shows with another status. The ledger has the
    new one: a turn is no difference."""


class Auditor:
    """Compares rows with the list, page by page as they are recorded, with one bit of memory for each row."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, binding = ledger, ledger.header.binding
        self._batch = Identity(binding.environment, binding.batch_id, "").proof("").batch
        self._seen, self._told = RowSet(), RowSet()
        self._counts = {"seen": 0, "missing": 0, "differing": 0, "uncompared": 0}
        self._fields = dict.fromkeys(MONEY, FieldCount())
        self._uncompared: list[int] = []
        self._findings: list[str] = []
        self._extra: dict[str, tuple[ExtraPayout, str, Decimal]] = {}

    def take(self, listed: Iterable[ListedRow]) -> None:
        """Compare the rows of one page with the payouts under their references."""
        for each in listed:
            self._compare(each.row, each.payout, each.before)

    def take_past(self, payouts: Iterable[tuple[LedgerRow, Payout]]) -> None:
        """Look for payouts of earlier generations that have not failed."""
        for row, payout in payouts:
            if failure_of(payout) is None:
                self._add(row, payout)
                self.note(_PAST.format(row.number, payout.id, described(payout)))

    def take_later(self, row: LedgerRow, payouts: Iterable[Payout]) -> None:
        """Look for payouts of later generations that have not failed."""
        for payout in payouts:
            self._add(row, payout)

    @property
    def extra(self) -> ExtraTotals:
        """The extra payouts found so far."""
        sums = Sums[tuple[ExtraPayout, str]]()
        for word, currency, amount in self._extra.values():
            sums.add((word, currency), amount)
        return sums.totals

    def take_unknown(self, payouts: Iterable[Payout]) -> None:
        """Look for payouts of the batch, by their proofs, among those whose references no row has."""
        for payout in payouts:
            proof = Proof.of(payout.metadata)
            if proof is not None and proof.batch == self._batch and self._add(None, payout):
                self.note(_UNKNOWN.format(facts_of(payout)))

    def _add(self, row: LedgerRow | None, payout: Payout) -> bool:
        """Count a payout that is not the row's, if it is an extra one. True if it was not counted before."""
        word, place = extra_of(row, payout), payout.id or payout.reference or ""
        if word is None or place in self._extra:
            return False
        amount = payout.amount or Amount()
        currency = amount.currency or (_NO_CURRENCY if row is None else row.currency)
        self._extra[place] = (word, currency, amount.value or Decimal(0))
        return True

    async def result(self, turns: Sequence[str]) -> Audit:
        """The result, once the list was read whole: reads the ledger's created rows and its conflicts."""
        async for row in self._ledger.rows(RowState.CREATED):
            if row.number not in self._seen:
                self.note(f"row {row.number}: {row.known.payout_id} is not in the list", "missing")
        async for row in self._ledger.rows(RowState.CONFLICT):
            if row.number not in self._seen:
                self.note(f"row {row.number}: in conflict, and its payout is not in the list")
        uncompared = _not_compared(self._counts["uncompared"], self._uncompared)
        findings = (*uncompared, *self._findings)
        return Audit(**self._counts, fields=self._fields, findings=findings, turns=tuple(turns))

    def _compare(self, row: LedgerRow, payout: Payout, before: LedgerRow) -> None:
        if row.state is RowState.CONFLICT:
            self._seen.add(row.number)
            self._add(row, payout)
            self.note(f"row {row.number}: in conflict, and the list shows {facts_of(payout)}")
        elif row.state is not RowState.CREATED:
            self._add(row, payout)
            self.note(f"row {row.number}: {row.state}, and the list shows {facts_of(payout)}")
        elif self._seen.add(row.number):
            self._count(row, payout)
            self._tell(row, status_finding(row, payout))
        elif payout.id != row.known.payout_id:
            self._add(row, payout)
            self.note(f"row {row.number}: {payout.id} has its reference, beside {row.known.payout_id}")
        elif _is_other(judge(expected(row), shown(payout))):
            # a list that grows while it is read may repeat a payout on two pages, but never with a difference
            self.note(f"row {row.number}: {row.known.payout_id}, and the list shows it in two ways")
        else:
            self._tell(row, turn_of(before, payout) or status_finding(row, payout))

    def _tell(self, row: LedgerRow, finding: str | None) -> None:
        if finding is not None and self._told.add(row.number):
            self.note(finding)

    def _count(self, row: LedgerRow, payout: Payout) -> None:
        """Compare a created row with the payout that the list shows under its reference."""
        asked, found = expected(row), shown(payout)
        fields = compared(asked, found)
        for name, is_shown in fields.items():
            self._fields[name] = self._fields.get(name, FieldCount()).with_row(is_shown=is_shown)
        is_own = payout.id == row.known.payout_id
        if not is_own:
            self._add(row, payout)
        match = judge(asked, found) if is_own else Match.FOREIGN
        kind = _kind(match, shows_money=all(fields[name] for name in MONEY))
        if kind == "differing":
            self.note(f"row {row.number}: {row.known.payout_id}, and the list shows {payout.id} differently")
            return
        self._counts[kind] += 1
        if kind == "uncompared":
            self._uncompared = sorted([*self._uncompared, row.number])[:_NAMED]

    def note(self, finding: str, kind: str = "differing") -> None:
        """Count a difference, and keep it if it is one of the first."""
        self._counts[kind] += 1
        if len(self._findings) < _MOST_FINDINGS:
            self._findings.append(finding)


def _kind(match: Match, *, shows_money: bool) -> str:
    """Name the count of an `Audit` to which a created row on the list belongs."""
    if _is_other(match):
        return "differing"
    if not shows_money:
        return "uncompared"
    return "seen" if match is Match.EQUAL else "differing"


def _is_other(match: Match) -> bool:
    return match in (Match.FOREIGN, Match.OTHER_BODY)


def _not_compared(uncompared: int, first: Sequence[int]) -> tuple[str, ...]:
    """Make the finding for rows that were not compared; `first` are the first of their numbers."""
    if not uncompared:
        return ()
    rows = "1 row was" if uncompared == 1 else f"{uncompared} rows were"
    more = f" and {uncompared - len(first)} more" if uncompared > len(first) else ""
    which = f"row{'s' * (uncompared > 1)} {', '.join(map(str, first))}{more}"
    return (f"{rows} not compared: the list shows no amount or no currency of {which}",)
