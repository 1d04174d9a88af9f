"""Many machines on one batch: leases of its chunks, and what follows when a database lost commits. Pure.

The ledger grants and renews a lease on its own clock. The worker that holds it stops earlier: it counts from
the moment before it asked, on a clock that counts suspension. The two clocks are never compared. Leases keep
two workers from the same rows. What prevents a second payment is the reference.

A database can lose commits, by a fail-over or a restored backup. A row that it calls new may then have been
sent, and an edit, a cancellation or a retry may be missing. The reference still prevents a second payment
(docs/bulk.md, assumptions A1, A4, A5). So that no verdict is false either:

* the server is compared with the one that has the batch's last commit (`loss_of`);
* intents that may be lost are counted: each may have made a payout (`transitions.doubted`, `perhaps_resent`);
* what the service's list shows is believed, whatever the ledger says (`judge`, `lost`);
* a payout that the list does not show is absent only once no lost request can still make it (`proof_due`).
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Final

import attrs

from ..._assumptions import ABANDONED_AFTER, LIST_SETTLES
from .clocks import INTENT_LIFETIME, Timestamps, age

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
    FORGOTTEN = "forgotten"
    """It was closed, and its rows are gone: sums, root and certificate are kept."""


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


@attrs.frozen
class ServerIdentity:
    """Which server has a database: its data, and the line of their history that it continues."""

    system: int | None
    """The identifier that the server's data got when it was made; None where it is hidden."""
    timeline: int | None
    """Each promotion of a standby begins the next one; None where it is hidden."""
    started: str | None = None
    """The time when the server started, only where the timeline is hidden."""
    tables: int = 0
    """The number of the table of batches: a restored dump has another."""

    @property
    def text(self) -> str:
        """All but `tables`, as JSON text."""
        return json.dumps([self.system, self.timeline, self.started])

    @classmethod
    def read(cls, text: str, tables: int) -> ServerIdentity:
        """Parse what `text` wrote."""
        system, timeline, started = json.loads(text)
        return cls(system, timeline, started, tables)


@attrs.frozen
class OperatorCommand:
    """One of the operator's commands, as a ledger recorded it."""

    kind: str
    """`import`, `plan`, `pause`, `resume`, `correct`, `cancel`, `retry`, …"""
    at: float
    """Seconds since 1970, by the database's clock."""
    rows: int
    """How many rows it changed."""


@attrs.frozen
class LossState:
    """What a ledger may lack, and what it knows that may be compared with one's own memory."""

    reason: str
    """Why commits may be lost, in words."""
    is_suspect: bool
    """True if no row may be sent until the operator confirms that no command is missing."""
    lost: Timestamps | None
    """A moment at which no commit could be lost any more; None once a reading has shown what was lost."""
    losses: int
    """How often commits were lost."""
    imported: Timestamps
    """The moment of the import."""
    commands: tuple[OperatorCommand, ...]
    """The commands that the ledger knows, in their order."""


class Standbys(StrEnum):
    """What receives a server's commits."""

    NONE = "none"
    SYNCHRONOUS = "synchronous"
    """Each commit is on a standby before it is acknowledged."""
    ASYNCHRONOUS = "asynchronous"
    """A standby may lack the last commits, or it is not shown whether it does."""


class OwnCommits(StrEnum):
    """Whether a database has the last commits of the process that asks."""

    NONE = "none"
    """The process has made none."""
    THERE = "there"
    MISSING = "missing"


class Loss(StrEnum):
    """The reason to believe that a ledger has lost commits."""

    COMMITS = "commits that were made are missing from it"
    RESTORED = "it was restored from a dump, or is on another server"
    STANDBY = "a standby that may lack commits has become the primary"
    RESTORED_LOG = "its server was restored from an archive, or an unknown standby has become the primary"
    UNKNOWN = "its server was restarted or replaced, and does not show whether commits are lost"
    BY_HAND = "the operator says so"


def loss_of(
    recorded: ServerIdentity, found: ServerIdentity, standbys: Standbys, own: OwnCommits
) -> Loss | None:
    """Judge whether the batch has lost commits; None when it surely has not.

    `recorded`: the server of the batch's last commit. `standbys`: those that were seen then. `own`: what the
    asking process finds of its own last commits.
    """
    if own is OwnCommits.MISSING:
        return Loss.COMMITS
    if found.tables != recorded.tables or _differ(found.system, recorded.system):
        return Loss.RESTORED
    if found.timeline is None or recorded.timeline is None:
        return Loss.UNKNOWN if found.started != recorded.started else None
    if found.timeline == recorded.timeline:
        return None
    return _LOSSES[standbys]


_LOSSES: Final = {
    Standbys.SYNCHRONOUS: None,
    Standbys.ASYNCHRONOUS: Loss.STANDBY,
    Standbys.NONE: Loss.RESTORED_LOG,
}
"""What a new timeline means. That a process finds its own commits says nothing of others' later ones."""


def _differ(found: int | None, recorded: int | None) -> bool:
    return found is not None and recorded is not None and found != recorded


PROOF_AFTER: Final = INTENT_LIFETIME + ABANDONED_AFTER + LIST_SETTLES
"""Seconds after a loss before a reading of the list can prove that a lost request made no payout."""


def proof_due(lost: Timestamps, now: Timestamps) -> float:
    """Seconds until a whole reading of the list proves the absence of lost payouts; 0 if it does now.

    `lost`: a moment at which no commit could be lost any more. Another process may have noticed the loss long
    after this session began, so only the service's clock tells how old such a moment is.
    """
    return max(0.0, PROOF_AFTER - age(lost, now).at_least)
