"""Compares what a reading of the list shows with the ledger, row by row and field by field. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import attrs
import msgspec

from ..._request.comparison import MONEY
from ...models import Amount
from .listed_payouts import Judgement
from .matching import Match, RowPayout
from .outcomes import EXACT, RowState, add_amount, as_text
from .payout_status import described, status_of
from .records import LedgerRow

MOST_FINDINGS: Final = 100
_NAMED: Final = 5
_OTHER: Final = (Match.FOREIGN, Match.OTHER_BODY)


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
    """Rows whose payouts differ between list and ledger, and rows in conflict."""
    uncompared: int
    """Created rows whose payouts the list shows without an amount or currency, but otherwise equal."""
    fields: Mapping[str, FieldCount]
    """{field: the count of rows compared}: `amount`, `currency`, and `metadata.payments_sdk`,
    the proof that covers the whole request, and account details where the list shows them in full."""
    rounded: Mapping[str, Decimal]
    """{currency: the sum that the list shows of rounded payouts, less what was asked for}."""
    findings: tuple[str, ...]
    """The first differences."""
    turns: tuple[str, ...]
    """The first payouts that had ended, and that the list now shows with another status. The ledger has the
    new one: a turn is no difference."""

    def facts(self) -> dict[str, Any]:
        """The same as JSON values, amounts as text."""
        rounded = {currency: as_text(amount) for currency, amount in self.rounded.items()}
        return {**attrs.asdict(self), "rounded": rounded}


@attrs.define
class Auditor:
    """Adds up one reading of the list, page by page. It is kept beside the reading's place in the list."""

    seen: int = 0
    missing: int = 0
    differing: int = 0
    uncompared: int = 0
    unread: int = 0
    """Payouts of the list that could not be read: each may be any that it seems to lack."""
    fields: dict[str, list[int]] = attrs.field(factory=lambda: {name: [0, 0] for name in MONEY})
    """{field: in how many rows it was compared, and in how many it was not shown}."""
    rounded: dict[str, Decimal] = attrs.field(factory=dict)
    first_uncompared: list[int] = attrs.field(factory=list)
    findings: list[str] = attrs.field(factory=list)
    turns: list[str] = attrs.field(factory=list)

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Auditor:
        """Read what `to_json` wrote. Raises ValueError or TypeError for anything else."""
        return msgspec.json.decode(text, type=cls)

    def take(
        self,
        row: LedgerRow,
        payouts: Sequence[RowPayout],
        judgement: Judgement,
        *,
        is_counted: bool,
        has_first: bool,
    ) -> None:
        """Compare a row, as the list leaves it, with its payouts.

        `is_counted`: a page before has counted it. `has_first`: the payout that counts is the first of them.
        """
        facts = judgement.facts
        payout_id = row.payout_id if facts is None else facts.payout_id
        state = row.state if facts is None else facts.state
        own = [each for each in payouts if payout_id is not None and each.payout.id == payout_id]
        if state is RowState.CREATED and own:
            if not is_counted:
                self._count(row, own[0])
            # a list that grows while it is read may repeat a payout on two pages, but never with a difference
            if any(each.match in _OTHER for each in own[has_first:]):
                self.note(f"row {row.number}: {payout_id}, and the list shows it in two ways")
            if len({(status_of(each.payout), each.end) for each in own}) > 1:
                said = " and ".join(described(each.payout) for each in own)
                self.note(f"row {row.number}: {payout_id} is {said} on the list")
        for finding in judgement.findings:
            self.note(finding)
        turn = judgement.turn
        if turn is not None and len(self.turns) < MOST_FINDINGS and turn not in self.turns:
            self.turns.append(turn)

    def _count(self, row: LedgerRow, own: RowPayout) -> None:
        """Count a created row whose payout the list shows, and each of its fields."""
        for name, is_shown in own.fields.items():
            self.fields.setdefault(name, [0, 0])[not is_shown] += 1
        if own.difference is not None:
            self.note(f"row {row.number}: {own.difference}")
        if own.match in _OTHER:
            return
        if not all(own.fields[name] for name in MONEY):
            self.uncompared += 1
            self.first_uncompared = sorted([*self.first_uncompared, row.number])[:_NAMED]
        elif own.match is Match.EQUAL:
            self.seen += 1
            if own.other_money is not None:
                shown = (own.payout.amount or Amount()).value or row.amount
                add_amount(self.rounded, row.currency, EXACT.subtract(shown, row.amount))

    def note(self, finding: str, kind: str = "differing") -> None:
        """Count a difference, and keep it if it is one of the first. One that two pages show counts once."""
        if finding in self.findings:
            return
        setattr(self, kind, getattr(self, kind) + 1)
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding)

    def result(self) -> Audit:
        findings = [*self.findings]
        if self.uncompared:
            rows = "1 row was" if self.uncompared == 1 else f"{self.uncompared} rows were"
            first = self.first_uncompared
            more = f" and {self.uncompared - len(first)} more" if self.uncompared > len(first) else ""
            which = f"row{'s' * (self.uncompared > 1)} {', '.join(map(str, first))}{more}"
            found = f"{rows} not compared: the list shows no amount or no currency of {which}"
            findings.insert(0, found)
        return Audit(
            seen=self.seen,
            missing=self.missing,
            differing=self.differing,
            uncompared=self.uncompared,
            fields={name: FieldCount(*counts) for name, counts in self.fields.items()},
            rounded=dict(self.rounded),
            findings=tuple(findings),
            turns=tuple(self.turns),
        )
