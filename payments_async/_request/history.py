"""CallHistory: the attempts of one call, and its record or error at the end. Pure.

An attempt's verdict is not the call's: a refusal proves nothing about an earlier attempt in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from .. import _assumptions, models
from .._attrs import maker
from ..errors import (
    APIConnectionError,
    APIStatusError,
    ConflictError,
    DeadlineExceeded,
    DuplicateReference,
    Effect,
    OutcomeUnknown,
    PaymentsError,
    ResponseMismatch,
)
from ..models import Attempt, Record, ResponseInfo
from .key_age import Timestamps, answer_time
from .outcome import AttemptResult
from .prepare import Call

_STEPS: Mapping[str, str] = {
    "pool": "raise max_connections, or try again later",
    "dns": "check the base URL's host and this machine's network",
    "connect": "check the base URL, this machine's network and its proxy",
    "tls": "check the base URL and the certificates, ssl_context among them",
    "timeout": "try again later, or with a longer timeout",
    "reset": "try again later",
    "protocol": "check that the base URL is the service's",
    "closed": "end all calls before the client's `async with` block ends, or aclose() is called",
    "withheld": "send it only while you may",
    "unexpected": "correct what raised it: a program that replaces a part of aiohttp, or this package",
}
"""Advice for each kind of failure."""


_attempt = maker(Attempt)
_info = maker(ResponseInfo)


class CallHistory:
    """The attempts of one call."""

    __slots__ = (
        *("_clock", "_first", "attempts", "call", "deadline", "doubtful"),
        *("number", "resumed", "retries", "started", "store_outage", "store_waited"),
    )

    def __init__(
        self, call: Call, started: float, deadline: float | None, clock: Callable[[], Timestamps]
    ) -> None:
        """`clock` returns the time on all our clocks; the other times are monotonic seconds."""
        self._clock = clock
        self.call = call
        self.deadline = None if deadline is None else started + deadline
        """The call's deadline on the monotonic clock."""
        self.number = 0
        """The call's number in its events; 0 while nothing takes them."""
        self.started = started
        self.resumed = started
        """Time at which the wait before the next attempt began."""
        self.attempts: list[Attempt] = []
        self.retries = 0
        self.doubtful = 0
        self._first: AttemptResult | None = None
        self.store_waited = 0.0
        """Seconds for which the call waited at limiters whose store could not be reached."""
        self.store_outage = ""
        """Why the store could not be reached."""

    def is_late(self, clock: Callable[[], float], after: float = 0.0) -> bool:
        """Return whether the deadline will have passed `after` seconds from now."""
        return self.deadline is not None and clock() + after >= self.deadline

    def left(self, clock: Callable[[], float]) -> float | None:
        """Seconds until the deadline, a little at least; None without one."""
        return None if self.deadline is None else max(self.deadline - clock(), 0.001)

    def until(self, moment: float) -> float:
        """The earlier of a moment and the deadline."""
        return moment if self.deadline is None else min(moment, self.deadline)

    def note(self, result: AttemptResult, sent_at: float, ended: float) -> None:
        """Note the end of an attempt."""
        attempts, verdict, waited = self.attempts, result.verdict, sent_at - self.resumed
        number, took = len(attempts) + 1, ended - sent_at
        attempts.append(_attempt(number, verdict, result.reason, result.status, waited, took))
        self.resumed = ended
        if verdict == "in_doubt":
            self.doubtful += 1

    def date(self, result: AttemptResult) -> None:
        """Note an answer for its date, if it is the one to the request's first attempt."""
        if len(self.attempts) == 1 and not self.call.sent_before:
            self._first = result

    @property
    def first_answered(self) -> float | None:
        """The service's time at the answer to the request's first attempt, seconds since 1970."""
        if (first := self._first) is None:
            return None
        return answer_time(first.headers or getattr(first.error, "headers", {}))

    @property
    def unknown(self) -> bool:
        """True if the call may have made a record although no answer confirmed it."""
        return self.doubtful > 0 and self.call.operation.creates

    def delivery(self, result: AttemptResult) -> Any:
        """The last attempt's record, with its answer attached."""
        assert result.status is not None
        prepared, attempts, value = self.call.prepared, tuple(self.attempts), result.value
        key = prepared.idempotency_key if prepared else None
        info = _info(result.status, result.headers, attempts, key, result.message, result.body)
        if isinstance(value, Record):
            object.__setattr__(value, "_response", info)
        elif isinstance(value, models.Page):
            object.__setattr__(value, "response", info)
        return value

    def conclusion(self, error: PaymentsError) -> PaymentsError:
        """Make the error of the whole call from the last attempt's."""
        last = self.attempts[-1].verdict if self.attempts else "not_sent"
        alone = last == "in_doubt" and self.doubtful == 1
        if not self.unknown or last == "executed" or (alone and _says_so(error)):
            if isinstance(error, APIConnectionError):
                error.args = (f"{error}; {self._harmless()}: {_STEPS[error.kind]}",)
            return self._signed(error)
        return self.outcome_unknown(error)

    def _harmless(self) -> str:
        """The message of a call that is known to have made nothing."""
        unsent = all(attempt.verdict == "not_sent" for attempt in self.attempts)
        return "nothing was sent" if unsent else "nothing can have happened"

    def outcome_unknown(self, cause: Exception | None = None, why: str | None = None) -> OutcomeUnknown:
        """Make the error of a call whose outcome is unknown, with all that `resolve` needs.

        `why`: the reason for which it was not sent again.

        The request may have been sent before, by another process or by `resolve`. So the key's protection is
        counted from when the request was made.
        """
        prepared = self.call.prepared
        assert prepared is not None
        first, ended = prepared.created_at, self._clock()
        tries = ", ".join(attempt.reason for attempt in self.attempts) or "none by this call"
        if isinstance(cause, APIConnectionError) and cause.kind == "unexpected":
            tries = f"{tries}; {cause.detail}"
        if why is not None:
            tries = f"{tries}; not sent again: {why}"
        error = OutcomeUnknown(
            f"{self.call.operation.name}: no definite answer, it may have been carried out "
            f"(attempts: {tries}). Do not send it again under a new key: client.resolve(error) finds out",
            prepared=prepared,
            first_sent_at=first,
            last_sent_at=datetime.fromtimestamp(ended.wall, UTC),
            key_expires_at=first + timedelta(seconds=_assumptions.KEY_LIFETIME),
            ended=attrs.evolve(ended, server=server_time(cause)),
            in_use=sum(attempt.waited + attempt.elapsed for attempt in self.attempts),
            first_answered=self.first_answered,
        )
        error.__cause__ = cause
        self._signed(error)
        return error

    def out_of_time(self, cause: PaymentsError | None = None) -> PaymentsError:
        """Make the error of a call whose deadline passed."""
        if self.unknown:
            return self.outcome_unknown(cause)
        error = DeadlineExceeded(
            f"{self.call.operation.name}: the deadline passed after {len(self.attempts)} attempt(s); "
            "nothing came of it"
        )
        error.__cause__ = cause
        return self._signed(error)

    def _signed(self, error: PaymentsError) -> PaymentsError:
        """Add the facts of the call to an error."""
        if self.store_waited and self.store_outage not in str(error):
            error.args = (f"{error}; it waited {self.store_waited:.3g} s: {self.store_outage}",)
        if isinstance(error, DuplicateReference | ResponseMismatch) and self.call.operation.creates:
            error.prepared = self.call.prepared
        error.operation = self.call.operation.name
        error.attempts = tuple(self.attempts)
        error.idempotency_key = self.call.prepared.idempotency_key if self.call.prepared else None
        return error

    @property
    def effect(self) -> Effect:
        """The call's effect if it ended now."""
        return "unknown" if self.unknown else "none"


def _says_so(error: PaymentsError) -> bool:
    """Return whether an error means that its attempt's outcome is unknown."""
    if isinstance(error, ConflictError):
        return error.effect == "unknown" and not error.in_progress
    return isinstance(error, ResponseMismatch)


def server_time(cause: BaseException | None) -> float | None:
    """The service's time at the answer that an error is about; None when it did not say."""
    return answer_time(cause.headers) if isinstance(cause, APIStatusError) else None
