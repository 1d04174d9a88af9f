"""Leases: when they end, for whom, and what they permit."""

from __future__ import annotations

import pytest

from payments_async.bulk.protocol.machines import (
    LEASE,
    MARGIN,
    RENEW_EVERY,
    BatchState,
    IntentBlock,
    intent_block,
    may_send,
    own_end,
)

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
