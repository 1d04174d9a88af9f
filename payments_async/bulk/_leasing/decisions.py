"""Says what follows a step, from what it sees of its batch; None means that there is work to do now. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._protocol.exit_codes import Stop
from .._protocol.machines import LEASE, BatchState
from .._protocol.outcomes import OPEN, Outcome
from .step_ends import Done, FailureCause, Held, HoldReason, Next, Now, StepFailed, Wait, failed

if TYPE_CHECKING:
    from .._ledger.postgresql.batches import SharedFacts
    from .._ledger.postgresql.work import BatchView, ChunkView
    from .._protocol.records import Header

BUSY: Final = 1.0
"""Seconds until a chunk is asked for again that another process has locked for a moment."""
_O = Outcome
_HOLDS: Final = {
    BatchState.IMPORTED: Held(HoldReason.TOTAL, "its total is not confirmed yet"),
    BatchState.PAUSED: Held(HoldReason.PAUSED, "paused"),
    BatchState.SUSPECT: Held(HoldReason.SUSPECT, "commits may be lost: `payments payouts recover`"),
}
_CAUSES: Final = {
    Stop.TEMPORARY: FailureCause.SERVICE,
    Stop.NO_ACCESS: FailureCause.KEY,
    Stop.NOT_THE_SERVICE: FailureCause.ADDRESS,
}


def before_pay(view: BatchView) -> Next | None:
    """What follows without sending the rows of one chunk. Rows in doubt are `settle`'s."""
    (chunk,) = view.chunks
    if not chunk.count(_O.NOT_STARTED, _O.UNDER_WAY):
        return Done()
    return ended_or_held(view.facts) or _leased(chunk) or _stopped(view.facts, chunk)


def before_settle(view: BatchView) -> Next | None:
    """What follows without a look at the rows in doubt of all chunks."""
    if not view.figures.count(*OPEN):
        return Done()
    if (following := ended_or_held(view.facts)) is not None:
        return following
    in_doubt = [chunk for chunk in view.chunks if chunk.count(_O.IN_DOUBT)]
    unsent = [chunk for chunk in view.chunks if chunk.count(_O.NOT_STARTED, _O.UNDER_WAY)]
    waits = [
        max(chunk.leased_for, chunk.due_in) for chunk in in_doubt if chunk not in _sendable(view, unsent)
    ]
    if waits and min(waits) <= 0.0:
        return None
    if waits:
        return Wait(min(waits), "rows in doubt wait for their next look")
    held = [_stopped(view.facts, chunk) for chunk in unsent]
    if held and all(held):
        return held[0]
    return Wait(LEASE, "rows are still to be sent")


def before_close(view: BatchView) -> Next | None:
    """What follows without closing the batch."""
    if (following := ended_or_held(view.facts)) is not None:
        return following
    if view.figures.count(*OPEN):
        return before_settle(view) or Now()
    assert view.itself is not None  # a view of all chunks has it
    if view.facts.is_unproven:
        return _HOLDS[BatchState.SUSPECT]
    wait = max(view.itself.leased_for, view.itself.due_in)
    return Wait(wait, "another process closes the batch, or did so in vain") if wait > 0.0 else None


def ended_or_held(facts: SharedFacts) -> Next | None:
    """What follows for any step of a batch in this state."""
    if facts.state is BatchState.CLOSED:
        return Done()
    held = _HOLDS.get(facts.state)
    return held if held is None or facts.reason is None else Held(held.by, facts.reason)


def other_guard(header: Header, digest: str) -> Held | None:
    """The hold of a batch that is run under another guard than the one of this digest."""
    if header.guard == digest:
        return None
    run = f"guard {header.guard}" if header.guard else "no guard"
    ours = f"guard {digest}" if digest else "none"
    batch_id = header.binding.batch_id
    return Held(
        HoldReason.GUARD,
        f"the batch is run under {run}, and this process has {ours}: give it the same, or run "
        f"`payments payouts resume --batch-id {batch_id} --guard` with the one that is to hold",
    )


def _leased(chunk: ChunkView) -> Next | None:
    if chunk.leased_for > 0.0:
        return Wait(chunk.leased_for, "another process has the chunk, or had it when it died")
    return None


def _stopped(facts: SharedFacts, chunk: ChunkView) -> Next | None:
    """The hold of a chunk of which the stop rules let no new row be taken, and none is under way."""
    if facts.stopped is None or chunk.granted_to or chunk.count(_O.UNDER_WAY):
        return None
    return Held(HoldReason.STOP_RULE, facts.stopped)


def _sendable(view: BatchView, unsent: list[ChunkView]) -> list[ChunkView]:
    """The chunks whose rows can still be sent: their rows in doubt wait until that is done."""
    return [chunk for chunk in unsent if _stopped(view.facts, chunk) is None]


def failure(stop: Stop, reason: str) -> StepFailed:
    """The error of a step whose requests the service, or something else at its address, has refused."""
    return failed(_CAUSES[stop], reason)
