"""A row's columns, values and digest follow from its fields."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import attrs
import pytest

from payments_async.bulk._ledger import stored_rows
from payments_async.bulk._ledger.hash_chain import outline
from payments_async.bulk._ledger.stored_rows import (
    COLUMNS,
    StoredRow,
    fresh_digest,
    row_digest,
    stored_row,
    values_of,
)
from payments_async.bulk._protocol.records import LedgerRow, NewRow
from payments_async.bulk._protocol.row_state import RowKnowledge, RowState, rank
from payments_async.models.statuses import PayoutEnd
from tests.support.ledgers import fresh, new_row

KEY = bytes(range(32))
KNOWN = RowKnowledge(
    state=RowState.CREATED, generation=1, revision=2, epoch=3, intents=5, cleared=4, payout_id="po_1"
)
ROW = LedgerRow(
    **attrs.asdict(new_row(7, line=9, metadata='{"ä": "\\u00e9"}', amount=Decimal("1E+2"))),
    known=KNOWN,
    service_status="completed",
    payout_end=PayoutEnd.FAILED,
    had_arrived=True,
    earlier_arrived=False,
    unsent_generations=2,
    payout_money="XOF 1",
    failure_code="code",
    failure_message="message",
    first_intent=11,
    key_intent=12,
    last_intent=13,
    changed_in=14,
)
OTHERS = {
    int: 99,
    str: "other",
    Decimal: Decimal(5),
    bytes: b"other",
    RowState: RowState.REJECTED,
    PayoutEnd: PayoutEnd.ARRIVED,
}


def other(row: LedgerRow, name: str) -> LedgerRow:
    """The row with another value in one field."""
    if hasattr(row.known, name):
        return attrs.evolve(row, known=attrs.evolve(row.known, **{name: _other(getattr(row.known, name))}))
    return attrs.evolve(row, **{name: _other(getattr(row, name))})


def _other(value: object) -> object:
    return not value if isinstance(value, bool) else OTHERS[type(value)]


@pytest.mark.parametrize("row", [ROW, fresh(new_row(1, line=None), 1)])
def test_a_row_is_read_from_the_values_of_its_columns(row: LedgerRow) -> None:
    values = dict(zip(COLUMNS, values_of(COLUMNS)(row), strict=True))
    stored = stored_row((*values.values(), 1, "own key", 3, b"digest"))
    assert stored == StoredRow(row, 1, "own key", 3, b"digest")
    assert values["amount"] == f"{row.amount:f}"
    assert row_digest(stored.row, KEY) == row_digest(row, KEY)


@pytest.mark.parametrize(
    "new",
    [new_row(1), new_row(7, line=None, metadata='{"ä": "\\u00e9"}', amount=Decimal("1E+2"), row_key="é")],
)
def test_the_digest_of_a_fresh_row_is_that_of_its_ledger_row(new: NewRow) -> None:
    assert fresh_digest(new, KEY) == row_digest(fresh(new, 1), KEY)


@pytest.mark.parametrize("name", COLUMNS)
def test_every_field_is_stored_and_counts_in_the_digest(name: str) -> None:
    changed = other(ROW, name)
    before, after = (values_of(COLUMNS)(row) for row in (ROW, changed))
    assert [column for column, *pair in zip(COLUMNS, before, after, strict=True) if len({*pair}) > 1] == [
        name
    ]
    assert (row_digest(changed, KEY) != row_digest(ROW, KEY)) is (name != "body")
    stored = StoredRow(changed, 0, None, rank(KNOWN), row_digest(ROW, KEY))
    assert stored.findings(row_digest(changed, KEY)) == [
        "the body of row 7 is another" if name == "body" else f"row {changed.number} is not as it was written"
    ]


def test_no_value_of_a_stored_row_is_found_by_its_position() -> None:
    """A swapped pair would be seen by no type checker, in the code that says what was paid."""
    by_position = re.compile(r"\bvalues\[|\b(?:row|each|found\[\d\])\[\d*:?\d*\]")
    ledger = Path(stored_rows.__file__).parent
    found = [path.name for path in ledger.rglob("*.py") if by_position.search(path.read_text())]
    assert found == []


@pytest.mark.parametrize("status", ["pending", "completed", "reversed", "unheard-of"])
def test_an_entry_keeps_each_word_of_the_service_about_a_payout(status: str) -> None:
    assert outline(attrs.evolve(ROW, service_status=status)) == [7, "CREATED", 1, 3, "po_1", status]
    assert outline(attrs.evolve(ROW, service_status=None)) == [7, "CREATED", 1, 3, "po_1"]
    unclear = attrs.evolve(ROW, service_status=status, payout_end=PayoutEnd.UNCLEAR)
    assert outline(unclear) == [7, "CREATED", 1, 3, "po_1", status, "unclear"]
