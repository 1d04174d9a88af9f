"""Rows that need a person are grouped by outcome and reason, exactly and in bounded memory."""

from __future__ import annotations

from decimal import Decimal

from payments_async.bulk import Outcome
from payments_async.bulk._export.causes import Grouping
from payments_async.bulk._protocol.records import LedgerRow
from payments_async.bulk._protocol.row_state import RowKnowledge, RowState

MANY = 10_000


def ledger_row(number: int, state: RowState, reason: str | None, amount: str = "0.10") -> LedgerRow:
    """A row in this state, with this message."""
    return LedgerRow(
        *(number, None, f"r{number}", f"r{number}", Decimal(amount), "GHS", "mobile_money", b"{}", "", ""),
        known=RowKnowledge(state),
        failure_message=reason,
    )


def test_causes_come_by_urgency_and_then_by_size_with_exact_sums() -> None:
    grouping = Grouping(2)
    for number, (state, reason) in enumerate(
        (
            (RowState.REJECTED, "rare"),
            *[(RowState.REJECTED, "usual")] * 3,
            (RowState.IN_DOUBT, None),
            (RowState.CREATED, "completed with failed_at"),
        )
    ):
        grouping.add(ledger_row(number, state, reason, "0.1" if number else "1e-9"))
    found = [(cause.outcome, cause.reason, cause.count, cause.sums) for cause, _ in grouping.groups()]
    assert found == [
        (Outcome.IN_DOUBT, None, 1, {"GHS": Decimal("0.1")}),
        (Outcome.NOT_FINAL, "completed with failed_at", 1, {"GHS": Decimal("0.1")}),
        (Outcome.REJECTED, "usual", 3, {"GHS": Decimal("0.3")}),
        (Outcome.REJECTED, "rare", 1, {"GHS": Decimal("0.000000001")}),
    ]
    assert [[row.number for row in rows] for _, rows in grouping.groups()] == [[4], [5], [1, 2], [0]]


def test_reasons_of_which_each_row_has_its_own_take_bounded_memory() -> None:
    grouping = Grouping(5)
    for number in range(MANY):
        grouping.add(ledger_row(number, RowState.REJECTED, f"payout {number} exists"))
    grouping.add(ledger_row(MANY, RowState.CONFLICT, "taken"))
    groups = grouping.groups()
    assert [cause.count for cause, _ in groups] == [1, MANY - 20, *[1] * 20]
    assert [cause.reason for cause, _ in groups][:2] == ["taken", "other reasons"]
    assert sum(cause.sums["GHS"] for cause, _ in groups) == (MANY + 1) * Decimal("0.10")
    assert max(len(rows) for _, rows in groups) == 5
