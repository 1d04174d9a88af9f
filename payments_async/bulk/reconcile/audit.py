"""Compares what a reading of the service's list shows with the ledger, row by row and field by field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

import attrs

from ...models import Amount, Payout
from ...models.statuses import PayoutEnd
from ..engine.reading import JudgedRow
from ..ledger.ledger import Ledger
from ..protocol.identifiers import Identity, Proof
from ..protocol.judge import RowPayout, other_status
from ..protocol.matching import MONEY, Match, compared, other_account
from ..protocol.outcomes import EXACT, ExtraPayout, ExtraTotals, Sums
from ..protocol.payout_status import end_of, facts_of
from ..protocol.records import LedgerRow, RowSet
from ..protocol.row_state import RowState

_MOST_FINDINGS: Final = 100
_SMALLEST: Final = Decimal("1E-40")
_LARGEST: Final = Decimal("1E+40")
"""Amounts between these are added up exactly; any other is a finding."""
_NAMED: Final = 5
_UNKNOWN: Final = "the list shows {}, which has this batch's proof, and a reference that no row has"
_NO_CURRENCY: Final = "XXX"
"""The code of ISO 4217 for none."""


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
    the proof that covers the whole request, and account details where the list shows them in full; without
    proofs, each detail instead."""
    rounded: Mapping[str, Decimal]
    """{currency: the sum that the list shows of rounded payouts, less what was asked for}."""
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
        self._seen = RowSet()
        self._counts = {"seen": 0, "missing": 0, "differing": 0, "uncompared": 0}
        self._fields = dict.fromkeys(MONEY, FieldCount())
        self._rounded: dict[str, Decimal] = {}
        self._uncompared: list[int] = []
        self._findings: list[str] = []
        self._extra: dict[str, tuple[ExtraPayout, str, Decimal]] = {}

    def take(self, judged: Iterable[JudgedRow]) -> None:
        """Compare rows, as they are recorded, with their payouts."""
        for each in judged:
            self._compare(each)
            for word, payout in each.judgement.extra:
                self._add(word, payout, each.row.currency)
            for finding in each.judgement.findings:
                self.note(finding)

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
            if proof is None or proof.batch != self._batch or end_of(payout) is PayoutEnd.FAILED:
                continue
            if self._add(ExtraPayout.IN_EXCESS, payout, _NO_CURRENCY):
                self.note(_UNKNOWN.format(facts_of(payout)))

    def _add(self, word: ExtraPayout, payout: Payout, currency: str) -> bool:
        """Count an extra payout, in this currency where it shows none. True if it was not counted before."""
        name = payout.id or payout.reference or ""
        is_new, amount = name not in self._extra, payout.amount or Amount()
        value = amount.value or Decimal(0)
        if not (_SMALLEST <= value.copy_abs() <= _LARGEST and value > 0):
            self.note(f"{facts_of(payout)}: a payout beside the rows, whose amount cannot be added up")
            value = Decimal(0)
        self._extra[name] = (word, amount.currency or currency, value)
        return is_new

    async def result(self, turns: Sequence[str]) -> Audit:
        """The result, once the list was read whole: reads the ledger's created rows and its conflicts."""
        async for row in self._ledger.rows(RowState.CREATED):
            if row.number not in self._seen:
                self.note(f"row {row.number}: {row.known.payout_id} is not in the list", "missing")
        async for row in self._ledger.rows(RowState.CONFLICT):
            if row.number not in self._seen:
                self.note(f"row {row.number}: in conflict, and its payout is not in the list")
        uncompared = _not_compared(self._counts["uncompared"], self._uncompared)
        return Audit(
            **self._counts,
            fields=self._fields,
            rounded=self._rounded,
            findings=(*uncompared, *self._findings),
            turns=tuple(turns),
        )

    def _compare(self, judged: JudgedRow) -> None:
        """Compare a created row with its payout; a row in conflict is only looked for."""
        row, own = (
            judged.row,
            [each for each in judged.payouts if each.payout.id == judged.row.known.payout_id],
        )
        if row.state is RowState.CONFLICT:
            self._seen.add(row.number)
        if row.state is not RowState.CREATED or not own:
            return
        again = own
        if self._seen.add(row.number):
            self._count(row, own[0])
            again = own[1:]
        elif judged.judgement.turn is not None:
            self.note(judged.judgement.turn)
        # a list that grows while it is read may repeat a payout on two pages, but never with a difference
        if any(_is_other(each.match) for each in again):
            self.note(f"row {row.number}: {row.known.payout_id}, and the list shows it in two ways")
        for each in own:
            if (status := other_status(row, each)) is not None:
                self.note(status)

    def _count(self, row: LedgerRow, own: RowPayout) -> None:
        """Count a created row whose payout the list shows, and each of its fields."""
        fields = compared(own.asked, own.found)
        for name, is_shown in fields.items():
            self._fields[name] = self._fields.get(name, FieldCount()).with_row(is_shown=is_shown)
        kind = _kind(own.match, shows_money=all(fields[name] for name in MONEY))
        if kind == "differing":
            self.note(f"row {row.number}: the list shows {own.payout.id} differently")
            return
        self._counts[kind] += 1
        if kind == "uncompared":
            self._uncompared = sorted([*self._uncompared, row.number])[:_NAMED]
        if (detail := other_account(own.asked, own.found)) is not None:
            self.note(f"row {row.number}: the list shows {own.payout.id} with another {detail}")
        if own.other_money is not None:
            self._note_rounded(row, own)

    def _note_rounded(self, row: LedgerRow, own: RowPayout) -> None:
        shown = (own.payout.amount or Amount()).value or row.amount
        before = self._rounded.get(row.currency, Decimal(0))
        self._rounded[row.currency] = EXACT.add(before, EXACT.subtract(shown, row.amount))
        asked = f"{row.currency} {row.amount_text}"
        self.note(f"row {row.number}: {own.payout.id} is of {own.other_money}, and {asked} was asked for")

    def note(self, finding: str, kind: str = "differing") -> None:
        """Count a difference, and keep it if it is one of the first. One that two pages show counts once."""
        if finding in self._findings:
            return
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
