"""Leases of chunks: how long they last, and what they permit. Pure.

The ledger grants and renews a lease on its own clock. The worker that holds it stops earlier, measured from
before it asked, on a clock that counts suspension: the two clocks are never compared. Leases keep two workers
from the same rows. What prevents a second payment is the reference.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

LEASE: Final = 15.0
"""Seconds for which a grant or a renewal is good, on the ledger's clock."""
RENEW_EVERY: Final = 3.0
"""Seconds between renewals."""
MARGIN: Final = 4.0
"""Seconds by which a worker's own end is earlier, so that it has stopped when another one may begin."""


def own_end(asked: float) -> float:
    """Compute when a lease ends for the worker itself. `asked`: when it asked for the grant or renewal.

    Both are seconds on the worker's clock that counts suspension.
    """
    return asked + LEASE - MARGIN


def may_send(ends: float, now: float) -> bool:
    """True if a request may begin under a lease with this `own_end`. Asked right before its first byte."""
    return now < ends


class BatchState(StrEnum):
    """The state of a batch in a ledger that several workers share."""

    IMPORTED = "imported"
    """It was never planned: its stop rules are not known."""
    OPEN = "open"
    PAUSED = "paused"
    SUSPECT = "suspect"
    """Commits may have been lost: nothing is sent until `recover`."""
    CLOSED = "closed"


class IntentBlock(StrEnum):
    """The reason why an intent must not be recorded."""

    LOST = "another lease of the rows was granted, or none is valid any more"
    STOPPED = "the batch is not planned yet, or paused, suspect or closed"


def intent_block(granted: bytes | None, mine: bytes | None, state: BatchState) -> IntentBlock | None:
    """Give the reason why an intent must not be recorded, or None. Asked in the transaction that records it.

    `granted`: the id of the chunk's lease in the ledger. Ids are random and compared by equality alone: a
    lease that has expired is still good while nobody else was granted the chunk. `mine`: None without one.
    """
    if state is not BatchState.OPEN:
        return IntentBlock.STOPPED
    return None if granted == mine and mine is not None else IntentBlock.LOST
