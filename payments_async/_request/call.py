"""A call: what it sends, its attempts so far, and its record or error at the end. Pure.

An attempt's verdict is not the call's: a refusal proves nothing about an earlier attempt in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import attrs

from .. import _assumptions, models
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
from ..models import Attempt, Record
from ..models._record import attach
from ..models._response import Verdict, attempts_of
from ..params import Params, PreparedRequest
from ..params.operations import Operation
from .auth import SecretKey
from .key_age import Timestamps, answer_time

if TYPE_CHECKING:
    from .._guard.key_guard import Admission

Priority = Literal["interactive", "bulk"]

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


class AttemptResult:
    """The verdict on one attempt, with its record or error. No attrs class: rich would show its fields."""

    __slots__ = (
        *("again", "body", "error", "headers", "message", "reason", "retry_after"),
        *("status", "value", "verdict"),
    )

    def __init__(
        self,
        verdict: Verdict,
        reason: str,
        status: int | None = None,
        value: Any = None,
        message: str | None = None,
        error: PaymentsError | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
        body: bytes = b"",
        again: bool = False,
        retry_after: float | None = None,
    ) -> None:
        self.verdict: Verdict = verdict
        self.reason = reason
        self.status = status
        self.value = value
        self.message = message
        self.error: PaymentsError | None = error
        self.headers: Mapping[str, str] = headers
        self.body = body
        self.again = again
        """True if another attempt with the same bytes and key may succeed."""
        self.retry_after = retry_after  # seconds of the answer's `Retry-After`


class Call:
    """One call: what it sends, the caller's options, and its attempts so far."""

    __slots__ = (
        *("_first", "_prepared", "admission", "body", "clock", "deadline", "doubt", "doubtful", "ends"),
        *("headers", "idempotency_key", "is_known_key", "key", "max_retries", "may_send", "number"),
        *("operation", "path", "priority", "record", "request", "resumed", "retries", "sent_before"),
        *("sent_under", "started", "store_outage", "store_waited", "timeout", "tries"),
    )

    def __init__(
        self,
        operation: Operation[Any],
        path: str,
        headers: Mapping[str, str],
        record: str | None = None,
        prepared: PreparedRequest | tuple[Any, ...] | None = None,
        request: Params | None = None,
        body: bytes | None = None,
        idempotency_key: str | None = None,
        key: SecretKey | None = None,
    ) -> None:
        """A write has a prepared request, or the arguments of one, and its body and key."""
        self.operation: Operation[Any] = operation
        self.path = path
        self.headers: Mapping[str, str] = headers
        self.record = record  # the id for a limit of this record alone
        self._prepared = prepared
        self.request = request
        """The object that the body was encoded from, if this process made it; compared with the answer."""
        self.body: bytes | None = body
        self.idempotency_key = idempotency_key
        self.key: SecretKey | None = key
        """The secret key of the present attempt; before the first, that for which the request was made."""
        self.sent_under: SecretKey | None = None  # that of the last attempt in doubt
        self.timeout: float | None = None
        self.deadline: float | None = None  # seconds that the caller allows
        self.max_retries: int | None = None
        self.priority: Priority = "interactive"
        self.may_send: Callable[[], bool] | None = None
        """Asked right before the first byte of each attempt; False withholds it."""
        self.doubt: str | None = None
        """What may be meant otherwise in a valid request."""
        self.is_known_key = False
        """True if an earlier call of this process was given the same idempotency key."""
        self.sent_before = False
        """True if an earlier call may have sent the same request."""
        self.clock: Callable[[], Timestamps] | None = None
        self.admission: Admission | None = None
        """The guard's permission; None where no guard has to give one."""
        self.number = 0  # the call's number in its events; 0 while nothing takes them
        self.tries: list[tuple[Any, ...]] = []
        """The attempts so far: for each, the values of an `Attempt`."""
        self.retries = 0
        self.doubtful: int = 0
        self._first: AttemptResult | None = None
        self.store_waited: float = 0.0
        """Seconds for which the call waited at limiters whose store could not be reached."""
        self.store_outage = ""  # why the store could not be reached

    def limit(self, options: Mapping[str, Any]) -> None:
        """Take over the caller's options for sending."""
        self.timeout, self.deadline = options.get("timeout"), options.get("deadline")
        self.max_retries = options.get("max_retries")

    def begin(self, now: float, deadline: float | None, clock: Callable[[], Timestamps]) -> None:
        """Begin the call's time, at its first step; `clock` returns the time on all our clocks.

        `now` is monotonic seconds, `deadline` the seconds that a call is allowed where its caller said none.
        """
        if self.clock is None:
            allowed = self.deadline or deadline
            self.clock = clock
            self.started: float = now
            self.resumed: float = now
            """Time at which the wait before the next attempt began."""
            self.ends: float | None = None if allowed is None else now + allowed
            """The call's deadline on the monotonic clock."""

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return attempts_of(self.tries)

    @property
    def prepared(self) -> PreparedRequest | None:
        """The request of a write, which another process could send; made when asked for.

        It names the key under which it may have been carried out: `resolve` goes by that.
        """
        if isinstance(self._prepared, tuple):
            self._prepared = PreparedRequest(*self._prepared)
        prepared, key = self._prepared, self.sent_under
        if key is not None and prepared is not None and prepared.key_fingerprint != key.fingerprint:
            self._prepared = prepared = attrs.evolve(prepared, key_fingerprint=key.fingerprint)
        return prepared

    @prepared.setter
    def prepared(self, prepared: PreparedRequest) -> None:
        self._prepared, self.body = prepared, prepared.body

    def is_late(self, clock: Callable[[], float], after: float = 0.0) -> bool:
        """Return whether the deadline will have passed `after` seconds from now."""
        return self.ends is not None and clock() + after >= self.ends

    def left(self, clock: Callable[[], float]) -> float | None:
        """Seconds until the deadline, a little at least; None without one."""
        return None if self.ends is None else max(self.ends - clock(), 0.001)

    def until(self, moment: float) -> float:
        """The earlier of a moment and the deadline."""
        return moment if self.ends is None else min(moment, self.ends)

    def note(self, result: AttemptResult, sent_at: float, ended: float) -> None:
        tries, verdict, waited = self.tries, result.verdict, sent_at - self.resumed
        tries.append((len(tries) + 1, verdict, result.reason, result.status, waited, ended - sent_at))
        self.resumed = ended
        if verdict == "in_doubt":
            self.doubtful += 1
            self.sent_under = self.key

    def date(self, result: AttemptResult) -> None:
        """Note an answer for its date, if it is the one to the request's first attempt."""
        if len(self.tries) == 1 and not self.sent_before:
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
        return self.doubtful > 0 and self.operation.creates

    def delivery(self, result: AttemptResult) -> Any:
        """The last attempt's record, with its answer attached."""
        assert result.status is not None
        value, key = result.value, self.idempotency_key
        facts = (result.status, result.headers, self.tries, key, result.message, result.body)
        if isinstance(value, Record):
            attach(value, facts)
        elif isinstance(value, models.Page):
            models.lists.attach_to_page(value, facts)
        return value

    def conclusion(self, error: PaymentsError) -> PaymentsError:
        """Make the error of the whole call from the last attempt's."""
        last = self.tries[-1][1] if self.tries else "not_sent"
        alone = last == "in_doubt" and self.doubtful == 1
        if not self.unknown or last == "executed" or (alone and _says_so(error)):
            if isinstance(error, APIConnectionError):
                unsent = all(attempt.verdict == "not_sent" for attempt in self.attempts)
                harmless = "nothing was sent" if unsent else "nothing can have happened"
                error.args = (f"{error}; {harmless}: {_STEPS[error.kind]}",)
            return self._signed(error)
        return self.outcome_unknown(error)

    def outcome_unknown(self, cause: Exception | None = None, why: str | None = None) -> OutcomeUnknown:
        """Make the error of a call whose outcome is unknown, with all that `resolve` needs.

        `why`: the reason for which it was not sent again.

        The request may have been sent before, by another process or by `resolve`. So the key's protection is
        counted from when the request was made.
        """
        prepared, clock = self.prepared, self.clock
        assert prepared is not None
        assert clock is not None
        first, ended = prepared.created_at, clock()
        tries = ", ".join(attempt.reason for attempt in self.attempts) or "none by this call"
        if isinstance(cause, APIConnectionError) and cause.kind == "unexpected":
            tries = f"{tries}; {cause.detail}"
        if why is not None:
            tries = f"{tries}; not sent again: {why}"
        error = OutcomeUnknown(
            f"{self.operation.name}: no definite answer, it may have been carried out "
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
            f"{self.operation.name}: the deadline passed after {len(self.attempts)} attempt(s); "
            "nothing came of it"
        )
        error.__cause__ = cause
        return self._signed(error)

    def _signed(self, error: PaymentsError) -> PaymentsError:
        """Add the facts of the call to an error."""
        if self.store_waited and self.store_outage not in str(error):
            error.args = (f"{error}; it waited {self.store_waited:.3g} s: {self.store_outage}",)
        if isinstance(error, DuplicateReference | ResponseMismatch) and self.operation.creates:
            error.prepared = self.prepared
        error.operation = self.operation.name
        error.attempts = self.attempts
        error.idempotency_key = self.idempotency_key
        return error

    @property
    def effect(self) -> Effect:
        return "unknown" if self.unknown else "none"


def _says_so(error: PaymentsError) -> bool:
    """Return whether an error means that its attempt's outcome is unknown."""
    if isinstance(error, ConflictError):
        return error.effect == "unknown" and not error.in_progress
    return isinstance(error, ResponseMismatch)


def server_time(cause: BaseException | None) -> float | None:
    """The service's time at the answer that an error is about; None when it did not say."""
    return answer_time(cause.headers) if isinstance(cause, APIStatusError) else None
