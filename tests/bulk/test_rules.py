"""What to do with a row at start-up, before a request, and after a walk of the list."""

from __future__ import annotations

import itertools
import math
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async._assumptions import ABANDONED_AFTER, KEY_TRUSTED_FOR, LIST_SETTLES
from payments_async.bulk.protocol.clocks import INTENT_LIFETIME, Age
from payments_async.bulk.protocol.decisions import (
    Action,
    Finding,
    Hindrance,
    Resolution,
    Walk,
    after_walk,
    at_start,
    hindrance,
)
from payments_async.bulk.protocol.matching import Witness
from payments_async.bulk.protocol.row_state import RowState
from payments_async.bulk.protocol.safeguards import Safeguards

S = RowState
YOUNG, OLD = Age(0.0, KEY_TRUSTED_FOR - 1), Age(0.0, KEY_TRUSTED_FOR)
LONG_AGO = ABANDONED_AFTER + LIST_SETTLES


@pytest.mark.parametrize(
    ("state", "young", "old"),
    [
        (S.NEW, Action.SEND, Action.SEND),
        (S.IN_FLIGHT, Action.SEND_AGAIN, Action.RESOLVE),
        (S.IN_DOUBT, Action.SEND_AGAIN, Action.RESOLVE),
        (S.CREATED, Action.NOTHING, Action.NOTHING),
        (S.REJECTED, Action.NOTHING, Action.NOTHING),
        (S.CONFLICT, Action.NOTHING, Action.NOTHING),
        (S.CANCELLED, Action.NOTHING, Action.NOTHING),
    ],
)
def test_what_a_row_needs_when_a_run_comes_to_it(state: S, young: Action, old: Action) -> None:
    assert at_start(state, YOUNG) is young
    assert at_start(state, OLD) is old
    other_bytes = Action.RESOLVE if young is Action.SEND_AGAIN else young
    assert at_start(state, YOUNG, same_bytes=False) is other_bytes


def test_all_states_are_in_that_table() -> None:
    assert len(S) == 7


def test_a_clock_that_went_back_sends_nobody_again() -> None:
    assert at_start(S.IN_FLIGHT, Age(0.0, math.inf)) is Action.RESOLVE


FREE: dict[str, Any] = {
    "durable": True,
    "under_way": 0,
    "same_bytes": True,
    "age_of_intent": Age(0.0, INTENT_LIFETIME - 1),
}
STOPS: list[tuple[dict[str, Any], Hindrance, str]] = [
    ({"durable": False}, Hindrance.NOT_DURABLE, "intent_before_send"),
    ({"under_way": 1}, Hindrance.BUSY, "one_request_per_row"),
    ({"same_bytes": False}, Hindrance.OTHER_BYTES, "same_bytes"),
    ({"age_of_intent": Age(0.0, INTENT_LIFETIME)}, Hindrance.STALE, "fresh_intent"),
]


def test_a_request_leaves_when_nothing_hinders_it() -> None:
    assert hindrance(**FREE) is None
    assert {reason for _, reason, _ in STOPS} == set(Hindrance)


@pytest.mark.parametrize(("fact", "reason", "safeguard"), STOPS)
def test_each_hindrance_alone_holds_a_request_back(
    fact: dict[str, Any], reason: Hindrance, safeguard: str
) -> None:
    assert hindrance(**{**FREE, **fact}) is reason
    assert hindrance(**{**FREE, **fact}, safeguards=Safeguards(**{safeguard: False})) is None


def test_the_disk_comes_first() -> None:
    worst = {name: value for fact, _, _ in STOPS for name, value in fact.items()}
    assert hindrance(**worst) is Hindrance.NOT_DURABLE


ABSENT = Walk(witness=None, whole=True, everywhere=True, began=LONG_AGO)
USUAL: dict[str, Any] = {
    "since_send": LONG_AGO,
    "epoch": 0,
    "exists": False,
    "refused": False,
    "looks_left": 1,
}


def resolution(walk: Walk = ABSENT, safeguards: Safeguards | None = None, **facts: Any) -> Resolution:
    return after_walk(walk, **{**USUAL, **facts}, safeguards=safeguards or Safeguards())


@pytest.mark.parametrize(
    ("witness", "finding"),
    [
        (Witness.EQUAL, Finding.CONFIRM),
        (Witness.FOREIGN, Finding.CONTRADICT),
        (Witness.OTHER_BODY, Finding.CONTRADICT),
        (Witness.UNCLEAR, Finding.SURFACE),
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_what_was_found_decides_at_once(witness: Witness, finding: Finding, whole: bool) -> None:
    walk = Walk(witness, whole, everywhere=False, began=0.0)
    assert resolution(walk, since_send=0.0).finding is finding


def test_half_a_walk_proves_nothing() -> None:
    half = attrs.evolve(ABSENT, whole=False)
    assert resolution(half).finding is Finding.LOOK_AGAIN
    assert resolution(half, looks_left=0).finding is Finding.SURFACE


def test_a_reference_that_exists_is_looked_for_without_filters() -> None:
    narrow = attrs.evolve(ABSENT, everywhere=False)
    assert resolution(narrow, exists=True).finding is Finding.LOOK_EVERYWHERE
    assert resolution(narrow, exists=False).finding is Finding.NEXT_EPOCH


def test_the_next_key_waits_until_no_abandoned_request_can_live() -> None:
    early = resolution(attrs.evolve(ABSENT, began=0.0), since_send=ABANDONED_AFTER - 60)
    assert early == Resolution(Finding.WAIT, 60.0)
    in_time = resolution(attrs.evolve(ABSENT, began=ABANDONED_AFTER - 1), since_send=ABANDONED_AFTER)
    assert in_time == Resolution(Finding.NEXT_EPOCH, absent=False)


def test_absence_is_proven_only_by_a_list_that_has_settled() -> None:
    assert resolution() == Resolution(Finding.NEXT_EPOCH, absent=True)
    assert resolution(attrs.evolve(ABSENT, began=LONG_AGO - 1)).absent is False


def test_a_refused_row_waits_for_proven_absence() -> None:
    early = attrs.evolve(ABSENT, began=LONG_AGO - 60)
    assert resolution(early, refused=True) == Resolution(Finding.WAIT, 60.0)
    assert resolution(refused=True) == Resolution(Finding.NEXT_EPOCH, absent=True)


def test_a_reference_taken_under_a_later_key_is_scanned_for_again_and_then_shown() -> None:
    assert resolution(exists=True, epoch=1).finding is Finding.LOOK_AGAIN
    assert resolution(exists=True, epoch=1, looks_left=0).finding is Finding.SURFACE
    assert resolution(exists=True, epoch=0).finding is Finding.NEXT_EPOCH


@given(
    walk=st.builds(
        Walk,
        witness=st.none() | st.sampled_from(Witness),
        whole=st.booleans(),
        everywhere=st.booleans(),
        began=st.floats(0, 4000),
    ),
    since_send=st.floats(0, 4000),
    epoch=st.integers(0, 2),
    exists=st.booleans(),
    refused=st.booleans(),
    looks_left=st.integers(0, 3),
)
def test_no_walk_gives_a_new_key_too_early_or_a_proof_it_has_not(walk: Walk, **facts: Any) -> None:
    found = after_walk(walk, **facts)
    if found.finding is Finding.NEXT_EPOCH:
        assert walk.witness is None
        assert walk.whole
        assert facts["since_send"] >= ABANDONED_AFTER
    if found.absent:
        assert walk.began >= LONG_AGO
    assert (found.wait > 0) is (found.finding is Finding.WAIT)
    assert facts["looks_left"] > 0 or found.finding is not Finding.LOOK_AGAIN


def test_without_its_safeguard_each_condition_is_gone() -> None:
    half = attrs.evolve(ABSENT, whole=False)
    assert resolution(half, Safeguards(absence_needs_whole_walk=False)).absent
    narrow = attrs.evolve(ABSENT, everywhere=False)
    once = Safeguards(second_walk_is_unbounded=False)
    assert resolution(narrow, once, exists=True).finding is Finding.NEXT_EPOCH
    hasty = Safeguards(epoch_waits_for_abandoned=False)
    assert resolution(safeguards=hasty, since_send=0.0).finding is Finding.NEXT_EPOCH
    trusting = Safeguards(absence_needs_settled_list=False)
    assert resolution(attrs.evolve(ABSENT, began=ABANDONED_AFTER), trusting).absent
    assert at_start(S.IN_FLIGHT, OLD, safeguards=Safeguards(key_expires=False)) is Action.SEND_AGAIN
    loose = Safeguards(same_bytes=False)
    assert at_start(S.IN_FLIGHT, YOUNG, same_bytes=False, safeguards=loose) is Action.SEND_AGAIN


def test_the_findings_are_all_reached() -> None:
    walks = itertools.product([None, *Witness], [True, False], [True, False], [0.0, LONG_AGO])
    facts = itertools.product([0.0, LONG_AGO], [0, 1], [True, False])
    reached = {
        resolution(Walk(*walk), since_send=since, epoch=epoch, exists=exists).finding
        for walk, (since, epoch, exists) in itertools.product(walks, facts)
    }
    assert reached == set(Finding)
