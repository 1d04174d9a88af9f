"""What an outcome makes of a row: what both know, whichever came first."""

from __future__ import annotations

import itertools

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async.bulk._protocol import transitions
from payments_async.bulk._protocol.records import LedgerRow, RowOutcome
from payments_async.bulk._protocol.row_state import (
    RowKnowledge,
    RowState,
    after_loss,
    confirm,
    contradict,
    doubt,
    intend,
    merge,
)
from payments_async.models.statuses import PayoutEnd
from tests.bulk.protocol.test_row_state import ACCOUNTS
from tests.support.ledgers import fresh, new_row

S = RowState
FIRST = intend(RowKnowledge())
AGAIN = intend(FIRST)


def row_with(known: RowKnowledge) -> LedgerRow:
    """A row of which that is known."""
    return attrs.evolve(fresh(new_row(1), 1), known=known, service_status=None)


def test_a_confirmation_of_an_earlier_intent_counts_with_its_facts() -> None:
    late = RowOutcome(1, confirm(FIRST, "po_1"), "completed", PayoutEnd.ARRIVED)
    after = transitions.recorded(row_with(AGAIN), late, 9)
    assert after is not None
    assert after.known == RowKnowledge(S.CREATED, intents=2, payout_id="po_1")
    assert (after.service_status, after.outcome, after.changed_in) == ("completed", "arrived", 9)


def test_a_status_learned_by_an_earlier_account_of_the_payout_is_mirrored() -> None:
    row = row_with(confirm(AGAIN, "po_1"))
    after = transitions.recorded(
        row, RowOutcome(1, confirm(FIRST, "po_1"), "completed", PayoutEnd.ARRIVED), 9
    )
    assert after is not None
    assert (after.known, after.service_status) == (row.known, "completed")


@pytest.mark.parametrize("known", [confirm(AGAIN, "po_1"), contradict(AGAIN)])
def test_an_outcome_that_is_overruled_leaves_no_facts(known: RowKnowledge) -> None:
    row = row_with(known)
    assert transitions.recorded(row, RowOutcome(1, doubt(FIRST), failure_code="timeout"), 9) is None


def test_a_later_intent_that_was_settled_before_is_counted_and_says_nothing_of_the_payout() -> None:
    row = attrs.evolve(row_with(confirm(FIRST, "po_1")), service_status="pending")
    after = transitions.recorded(row, RowOutcome(1, doubt(AGAIN), failure_code="timeout"), 9)
    assert after == attrs.evolve(row, known=attrs.evolve(row.known, intents=2), changed_in=9)


def test_how_a_payout_contradicted_itself_goes_with_the_next_word_of_the_service() -> None:
    row = row_with(confirm(FIRST, "po_1"))
    words = ("completed", PayoutEnd.UNCLEAR, None, "completed with failed_at")
    unclear = transitions.recorded(row, RowOutcome(1, row.known, *words, latest=True), 9)
    assert unclear is not None
    assert unclear.failure_message == "completed with failed_at"
    after = transitions.recorded(unclear, RowOutcome(1, row.known, "completed", PayoutEnd.ARRIVED), 10)
    assert after is not None
    assert (after.outcome, after.failure_message) == ("arrived", None)


FIRST_GENERATION = ACCOUNTS.map(lambda known: attrs.evolve(known, generation=0))


@given(FIRST_GENERATION, FIRST_GENERATION)
def test_a_row_then_knows_what_both_know(known: RowKnowledge, learned: RowKnowledge) -> None:
    row = row_with(known)
    after = transitions.recorded(row, RowOutcome(1, learned), 9)
    assert (after or row).known == merge(known, learned)
    assert (after is None) is (merge(known, learned) == known)


@given(ACCOUNTS | ACCOUNTS.map(lambda known: after_loss(known, 1)), st.lists(ACCOUNTS, max_size=4))
def test_the_order_of_outcomes_does_not_matter(known: RowKnowledge, learned: list[RowKnowledge]) -> None:
    ends = set()
    for order in itertools.permutations(learned):
        row = row_with(known)
        for each in order:
            row = transitions.recorded(row, RowOutcome(1, each), 9) or row
        ends.add(row.known)
    assert len(ends) == 1
