"""Emits the events of a call, if a hook or a log handler takes them.

The pipeline asks once for each call whether there is one; only then it calls `started`, `sent`, `ended` and
`finished`. `events.py` is imported with the first event, as most programs have none. `Reminder` logs waits.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from .._emitter import LONG, Emitter, log, logger
from .._rate_limit.limits import Outage
from .._runtime import Runtime, Timer
from ..errors import GuardRefused, PaymentsError
from ..models._response import is_replayed
from ..params.operations import record_of
from .call import AttemptResult, Call

REMIND: Final = 30.0
"""Seconds: nothing waits longer without a line in the log that says for what."""
CANCELLED: Final = "was cancelled after it had been sent, and may have been carried out"
"""Log message of a write that was cancelled in doubt."""

_numbers = itertools.count(1)


def is_observed(emitter: Emitter) -> bool:
    """Return whether the hook or a log handler takes events; they are made only then."""
    return emitter.listener is not None or logger.isEnabledFor(logging.DEBUG)


def _emit(emitter: Emitter, kind: str, call: Call, attempt: int, *facts: object, **named: object) -> None:
    from .. import events

    emitter.emit(getattr(events, kind)(call.operation.name, attempt, *facts, **named, call=call.number))


def doubted(emitter: Emitter, operation: str, doubt: str) -> None:
    """Report a request that is probably a slip."""
    from .. import events

    emitter.emit(events.Doubted(operation, 0, doubt))


def started(emitter: Emitter, call: Call, base_url: str) -> None:
    """Report that a call begins, and number it."""
    operation, call.number = call.operation, next(_numbers)
    listed = operation if operation.shape != "raw" else record_of(operation.method, operation.path)[0]
    _emit(emitter, "CallStarted", call, 0, operation.method, listed.path if listed else None, base_url)


def finished(emitter: Emitter, call: Call, error: BaseException | None, now: float) -> None:
    attempts, effect = call.attempts, call.effect
    if isinstance(error, PaymentsError):
        effect = error.effect
    elif hasattr(error, "outcome"):  # a cancellation of a call in doubt
        effect = "unknown"
    elif error is None and call.operation.creates:
        effect = "happened"
    facts = {
        "error": None if error is None else type(error).__name__,
        "status": attempts[-1].status if attempts else None,
        "elapsed": now - call.started,
    }
    _emit(emitter, "CallEnded", call, len(attempts), effect=effect, **facts)


def sent(emitter: Emitter, call: Call) -> None:
    assert call.key is not None
    facts = {"method": call.operation.method, "key_fingerprint": call.key.fingerprint}
    count = len(call.attempts) + 1
    _emit(emitter, "RequestSent", call, count, idempotency_key=call.idempotency_key, **facts)


def ended(emitter: Emitter, call: Call, result: AttemptResult) -> None:
    """Report the end of the last attempt, and a stored answer to an earlier request."""
    last = call.attempts[-1]
    facts = {name: getattr(last, name) for name in ("verdict", "reason", "status", "elapsed")}
    _emit(emitter, "AttemptEnded", call, last.number, **facts)
    if result.error is None and call.idempotency_key is not None and is_replayed(result.headers):
        _emit(emitter, "Replayed", call, last.number, call.idempotency_key)


def throttled(emitter: Emitter, call: Call, waited: float) -> None:
    """Report the seconds that the next attempt waited for the rate limit, or would have."""
    if is_observed(emitter):
        _emit(emitter, "Throttled", call, len(call.attempts) + 1, waited)


def closed(emitter: Emitter, call: Call, seconds: float) -> None:
    """Report that a 429 closed the limiter; a long closure is logged even without a hook."""
    if is_observed(emitter) or seconds >= LONG:
        _emit(emitter, "GateClosed", call, len(call.attempts), seconds)


def store_lost(emitter: Emitter, call: Call, outage: Outage, limit: int | None) -> None:
    """Report that the limit store cannot be reached, and the limit that holds meanwhile."""
    if is_observed(emitter):
        _emit(emitter, "LimitStoreLost", call, len(call.attempts) + 1, outage.reason, limit)


def store_found(emitter: Emitter, call: Call, lasted: float) -> None:
    """Report that the limit store can be reached again, after so many seconds."""
    if is_observed(emitter):
        _emit(emitter, "LimitStoreFound", call, len(call.attempts) + 1, lasted)


def refused(emitter: Emitter, call: Call, error: GuardRefused) -> None:
    """Report that the guard refused a write; logged even without a hook."""
    emitter.warn(str(error))
    if is_observed(emitter):
        _emit(emitter, "PayoutRefused", call, len(call.attempts), error.rule, str(error))


def retrying(emitter: Emitter, call: Call, delay: float, reason: str) -> None:
    """Report that another attempt follows in `delay` seconds."""
    if is_observed(emitter):
        _emit(emitter, "RetryScheduled", call, len(call.attempts), delay, reason)


def cancelled(emitter: Emitter, call: Call) -> None:
    """Report a cancelled call; a write in doubt is logged even without a hook, as exceptions get lost."""
    if call.unknown:
        name = call.operation.name
        emitter.warn(f"{name} {CANCELLED}: its idempotency key is {call.idempotency_key}")
    if is_observed(emitter):
        facts = {"effect": call.effect, "idempotency_key": call.idempotency_key}
        _emit(emitter, "CallCancelled", call, len(call.attempts), **facts)


class Reminder:
    """Logs every 30 seconds, while something waits, for what. One line for all who wait for the same."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._told: dict[str, float] = {}

    @contextmanager
    def during(self, what: Callable[[], str], level: int = logging.WARNING) -> Iterator[None]:
        """Context of a wait; `what` says what it is for."""
        began, timers = self._runtime.monotonic(), list[Timer]()

        def schedule() -> None:
            timers[:] = [self._runtime.call_later(REMIND, remind, background=True)]

        def remind() -> None:
            text, now, told = what(), self._runtime.monotonic(), self._told
            while told and now - told[oldest := next(iter(told))] >= REMIND:
                del told[oldest]
            if text not in told:
                told[text] = now
                log(level, "%s", f"{text}, for {now - began:.0f} s so far")
            schedule()

        schedule()
        try:
            yield
        finally:
            timers[0].cancel()
