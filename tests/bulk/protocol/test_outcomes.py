"""What became of rows, in one word each: counted and summed exactly, and chosen by an export."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async.bulk import Outcome, PayoutBatch
from payments_async.bulk._protocol.outcomes import (
    GROUPS,
    OF_STATE,
    RowTotals,
    Sums,
    counts_of,
    disagreements,
    outcomes_of,
    sums_of,
)
from payments_async.bulk._protocol.records import LedgerRow, RowFigures
from payments_async.bulk._protocol.row_state import RowKnowledge, RowState
from payments_async.bulk._reconcile.certificate import Certificate
from payments_async.models.statuses import PayoutEnd
from payments_async.sandbox import Sandbox
from tests.support.batches import item, items
from tests.support.ledgers import fresh, new_row

ROWS = st.builds(
    lambda state, end, had_arrived, currency, cents: attrs.evolve(
        fresh(new_row(1), 1),
        known=RowKnowledge(state),
        payout_end=end,
        had_arrived=had_arrived,
        currency=currency,
        amount=Decimal(cents).scaleb(-2),
    ),
    st.sampled_from(RowState),
    st.sampled_from([PayoutEnd.OPEN, PayoutEnd.ARRIVED, PayoutEnd.FAILED]),
    st.booleans(),
    st.sampled_from(["GHS", "XOF"]),
    st.integers(1, 10**15),
)


def counted(rows: list[LedgerRow]) -> RowTotals:
    """The totals of these rows, counted one by one."""
    sums = Sums[tuple[Outcome, str]]()
    for row in rows:
        sums.add((row.outcome, row.currency), row.amount)
    return sums.totals


@pytest.mark.parametrize(
    ("end", "had_arrived", "outcome"),
    [
        (PayoutEnd.OPEN, False, "not_final"),
        (PayoutEnd.OPEN, True, "not_final"),
        (PayoutEnd.ARRIVED, True, "arrived"),
        (PayoutEnd.FAILED, False, "failed"),
        (PayoutEnd.FAILED, True, "returned"),
    ],
)
def test_a_payout_that_failed_after_it_had_arrived_was_returned(
    end: PayoutEnd, had_arrived: bool, outcome: str
) -> None:
    created = fresh(new_row(1), 1)
    known = RowKnowledge(RowState.CREATED)
    assert attrs.evolve(created, known=known, payout_end=end, had_arrived=had_arrived).outcome == outcome


@given(ROWS)
def test_every_row_has_one_outcome_which_its_state_allows(row: LedgerRow) -> None:
    assert [outcome for outcome in Outcome if row.outcome in outcomes_of([outcome])] == [row.outcome]
    assert row.outcome in OF_STATE[row.state]
    assert (row.outcome in outcomes_of(["created"])) == (row.state is RowState.CREATED)
    assert row.outcome in outcomes_of(["asked"])


@given(st.lists(st.tuples(ROWS, ROWS), max_size=8))
def test_totals_that_follow_changes_are_those_of_the_rows(pairs: list[tuple[LedgerRow, LedgerRow]]) -> None:
    before, after = counted([one for one, _ in pairs]), counted([two for _, two in pairs])
    assert disagreements(RowFigures(before).after(pairs).totals, after) == []


@given(st.lists(ROWS, max_size=8))
def test_the_parts_of_each_currency_are_all_that_was_asked_and_created(rows: list[LedgerRow]) -> None:
    counts, sums = counts_of(counted(rows)), sums_of(counted(rows))
    assert (counts["asked"], set(sums)) == (len(rows), {row.currency for row in rows})
    for word, outcomes in GROUPS.items():
        mine = [row for row in rows if row.outcome in outcomes]
        assert counts[word] == len(mine)
        for currency, amounts in sums.items():
            assert amounts[word] == sum(row.amount for row in mine if row.currency == currency)


async def test_an_export_is_of_the_rows_to_look_at(service: Sandbox, batch: Any, tmp_path: Path) -> None:
    service.on("payouts.create", description="row 1").outcome("complete immediate")
    service.on("payouts.create", description="row 2").outcome("fail:RECIPIENT_ERROR immediate")
    service.on("payouts.create", description="row 3").respond("http:422")
    wanted = {
        "arrived": ["1"],
        "failed": ["2"],
        "rejected": ["3"],
        "not_final": ["4"],
        "in_doubt": [],
        "created": ["1", "2", "4"],
        "asked": ["1", "2", "3", "4"],
    }
    await batch.load(items(4))
    await batch.run()
    await batch.reconcile()
    for word, numbers in wanted.items():
        report = await batch.export(tmp_path / f"{word}.csv", states=[word])
        lines = (tmp_path / f"{word}.csv").read_text().splitlines()[1:]
        assert [line.split(",")[0] for line in lines] == numbers
        assert report.rows == len(numbers)
    both = await batch.export(tmp_path / "both.csv", states=[Outcome.FAILED, Outcome.REJECTED])
    assert both.rows == 2
    with pytest.raises(ValueError, match=r"no row is ever 'LOST'; there are: asked, not_started"):
        await batch.export(tmp_path / "lost.csv", states=["LOST"])
    assert not (tmp_path / "lost.csv").exists()


AMOUNTS = [
    *(Decimal(f"1234567890123456789{n}.123456789") for n in range(3)),
    Decimal("99999999999999999999.999999999"),
    Decimal("1.000000001"),
]


async def test_a_batch_with_a_sum_of_many_digits_balances_and_is_certified(batch: PayoutBatch) -> None:
    rows = [item(number, amount=amount) for number, amount in enumerate(AMOUNTS, 1)]
    await batch.load(rows)
    half = await batch.run(max_amount="24691357802469135781.246913578")
    assert half.balanced
    assert half.counts["created"] == 2
    report = await batch.run()
    assert (report.balanced, report.exit_code) == (True, 0)
    assert report.totals == {"XOF": Decimal("137037036703703703674.370370367")}
    assert (await batch.reconcile()).is_clean


async def test_a_certificate_that_is_not_clean_always_says_why(batch: PayoutBatch) -> None:
    await batch.load(items(3))
    await batch.run(max_rows=2)
    half = await batch.reconcile()
    assert not half.is_clean
    assert half.findings == ("the batch is not complete: of 3 rows, 1 not started",)
    await batch.run()
    whole = await batch.reconcile()
    assert (whole.is_clean, whole.findings) == (True, ())
    unbalanced: Certificate = attrs.evolve(whole, report=attrs.evolve(whole.report, balanced=False))
    assert not unbalanced.is_clean
    (finding,) = unbalanced.findings
    assert "does not add up" in finding
    said = json.loads(unbalanced.to_json())
    assert (said["clean"], said["findings"]) == (False, [finding])
