"""Compares what a reading of the service's list shows with the ledger, row by row and field by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

import attrs

from ...models import Amount
from .._engine.reading import JudgedRow
from .._ledger.ledger import Ledger
from .._protocol.listed_payouts import RowPayout, other_status
from .._protocol.matching import MONEY, Match, compared
from .._protocol.outcomes import EXACT
from .._protocol.records import LedgerRow, RowSet
from .._protocol.row_state import RowState

_MOST_FINDINGS: Final = 100
_NAMED: Final = 5


@attrs.frozen
class FieldCount:
    """Counts the created rows of which one field was compared with the list."""

    compared: int = 0
    not_shown: int = 0
    """Rows whose payouts the list shows without the field: they were not compared."""


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
        self._ledger = ledger
        self._seen = RowSet()
        self._counts = {"seen": 0, "missing": 0, "differing": 0, "uncompared": 0}
        self._compared: Counter[str] = Counter(dict.fromkeys(MONEY, 0))
        self._not_shown: Counter[str] = Counter()
        self._rounded: dict[str, Decimal] = {}
        self._uncompared: list[int] = []
        self._findings: list[str] = []
        self.unseen: int = 0
        """Created rows and rows in conflict of which the list has shown no payout: counted by `result`."""

    def take(self, judged: Iterable[JudgedRow]) -> None:
        """Compare rows, as they are recorded, with their payouts."""
        for each in judged:
            self._compare(each)
            for finding in each.judgement.findings:
                self.note(finding)

    async def result(self, turns: Sequence[str]) -> Audit:
        """The result, once the list was read whole: reads the ledger's created rows and its conflicts."""
        async for row in self._unseen(RowState.CREATED):
            self.note(f"row {row.number}: {row.known.payout_id} is not in the list", "missing")
        async for row in self._unseen(RowState.CONFLICT):
            self.note(f"row {row.number}: in conflict, and its payout is not in the list")
        uncompared = _not_compared(self._counts["uncompared"], self._uncompared)
        return Audit(
            **self._counts,
            fields={name: FieldCount(rows, self._not_shown[name]) for name, rows in self._compared.items()},
            rounded=self._rounded,
            findings=(*uncompared, *self._findings),
            turns=tuple(turns),
        )

    async def _unseen(self, state: RowState) -> AsyncIterator[LedgerRow]:
        """Read and count the rows in a state of which the list has shown no payout."""
        async for numbers in self._ledger.numbers(state):
            unseen = await self._ledger.numbered(each for each in numbers if each not in self._seen)
            self.unseen += len(unseen)
            for row in unseen.values():
                yield row

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
            self._compared[name] += is_shown
            self._not_shown[name] += not is_shown
        kind = _kind(own.match, shows_money=all(fields[name] for name in MONEY))
        if kind == "uncompared":
            self._counts[kind] += 1
            self._uncompared = sorted([*self._uncompared, row.number])[:_NAMED]
        if own.difference is not None:
            self.note(f"row {row.number}: {own.difference}")
        if kind == "seen":
            self._counts[kind] += 1
            if own.other_money is not None:
                self._add_rounded(row, own)

    def _add_rounded(self, row: LedgerRow, own: RowPayout) -> None:
        shown = (own.payout.amount or Amount()).value or row.amount
        before = self._rounded.get(row.currency, Decimal(0))
        self._rounded[row.currency] = EXACT.add(before, EXACT.subtract(shown, row.amount))

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
