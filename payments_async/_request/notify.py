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


def doubted(emitter: Emitter, operation: str, doubt: str) -> None:
    """Report a request that is probably a slip."""
    from .. import events

    emitter.emit(events.Doubted(operation, 0, doubt))


def started(emitter: Emitter, call: Call, base_url: str) -> None:
    """Report that a call begins, and number it."""
    from .. import events

    operation, call.number = call.operation, next(_numbers)
    listed = operation if operation.shape != "raw" else record_of(operation.method, operation.path)[0]
    template = listed.path if listed else None
    emitter.emit(
        events.CallStarted(operation.name, 0, operation.method, template, base_url, call=call.number)
    )


def finished(emitter: Emitter, call: Call, error: BaseException | None, now: float) -> None:
    """Report the end of a call."""
    from .. import events

    operation, attempts, effect = call.operation, call.attempts, call.effect
    if isinstance(error, PaymentsError):
        effect = error.effect
    elif hasattr(error, "outcome"):  # a cancellation of a call in doubt
        effect = "unknown"
    elif error is None and operation.creates:
        effect = "happened"
    emitter.emit(
        events.CallEnded(
            operation.name,
            len(attempts),
            effect=effect,
            error=None if error is None else type(error).__name__,
            status=attempts[-1].status if attempts else None,
            elapsed=now - call.started,
            call=call.number,
        )
    )


def sent(emitter: Emitter, call: Call) -> None:
    """Report that a request is about to be sent."""
    from .. import events

    operation, key = call.operation, call.key
    assert key is not None
    emitter.emit(
        events.RequestSent(
            operation.name,
            len(call.attempts) + 1,
            method=operation.method,
            idempotency_key=call.idempotency_key,
            key_fingerprint=key.fingerprint,
            call=call.number,
        )
    )


def ended(emitter: Emitter, call: Call, result: AttemptResult) -> None:
    """Report the end of the last attempt, and a stored answer to an earlier request."""
    from .. import events

    name, last = call.operation.name, call.attempts[-1]
    emitter.emit(
        events.AttemptEnded(
            name,
            last.number,
            verdict=last.verdict,
            reason=last.reason,
            status=last.status,
            elapsed=last.elapsed,
            call=call.number,
        )
    )
    if result.error is None and call.idempotency_key is not None and is_replayed(result.headers):
        emitter.emit(events.Replayed(name, last.number, call.idempotency_key, call=call.number))


def throttled(emitter: Emitter, call: Call, waited: float) -> None:
    """Report the seconds that the next attempt waited for the rate limit, or would have."""
    if is_observed(emitter):
        from .. import events

        name, number = call.operation.name, len(call.attempts) + 1
        emitter.emit(events.Throttled(name, number, waited, call=call.number))


def closed(emitter: Emitter, call: Call, seconds: float) -> None:
    """Report that a 429 closed the limiter; a long closure is logged even without a hook."""
    if is_observed(emitter) or seconds >= LONG:
        from .. import events

        name, number = call.operation.name, len(call.attempts)
        emitter.emit(events.GateClosed(name, number, seconds, call=call.number))


def store_lost(emitter: Emitter, call: Call, outage: Outage, limit: int | None) -> None:
    """Report that the limit store cannot be reached, and the limit that holds meanwhile."""
    if is_observed(emitter):
        from .. import events

        name, number = call.operation.name, len(call.attempts) + 1
        emitter.emit(events.LimitStoreLost(name, number, outage.reason, limit, call=call.number))


def store_found(emitter: Emitter, call: Call, lasted: float) -> None:
    """Report that the limit store can be reached again, after so many seconds."""
    if is_observed(emitter):
        from .. import events

        name, number = call.operation.name, len(call.attempts) + 1
        emitter.emit(events.LimitStoreFound(name, number, lasted, call=call.number))


def refused(emitter: Emitter, call: Call, error: GuardRefused) -> None:
    """Report that the guard refused a write; logged even without a hook."""
    emitter.warn(str(error))
    if is_observed(emitter):
        from .. import events

        name, number = call.operation.name, len(call.attempts)
        emitter.emit(events.PayoutRefused(name, number, error.rule, str(error), call=call.number))


def retrying(emitter: Emitter, call: Call, delay: float, reason: str) -> None:
    """Report that another attempt follows in `delay` seconds."""
    if is_observed(emitter):
        from .. import events

        name, number = call.operation.name, len(call.attempts)
        emitter.emit(events.RetryScheduled(name, number, delay, reason, call=call.number))


def cancelled(emitter: Emitter, call: Call) -> None:
    """Report a cancelled call; a write in doubt is logged even without a hook, as exceptions get lost."""
    if call.unknown:
        name = call.operation.name
        emitter.warn(f"{name} {CANCELLED}: its idempotency key is {call.idempotency_key}")
    if is_observed(emitter):
        from .. import events

        name, number = call.operation.name, len(call.attempts)
        emitter.emit(
            events.CallCancelled(
                name, number, effect=call.effect, idempotency_key=call.idempotency_key, call=call.number
            )
        )


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
