"""What became of created payouts, counted and summed exactly."""

from __future__ import annotations

from decimal import Decimal

import attrs
from hypothesis import given
from hypothesis import strategies as st

from payments_async.bulk.protocol.ends import End, Ends, end_of
from payments_async.bulk.protocol.payout_status import has_failed
from payments_async.bulk.protocol.records import LedgerRow
from payments_async.bulk.protocol.row_state import RowKnowledge, RowState
from payments_async.bulk.protocol.totals import Sums, moved
from payments_async.bulk.protocol.transitions import fresh
from tests.support.ledgers import new_row

STATUSES = ["pending", "completed", "failed", "reversed", "unheard-of"]
ROWS = st.builds(
    lambda state, status, final, code, currency, cents: attrs.evolve(
        fresh(new_row(1), 1),
        known=RowKnowledge(state),
        service_status=status,
        final=final,
        failure_code=code,
        currency=currency,
        amount=Decimal(cents).scaleb(-2),
    ),
    st.sampled_from(RowState),
    st.none() | st.sampled_from(STATUSES),
    st.booleans(),
    st.none() | st.just("RECIPIENT_ERROR"),
    st.sampled_from(["GHS", "XOF"]),
    st.integers(1, 10**15),
)


def counted(rows: list[LedgerRow]) -> Ends:
    """The ends of these rows, counted one by one."""
    sums = Sums[End]()
    for row in rows:
        if (end := end_of(row)) is not None:
            sums.add(end, row.amount)
    return Ends(sums.totals)


@given(st.lists(st.tuples(ROWS, ROWS), max_size=8))
def test_totals_that_follow_changes_are_those_of_the_rows(pairs: list[tuple[LedgerRow, LedgerRow]]) -> None:
    before, after = counted([one for one, _ in pairs]), counted([two for _, two in pairs])
    kept = Ends({**before.totals, **before.moved(pairs)})
    assert kept.disagreements(after) == []
    assert kept.finals == after.finals


@given(st.lists(ROWS, max_size=8))
def test_the_parts_of_each_currency_are_all_that_was_created(rows: list[LedgerRow]) -> None:
    made = [row for row in rows if row.state is RowState.CREATED]
    blank = [attrs.evolve(row, known=RowKnowledge()) for row in made]
    money = counted(rows).money(moved({}, zip(blank, made, strict=True)))
    assert set(money) == {row.currency for row in made}
    for currency, sums in money.items():
        mine = [row for row in made if row.currency == currency]
        assert sums.created == sum(row.amount for row in mine)
        assert sums.failed == sum(row.amount for row in mine if has_failed(row))
        assert sums.arrived == sum(row.amount for row in mine if row.final and not has_failed(row))
        assert sums.not_final == sum(row.amount for row in mine if not row.final)


def test_a_total_that_is_not_that_of_its_rows_is_told() -> None:
    kept = Ends({End("completed", False, "GHS"): (2, Decimal("20.20"))})
    found = Ends({End("completed", False, "GHS"): (1, Decimal("10.10"))})
    assert kept.disagreements(found) == [
        "payouts that ended as completed: 2 recorded (GHS 20.20), 1 found (GHS 10.10)"
    ]
