"""What to do with a row in doubt when a run starts and after a scan of the list."""

from __future__ import annotations

import itertools
import math
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async._assumptions import ABANDONED_AFTER, KEY_TRUSTED_FOR, LIST_SETTLES
from payments_async.bulk._protocol.clocks import ElapsedRange
from payments_async.bulk._protocol.matching import Match
from payments_async.bulk._protocol.row_state import RowState
from payments_async.bulk._protocol.rows_in_doubt import (
    Action,
    ListScan,
    NextStep,
    Resolution,
    after_scan,
    at_start,
)

S = RowState
YOUNG, OLD = ElapsedRange(0.0, KEY_TRUSTED_FOR - 1), ElapsedRange(0.0, KEY_TRUSTED_FOR)
LONG_AGO = ABANDONED_AFTER + LIST_SETTLES


@pytest.mark.parametrize(
    ("state", "young", "old"),
    [
        (S.NEW, Action.SEND, Action.SEND),
        *((state, Action.SEND_AGAIN, Action.RESOLVE) for state in (S.IN_FLIGHT, S.IN_DOUBT)),
        *((state, *[Action.NOTHING] * 2) for state in (S.CREATED, S.REJECTED, S.CONFLICT, S.CANCELLED)),
    ],
)
def test_what_a_row_needs_when_a_run_comes_to_it(state: S, young: Action, old: Action) -> None:
    assert at_start(state, YOUNG) is young
    assert at_start(state, OLD) is old
    other_bytes = Action.RESOLVE if young is Action.SEND_AGAIN else young
    assert at_start(state, YOUNG, same_bytes=False) is other_bytes


def test_after_a_clock_went_back_no_row_is_sent_again() -> None:
    assert at_start(S.IN_FLIGHT, ElapsedRange(0.0, math.inf)) is Action.RESOLVE


ABSENT = ListScan(matched=None, whole=True, everywhere=True, began=LONG_AGO)
USUAL: dict[str, Any] = {
    "since_send": LONG_AGO,
    "epoch": 0,
    "exists": False,
    "refused": False,
    "scans_left": 1,
}


def resolution(scan: ListScan = ABSENT, **facts: Any) -> Resolution:
    return after_scan(scan, **{**USUAL, **facts})


@pytest.mark.parametrize(
    ("matched", "step"),
    [
        (Match.EQUAL, NextStep.CONFIRM),
        (Match.FOREIGN, NextStep.CONTRADICT),
        (Match.OTHER_BODY, NextStep.CONTRADICT),
        (Match.UNCLEAR, NextStep.SURFACE),
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_what_was_found_decides_at_once(matched: Match, step: NextStep, whole: bool) -> None:
    scan = ListScan(matched, whole, everywhere=False, began=0.0)
    assert resolution(scan, since_send=0.0).step is step


def test_half_a_scan_proves_nothing() -> None:
    half = attrs.evolve(ABSENT, whole=False)
    assert resolution(half).step is NextStep.SCAN_AGAIN
    assert resolution(half, scans_left=0).step is NextStep.SURFACE


def test_a_reference_that_exists_is_looked_for_without_filters() -> None:
    narrow = attrs.evolve(ABSENT, everywhere=False)
    assert resolution(narrow, exists=True).step is NextStep.SCAN_EVERYWHERE
    assert resolution(narrow, exists=False).step is NextStep.NEXT_EPOCH


def test_the_next_key_waits_until_no_abandoned_request_can_live() -> None:
    early = resolution(attrs.evolve(ABSENT, began=0.0), since_send=ABANDONED_AFTER - 60)
    assert early == Resolution(NextStep.WAIT, 60.0)
    in_time = resolution(attrs.evolve(ABSENT, began=ABANDONED_AFTER - 1), since_send=ABANDONED_AFTER)
    assert in_time == Resolution(NextStep.NEXT_EPOCH, absent=False)


def test_absence_is_proven_only_by_a_list_that_has_settled() -> None:
    assert resolution() == Resolution(NextStep.NEXT_EPOCH, absent=True)
    assert resolution(attrs.evolve(ABSENT, began=LONG_AGO - 1)).absent is False


def test_a_refused_row_waits_for_proven_absence() -> None:
    early = attrs.evolve(ABSENT, began=LONG_AGO - 60)
    assert resolution(early, refused=True) == Resolution(NextStep.WAIT, 60.0)
    assert resolution(refused=True) == Resolution(NextStep.NEXT_EPOCH, absent=True)


def test_a_reference_taken_under_a_later_key_is_scanned_for_again_and_then_shown() -> None:
    assert resolution(exists=True, epoch=1).step is NextStep.SCAN_AGAIN
    assert resolution(exists=True, epoch=1, scans_left=0).step is NextStep.SURFACE
    assert resolution(exists=True, epoch=0).step is NextStep.NEXT_EPOCH


@given(
    scan=st.builds(
        ListScan,
        matched=st.none() | st.sampled_from(Match),
        whole=st.booleans(),
        everywhere=st.booleans(),
        began=st.floats(0, 4000),
    ),
    since_send=st.floats(0, 4000),
    epoch=st.integers(0, 2),
    exists=st.booleans(),
    refused=st.booleans(),
    scans_left=st.integers(0, 3),
)
def test_no_scan_gives_a_new_key_too_early_or_a_proof_it_has_not(scan: ListScan, **facts: Any) -> None:
    found = after_scan(scan, **facts)
    if found.step is NextStep.NEXT_EPOCH:
        assert scan.matched is None
        assert scan.whole
        assert facts["since_send"] >= ABANDONED_AFTER
    if found.absent:
        assert scan.began >= LONG_AGO
    assert (found.wait > 0) is (found.step is NextStep.WAIT)
    assert facts["scans_left"] > 0 or found.step is not NextStep.SCAN_AGAIN


def test_the_findings_are_all_reached() -> None:
    scans = itertools.product([None, *Match], [True, False], [True, False], [0.0, LONG_AGO])
    facts = itertools.product([0.0, LONG_AGO], [0, 1], [True, False])
    reached = {
        resolution(ListScan(*scan), since_send=since, epoch=epoch, exists=exists).step
        for scan, (since, epoch, exists) in itertools.product(scans, facts)
    }
    assert reached == set(NextStep)
