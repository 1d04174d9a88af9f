"""Events of a call, made only when a hook or a log handler takes them.

The pipeline asks once per attempt whether anything takes them (`sent`, `ended`).
"""

from __future__ import annotations

from typing import Final

from .. import events
from ..events import LONG, Emitter
from ..models._response import is_replayed
from .history import CallHistory
from .outcome import AttemptResult

CANCELLED: Final = "was cancelled after it had been sent, and may have been carried out"
"""What the log says of a write that was given up in doubt."""


def _key(journey: CallHistory) -> str | None:
    prepared = journey.call.prepared
    return prepared.idempotency_key if prepared else None


def sent(emitter: Emitter, journey: CallHistory) -> None:
    """A request is about to go out."""
    operation, number = journey.call.operation, len(journey.attempts) + 1
    emitter.emit(events.RequestSent(operation.name, number, operation.method, _key(journey)))


def ended(emitter: Emitter, journey: CallHistory, reading: AttemptResult) -> None:
    """The last attempt has ended, with that; a write may have been answered as it was once before."""
    name, last = journey.call.operation.name, journey.attempts[-1]
    told = (last.verdict, last.reason, last.status, last.elapsed)
    emitter.emit(events.AttemptEnded(name, last.number, *told))
    if reading.error is None and journey.call.prepared is not None and is_replayed(reading.headers):
        emitter.emit(events.Replayed(name, last.number, _key(journey)))


def throttled(emitter: Emitter, journey: CallHistory, waited: float) -> None:
    """The next attempt waited so many seconds for its turn."""
    if emitter.enabled:
        emitter.emit(events.Throttled(journey.call.operation.name, len(journey.attempts) + 1, waited))


def closed(emitter: Emitter, journey: CallHistory, seconds: float) -> None:
    """The last attempt was refused, and closed its gate for so long; told unasked when that is long."""
    if emitter.enabled or seconds >= LONG:
        emitter.emit(events.GateClosed(journey.call.operation.name, len(journey.attempts), seconds))


def retrying(emitter: Emitter, journey: CallHistory, delay: float, reason: str) -> None:
    """Another attempt follows in so many seconds."""
    if emitter.enabled:
        name, number = journey.call.operation.name, len(journey.attempts)
        emitter.emit(events.RetryScheduled(name, number, delay, reason))


def cancelled(emitter: Emitter, journey: CallHistory) -> None:
    """The caller gave the call up; a write in doubt is told unasked, as its cancellation may get lost."""
    if journey.unknown:
        name = journey.call.operation.name
        emitter.warn(f"{name} {CANCELLED}: its idempotency key is {_key(journey)}")
    if emitter.enabled:
        name, number = journey.call.operation.name, len(journey.attempts)
        emitter.emit(events.CallCancelled(name, number, journey.effect, _key(journey)))
