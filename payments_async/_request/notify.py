"""Emits the events of a call, if a hook or a log handler takes them.

The pipeline checks once per attempt whether one does (`sent`, `ended`).
"""

from __future__ import annotations

from typing import Final

from .. import events
from .._rate_limit.limits import Outage
from ..events import LONG, Emitter
from ..models._response import is_replayed
from .history import CallHistory
from .outcome import AttemptResult

CANCELLED: Final = "was cancelled after it had been sent, and may have been carried out"
"""Log message of a write that was cancelled in doubt."""


def _key(history: CallHistory) -> str | None:
    prepared = history.call.prepared
    return prepared.idempotency_key if prepared else None


def sent(emitter: Emitter, history: CallHistory) -> None:
    """Report that a request is about to be sent."""
    operation, number = history.call.operation, len(history.attempts) + 1
    emitter.emit(events.RequestSent(operation.name, number, operation.method, _key(history)))


def ended(emitter: Emitter, history: CallHistory, result: AttemptResult) -> None:
    """Report the end of the last attempt, and a stored answer to an earlier request."""
    name, last = history.call.operation.name, history.attempts[-1]
    facts = (last.verdict, last.reason, last.status, last.elapsed)
    emitter.emit(events.AttemptEnded(name, last.number, *facts))
    if result.error is None and history.call.prepared is not None and is_replayed(result.headers):
        emitter.emit(events.Replayed(name, last.number, _key(history)))


def throttled(emitter: Emitter, history: CallHistory, waited: float) -> None:
    """Report the seconds that the next attempt waited for the rate limit."""
    if emitter.enabled:
        emitter.emit(events.Throttled(history.call.operation.name, len(history.attempts) + 1, waited))


def closed(emitter: Emitter, history: CallHistory, seconds: float) -> None:
    """Report that a 429 closed the limiter; a long closure is logged even without a hook."""
    if emitter.enabled or seconds >= LONG:
        emitter.emit(events.GateClosed(history.call.operation.name, len(history.attempts), seconds))


def store_lost(emitter: Emitter, history: CallHistory, outage: Outage, limit: int | None) -> None:
    """Report that the limit store cannot be reached, and the limit that holds meanwhile."""
    if emitter.enabled:
        name, number = history.call.operation.name, len(history.attempts) + 1
        emitter.emit(events.LimitStoreLost(name, number, outage.reason, limit))


def store_found(emitter: Emitter, history: CallHistory, lasted: float) -> None:
    """Report that the limit store can be reached again, after so many seconds."""
    if emitter.enabled:
        name, number = history.call.operation.name, len(history.attempts) + 1
        emitter.emit(events.LimitStoreFound(name, number, lasted))


def retrying(emitter: Emitter, history: CallHistory, delay: float, reason: str) -> None:
    """Report that another attempt follows in `delay` seconds."""
    if emitter.enabled:
        name, number = history.call.operation.name, len(history.attempts)
        emitter.emit(events.RetryScheduled(name, number, delay, reason))


def cancelled(emitter: Emitter, history: CallHistory) -> None:
    """Report a cancelled call; a write in doubt is logged even without a hook, as exceptions get lost."""
    if history.unknown:
        name = history.call.operation.name
        emitter.warn(f"{name} {CANCELLED}: its idempotency key is {_key(history)}")
    if emitter.enabled:
        name, number = history.call.operation.name, len(history.attempts)
        emitter.emit(events.CallCancelled(name, number, history.effect, _key(history)))
