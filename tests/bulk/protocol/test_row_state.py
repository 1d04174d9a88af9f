"""States of a row, the transitions between them, and the merge of two accounts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async.bulk._protocol import row_state
from payments_async.bulk._protocol.row_state import (
    TRANSITIONS,
    IllegalTransition,
    RowChange,
    RowKnowledge,
    RowState,
    merge,
    rank,
)

S = RowState
SETTLED = (S.CREATED, S.CONFLICT)
CHANGES: dict[RowChange, Callable[[RowKnowledge], RowKnowledge]] = {
    RowChange.INTEND: row_state.intend,
    RowChange.CONFIRM: lambda known: row_state.confirm(known, "po_1"),
    RowChange.REFUSE: row_state.refuse,
    RowChange.CONTRADICT: row_state.contradict,
    RowChange.DOUBT: row_state.doubt,
    RowChange.CANCEL: row_state.cancel,
    RowChange.CORRECT: row_state.correct,
    RowChange.RETRY: lambda known: row_state.retry(known, finally_failed=True),
    RowChange.ADOPT: lambda known: row_state.adopt(known, known.generation + 2),
}
SMALL = st.integers(0, 3)
ACCOUNTS = st.builds(
    RowKnowledge,
    state=st.sampled_from(S),
    generation=st.integers(0, 2),
    revision=SMALL,
    epoch=SMALL,
    intents=SMALL,
    cleared=SMALL,
    payout_id=st.sampled_from(["", "po_1", "po_2"]),
)


@pytest.mark.parametrize(("state", "change"), list(itertools.product(S, RowChange)))
def test_every_change_of_every_state_is_in_the_table_or_refused(state: S, change: RowChange) -> None:
    known = RowKnowledge(state, intents=1)
    if (state, change) in TRANSITIONS:
        assert CHANGES[change](known).state is TRANSITIONS[state, change]
        return
    with pytest.raises(IllegalTransition) as caught:
        CHANGES[change](known)
    assert (caught.value.state, caught.value.change) == (state, change)
    assert str(caught.value) == f"a row that is {state} cannot {change}"


DIAGRAM = (
    "NEW intend IN_FLIGHT, NEW cancel CANCELLED, NEW correct NEW, IN_FLIGHT intend IN_FLIGHT",
    "IN_FLIGHT confirm CREATED, IN_FLIGHT refuse REJECTED, IN_FLIGHT contradict CONFLICT",
    "IN_FLIGHT doubt IN_DOUBT, IN_DOUBT intend IN_FLIGHT, IN_DOUBT confirm CREATED",
    "IN_DOUBT contradict CONFLICT, IN_DOUBT doubt IN_DOUBT, REJECTED correct NEW, CREATED retry NEW",
    "NEW adopt NEW, IN_FLIGHT adopt NEW, IN_DOUBT adopt NEW, CREATED adopt NEW, CONFLICT adopt NEW",
    "NEW confirm CREATED, NEW contradict CONFLICT, REJECTED confirm CREATED",
    "REJECTED contradict CONFLICT, CANCELLED confirm CREATED, CANCELLED contradict CONFLICT",
    "CONFLICT confirm CREATED",
)


def test_what_the_diagram_of_the_protocol_says() -> None:
    drawn = {f"{state} {change} {after}" for (state, change), after in TRANSITIONS.items()}
    assert drawn == {*", ".join(DIAGRAM).split(", ")}


def test_an_intent_is_counted_and_leaves_doubt_until_it_is_cleared() -> None:
    first = row_state.intend(RowKnowledge())
    assert (first.intents, first.cleared, first.was_doubtful) == (1, 0, False)
    second = row_state.intend(first)
    assert (second.intents, second.was_doubtful, second.epoch) == (2, True, 0)
    rejected = row_state.refuse(first)
    assert rejected.cleared == rejected.intents == 1


def test_proven_absence_clears_all_intents_before_the_next() -> None:
    known = row_state.intend(row_state.doubt(row_state.intend(RowKnowledge())), next_epoch=True, absent=True)
    assert (known.epoch, known.intents, known.cleared, known.was_doubtful) == (1, 2, 1, False)


def test_a_corrected_row_has_nothing_in_doubt() -> None:
    known = row_state.intend(row_state.correct(row_state.refuse(row_state.intend(RowKnowledge()))))
    assert (known.state, known.revision, known.was_doubtful) == (S.IN_FLIGHT, 1, False)


def test_a_retried_row_is_new_in_the_next_generation() -> None:
    created = RowKnowledge(S.CREATED, generation=1, revision=2, epoch=3, intents=4, payout_id="po_1")
    assert row_state.retry(created, finally_failed=True) == RowKnowledge(S.NEW, generation=2)


def test_a_created_row_is_not_retried_before_its_payout_has_finally_failed() -> None:
    with pytest.raises(IllegalTransition):
        row_state.retry(RowKnowledge(S.CREATED), finally_failed=False)


@pytest.mark.parametrize("generation", [1, 2])
def test_only_a_later_generation_is_adopted(generation: int) -> None:
    with pytest.raises(IllegalTransition):
        row_state.adopt(RowKnowledge(S.CREATED, generation=2), generation)


@given(ACCOUNTS, ACCOUNTS)
def test_merging_commutes(one: RowKnowledge, other: RowKnowledge) -> None:
    assert merge(one, other) == merge(other, one)


@given(ACCOUNTS, ACCOUNTS, ACCOUNTS)
def test_merging_associates(one: RowKnowledge, two: RowKnowledge, three: RowKnowledge) -> None:
    assert merge(merge(one, two), three) == merge(one, merge(two, three))


@given(ACCOUNTS, ACCOUNTS)
def test_merging_again_changes_nothing(one: RowKnowledge, other: RowKnowledge) -> None:
    merged = merge(one, other)
    assert merge(one, one) == one
    assert merge(merged, one) == merged
    assert merge(merged, other) == merged


@given(ACCOUNTS, ACCOUNTS)
def test_merging_only_adds_knowledge(one: RowKnowledge, other: RowKnowledge) -> None:
    merged = merge(one, other)
    assert rank(merged) >= max(rank(one), rank(other))
    if one.generation == other.generation:
        assert merged.intents == max(one.intents, other.intents)
        assert (merged.state in SETTLED) is (one.state in SETTLED or other.state in SETTLED)


@given(ACCOUNTS, st.sampled_from(sorted(RowChange)))
def test_every_change_adds_knowledge(known: RowKnowledge, change: RowChange) -> None:
    if (known.state, change) not in TRANSITIONS or (change is RowChange.DOUBT and known.state is S.IN_DOUBT):
        return
    assert rank(CHANGES[change](known)) > rank(known)


@pytest.mark.parametrize(
    ("less", "more"),
    list(
        itertools.pairwise(
            [
                RowKnowledge(),
                RowKnowledge(S.CANCELLED),
                RowKnowledge(revision=1),
                RowKnowledge(S.IN_FLIGHT, intents=1),
                RowKnowledge(S.REJECTED, intents=1, cleared=1),
                RowKnowledge(S.IN_DOUBT, intents=1),
                RowKnowledge(S.NEW, intents=1, revision=1),
                RowKnowledge(S.IN_FLIGHT, intents=2),
                RowKnowledge(S.CONFLICT, intents=1),
                RowKnowledge(S.CREATED, intents=1, payout_id="po_1"),
                RowKnowledge(generation=1),
            ]
        )
    ),
)
def test_knowing_more_ranks_higher(less: RowKnowledge, more: RowKnowledge) -> None:
    assert rank(less) < rank(more)
    assert merge(less, more) == attrs.evolve(
        more, intents=max(more.intents, less.intents * (not more.generation))
    )


def test_of_two_accounts_of_the_same_requests_the_doubtful_one_is_believed() -> None:
    rejected, doubtful = RowKnowledge(S.REJECTED, intents=1, cleared=1), RowKnowledge(S.IN_DOUBT, intents=1)
    assert merge(rejected, doubtful) == doubtful
    clean, unclean = RowKnowledge(S.IN_FLIGHT, intents=2, cleared=1), RowKnowledge(S.IN_FLIGHT, intents=2)
    assert merge(clean, unclean) == unclean


def test_a_confirmation_of_an_earlier_intent_ends_a_later_one() -> None:
    created = RowKnowledge(S.CREATED, intents=1, payout_id="po_1")
    assert merge(RowKnowledge(S.IN_FLIGHT, epoch=1, intents=2), created) == attrs.evolve(created, intents=2)


def test_a_rank_fits_a_database_integer() -> None:
    most = RowKnowledge(S.CREATED, generation=2**12 - 1, revision=2**16 - 1, intents=2**24 - 1)
    assert rank(RowKnowledge()) == 0
    assert rank(most) < 2**63


@pytest.mark.parametrize("field", ["generation", "revision", "intents"])
@pytest.mark.parametrize("count", [-1, 2**24])
def test_a_counter_that_no_batch_reaches_is_refused(field: str, count: int) -> None:
    counters: dict[str, Any] = {field: count}
    with pytest.raises(OverflowError, match=f"{field} is {count}"):
        rank(RowKnowledge(**counters))
