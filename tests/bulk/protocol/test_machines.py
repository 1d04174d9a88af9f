"""Leases: when they end, for whom, and what they permit. And what follows when a database lost commits."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async.bulk._protocol import row_state, transitions
from payments_async.bulk._protocol.clocks import Timestamps
from payments_async.bulk._protocol.machines import (
    LEASE,
    MARGIN,
    PROOF_AFTER,
    RENEW_EVERY,
    BatchState,
    IntentBlock,
    Loss,
    OwnCommits,
    ServerIdentity,
    Standbys,
    intent_block,
    loss_of,
    may_send,
    own_end,
    proof_due,
)
from payments_async.bulk._protocol.records import LedgerRow, RowOutcome
from payments_async.bulk._protocol.row_state import LOST_INTENTS, RowKnowledge, RowState, after_loss
from payments_async.models.statuses import PayoutEnd
from tests.bulk.protocol.test_generations import row as failed_row
from tests.bulk.protocol.test_row_state import ACCOUNTS

MINE, OTHER = b"m" * 16, b"o" * 16


def test_a_worker_stops_before_its_lease_can_be_granted_to_another() -> None:
    asked = granted = 1000.0  # on two clocks; the ledger cannot grant before it is asked
    assert granted + LEASE - own_end(asked) == MARGIN
    assert may_send(own_end(asked), asked + LEASE - MARGIN - 0.001)
    assert not may_send(own_end(asked), asked + LEASE - MARGIN)


def test_one_renewal_may_fail() -> None:
    assert own_end(0.0) > 3 * RENEW_EVERY


@pytest.mark.parametrize(
    ("granted", "state", "block"),
    [
        (MINE, BatchState.OPEN, None),
        (OTHER, BatchState.OPEN, IntentBlock.LOST),
        (None, BatchState.OPEN, IntentBlock.LOST),
        (MINE, BatchState.PAUSED, IntentBlock.STOPPED),
        (MINE, BatchState.SUSPECT, IntentBlock.STOPPED),
        (MINE, BatchState.CLOSED, IntentBlock.STOPPED),
    ],
)
def test_an_intent_needs_the_chunks_lease_and_an_open_batch(
    granted: bytes | None, state: BatchState, block: IntentBlock | None
) -> None:
    assert intent_block(granted, MINE, state) is block


def test_no_lease_is_nobodys_lease() -> None:
    assert intent_block(None, None, BatchState.OPEN) is IntentBlock.LOST


S = RowState
HERE = ServerIdentity(system=7, timeline=1, tables=16_386)
PROMOTED = attrs.evolve(HERE, timeline=2)
HIDDEN = ServerIdentity(system=None, timeline=None, started="noon", tables=16_386)


@pytest.mark.parametrize(
    ("found", "standbys", "own", "loss"),
    [
        (HERE, Standbys.ASYNCHRONOUS, OwnCommits.THERE, None),
        (HERE, Standbys.ASYNCHRONOUS, OwnCommits.NONE, None),
        (HERE, Standbys.NONE, OwnCommits.MISSING, Loss.COMMITS),
        (PROMOTED, Standbys.SYNCHRONOUS, OwnCommits.MISSING, Loss.COMMITS),
        (attrs.evolve(HERE, system=8), Standbys.SYNCHRONOUS, OwnCommits.THERE, Loss.RESTORED),
        (attrs.evolve(HERE, tables=17_000), Standbys.NONE, OwnCommits.THERE, Loss.RESTORED),
        (PROMOTED, Standbys.ASYNCHRONOUS, OwnCommits.THERE, Loss.STANDBY),
        (PROMOTED, Standbys.SYNCHRONOUS, OwnCommits.NONE, None),
        (PROMOTED, Standbys.SYNCHRONOUS, OwnCommits.THERE, None),
        (PROMOTED, Standbys.NONE, OwnCommits.THERE, Loss.RESTORED_LOG),
        (PROMOTED, Standbys.NONE, OwnCommits.NONE, Loss.RESTORED_LOG),
    ],
)
def test_what_has_changed_decides_whether_commits_are_lost(
    found: ServerIdentity, standbys: Standbys, own: OwnCommits, loss: Loss | None
) -> None:
    assert loss_of(HERE, found, standbys, own) is loss


@pytest.mark.parametrize("standbys", Standbys)
def test_where_the_timeline_is_hidden_each_restart_counts_as_a_loss(standbys: Standbys) -> None:
    assert loss_of(HIDDEN, HIDDEN, standbys, OwnCommits.NONE) is None
    for recorded, found in ((HIDDEN, attrs.evolve(HIDDEN, started="one")), (HERE, HIDDEN), (HIDDEN, HERE)):
        assert loss_of(recorded, found, standbys, OwnCommits.THERE) is Loss.UNKNOWN


# Intents that may be lost


@given(ACCOUNTS, st.integers(0, 3))
def test_lost_intents_are_counted_once_for_each_loss(known: RowKnowledge, losses: int) -> None:
    counted = after_loss(known, losses)
    assert counted.intents >= losses * LOST_INTENTS
    assert after_loss(counted, losses) == counted == attrs.evolve(known, intents=counted.intents)
    assert after_loss(after_loss(known, losses), losses + 1) == after_loss(known, losses + 1)


def row_with(known: RowKnowledge, **changes: Any) -> LedgerRow:
    """A row of which that is known, without facts."""
    row = attrs.evolve(failed_row(), known=known, service_status=None, payout_end=PayoutEnd.OPEN)
    return attrs.evolve(row, **changes)


def test_a_new_row_that_may_have_been_sent_is_refused_for_good_only_once_its_absence_is_proven() -> None:
    claimed = transitions.claimed(transitions.doubted(row_with(RowKnowledge()), 1, proven=False), 9)
    assert claimed.known.was_doubtful
    assert (claimed.state, claimed.first_intent) == (S.IN_FLIGHT, 9)
    proven = row_state.intend(row_state.doubt(claimed.known), absent=True)
    assert not proven.was_doubtful


@pytest.mark.parametrize("proven", [False, True])
def test_a_ledger_that_lost_nothing_doubts_no_new_row_and_a_decided_row_is_never_doubted(
    *, proven: bool
) -> None:
    new, cancelled = row_with(RowKnowledge()), row_with(RowKnowledge(S.CANCELLED))
    assert transitions.doubted(new, 0, proven=proven) is new
    assert transitions.doubted(cancelled, 2, proven=proven) is cancelled


def test_once_the_loss_is_proven_a_new_row_is_not_in_doubt_and_old_outcomes_rank_below_its_intent() -> None:
    old = row_state.refuse(row_state.intend(RowKnowledge()))
    claimed = transitions.claimed(transitions.doubted(row_with(RowKnowledge()), 2, proven=True), 9)
    assert (claimed.known.intents, claimed.known.was_doubtful) == (2 * LOST_INTENTS + 1, False)
    assert transitions.recorded(claimed, RowOutcome(7, old), 10) is None
    refused = transitions.recorded(claimed, RowOutcome(7, row_state.refuse(claimed.known)), 11)
    assert refused is not None
    assert refused.state is S.REJECTED


@pytest.mark.parametrize("state", [S.IN_FLIGHT, S.IN_DOUBT])
@pytest.mark.parametrize("proven", [False, True])
def test_lost_intents_of_an_open_row_stay_uncleared(state: RowState, *, proven: bool) -> None:
    row = row_with(RowKnowledge(state, intents=1))
    assert transitions.doubted(row, 1, proven=proven).known == after_loss(row.known, 1)


@pytest.mark.parametrize("state", [S.IN_FLIGHT, S.IN_DOUBT])
def test_an_open_row_was_perhaps_sent_until_now_which_is_recorded_once(state: RowState) -> None:
    row = row_with(RowKnowledge(state, intents=1), first_intent=2, key_intent=2, last_intent=3)
    after = transitions.perhaps_resent(row, 1, 9)
    assert after is not None
    assert (after.state, after.known.intents, after.known.cleared) == (state, 1 + LOST_INTENTS, 0)
    assert (after.first_intent, after.key_intent, after.last_intent, after.changed_in) == (2, 2, 9, 9)
    assert transitions.perhaps_resent(after, 1, 12) is None


# Outcomes that workers bring home from before


@given(ACCOUNTS, st.integers(1, 3))
def test_of_a_new_row_after_a_loss_only_what_is_settled_counts(learned: RowKnowledge, losses: int) -> None:
    row = transitions.doubted(row_with(RowKnowledge(generation=learned.generation)), losses, proven=False)
    after = transitions.recorded(row, RowOutcome(7, learned, body_hash=row.body_hash), 9)
    if learned.state in (S.CREATED, S.CONFLICT):
        assert after is not None
        assert (after.state, after.known.payout_id) == (learned.state, learned.payout_id)
        assert after.known.intents == row.known.intents
    else:
        assert after is None


@pytest.mark.parametrize("generation", [0, 2])
def test_an_outcome_of_another_generation_is_never_merged(generation: int) -> None:
    row = row_with(RowKnowledge(S.IN_FLIGHT, generation=1, intents=1))
    learned = RowKnowledge(S.CREATED, generation=generation, intents=1, payout_id="po_9")
    assert transitions.recorded(row, RowOutcome(7, learned, "completed", PayoutEnd.ARRIVED), 9) is None


@pytest.mark.parametrize("state", [S.CREATED, S.REJECTED])
def test_an_outcome_of_another_body_under_the_same_revision_is_never_merged(state: RowState) -> None:
    row = row_with(RowKnowledge(revision=1))
    learned = RowKnowledge(state, revision=1, intents=1, cleared=1)
    assert transitions.recorded(row, RowOutcome(7, learned, body_hash="of a lost correction"), 9) is None
    assert transitions.recorded(row, RowOutcome(7, learned, body_hash=row.body_hash), 9) is not None


# Time


@pytest.mark.parametrize(("passed", "left"), [(0.0, 2_100.0), (60.0, 2_040.0), (2_100.0, 0.0), (9e9, 0.0)])
def test_a_reading_proves_absence_once_no_lost_request_can_make_a_payout(passed: float, left: float) -> None:
    assert PROOF_AFTER == 2_100.0
    lost = Timestamps(1e9, 5.0, "earlier", 2e9)
    assert proof_due(lost, Timestamps(0.0, 9.0, "later", 2e9 + passed)) == left
    within = attrs.evolve(lost, monotonic=5.0 + passed, server=None)
    assert proof_due(lost, within) == left


def test_a_wall_clock_proves_nothing() -> None:
    lost, now = Timestamps(1e9, 5.0, "earlier"), Timestamps(2e9, 9.0, "later")
    assert proof_due(lost, now) == PROOF_AFTER
