"""Every error, and its effect on money.

    PaymentsError                  .effect: "none" | "happened" | "unknown"
    ├─ ConfigurationError          bad key, base_url or option; wrong environment        nothing sent
    ├─ InvalidRequest              local validation; .errors {field: [texts]}             nothing sent
    ├─ APIConnectionError          no answer, and nothing can have happened
    │  └─ APITimeoutError
    ├─ OutcomeUnknown              a write was sent and no definite answer came: client.resolve(error)
    ├─ DeadlineExceeded            the caller's deadline ended a read, or a write before it was sent
    ├─ LimitReached                on_limit="raise": our own limiter would have waited    nothing sent
    │  └─ LimitStoreUnavailable    a bulk call, and no limit store to share the limit through
    ├─ GuardRefused                the guard does not allow it; .rule .allowed .room_at   nothing sent
    ├─ SearchIncomplete            a bounded look-up ended before the end of the list
    ├─ APIStatusError              the service answered and refused
    │  ├─ BadRequestError 400   AuthenticationError 401   PermissionDeniedError 403   NotFoundError 404
    │  ├─ ConflictError 409
    │  │  ├─ DuplicateReference    a payout has this reference: client.resolve(error)
    │  │  └─ IdempotencyConflict   the key was used with another body, or is under way here
    │  ├─ UnprocessableError 422   .errors {field: [texts]}
    │  ├─ RateLimitedError 429     .retry_after .limit .remaining
    │  └─ ServerError 5xx
    ├─ DecodeError                 a 2xx whose record could not be read; .record_id
    ├─ ResponseMismatch            a 2xx with another record than was asked for
    └─ WaitTimeout                 a wait ended before the record was final; .last .token

Errors carry facts: never the key or a request's headers. Bodies never print, and leave in no pickle.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar, Literal

from .models._masking import body_without_keys, without_keys
from .models._response import Attempt
from .params.prepared import PreparedRequest

Effect = Literal["none", "happened", "unknown"]
"""Effect of a call: it moved no money and made no record · it did · not known yet."""


class Body:
    """An answer's body, which may hold account data. Its repr shows none of it."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw: bytes = body_without_keys(raw)
        """The bytes as received, secret keys masked."""

    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 are replaced."""
        return self.raw.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body parsed by the standard library. Raises ValueError when it is not JSON."""
        return json.loads(self.raw)

    def __repr__(self) -> str:
        return f"<body of {len(self.raw)} bytes>"


class PaymentsError(Exception):
    """Base of every error that this package raises on purpose."""

    effects: ClassVar[tuple[Effect, ...]] = ("none", "happened", "unknown")
    """The effects that an error of this class may have."""
    remedy: str = "read `.effect` before you send again"
    """What to do, in a line; also in docs/errors.md and docs/errors.json."""

    _left_out_of_pickles: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        message: str,
        *,
        effect: Effect = "none",
        operation: str | None = None,
        idempotency_key: str | None = None,
        attempts: tuple[Attempt, ...] = (),
    ) -> None:
        super().__init__(message)
        self.effect: Effect = effect
        """Effect of the call: whether it can have moved money or made a record."""
        self.operation = operation
        """Name of the call, such as `payouts.create`."""
        self.idempotency_key = idempotency_key
        """Idempotency key of the write."""
        self.attempts = attempts
        """Every attempt, with its result."""

    @property
    def is_temporary(self) -> bool:
        """True if the call did nothing, and the very same call can succeed later.

        Never of an `OutcomeUnknown`: that has `client.resolve(error)`.
        """
        return self.effect == "none" and self._may_pass()

    def _may_pass(self) -> bool:
        return False

    def __reduce__(self) -> tuple[Any, ...]:
        state = {name: value for name, value in vars(self).items() if name not in self._left_out_of_pickles}
        left_out = dict.fromkeys(self._left_out_of_pickles & vars(self).keys())
        return _rebuilt, (type(self), self.args, {**state, **left_out})


def _rebuilt(cls: type[PaymentsError], args: tuple[Any, ...], state: dict[str, Any]) -> PaymentsError:
    error = cls.__new__(cls, *args)
    error.args = args
    vars(error).update(state)
    return error


class APIStatusError(PaymentsError):
    """The service answered with a status that is not 2xx (Errors)."""

    effects: ClassVar[tuple[Effect, ...]] = ("none", "unknown")
    remedy = "read `.status` and `.message`"

    _left_out_of_pickles = frozenset({"body"})

    def __init__(
        self,
        message: str,
        *,
        status: int,
        service_message: str | None,
        errors: Mapping[str, list[str]],
        headers: Mapping[str, str],
        body: bytes,
        **facts: Any,
    ) -> None:
        super().__init__(message, **facts)
        self.status = status
        """HTTP status."""
        self.message = service_message
        """The service's own `message`, on one line: secret keys, digit runs, e-mails, the request's
        instrument and customer masked."""
        self.errors: dict[str, list[str]] = dict(errors)
        """{field: [texts]} of a 400 or 422, masked likewise (gap P)."""
        values = "\n".join(headers.values())
        mask = str if without_keys(values) == values else without_keys  # nearly always none holds a key
        self.headers: dict[str, str] = {name.lower(): mask(value) for name, value in headers.items()}
        """The answer's headers, names in lower case, secret keys masked."""
        self.body: Body | None = Body(body)
        """The answer's body; left behind by a pickle."""

    def _may_pass(self) -> bool:
        return self.status in (408, 429) or self.status >= 500

    @property
    def request_id(self) -> str | None:
        """`X-Request-Id`, when the service sends one (gap AE)."""
        return self.headers.get("x-request-id")


class BadRequestError(APIStatusError):
    """400: the request was malformed."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "correct the fields in `.errors`"


class AuthenticationError(APIStatusError):
    """401: the key is missing, invalid, inactive or expired (Authentication, rule 4)."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "check or rotate the key"


class PermissionDeniedError(APIStatusError):
    """403: this address is not on the key's allowlist (Authentication, rule 5)."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "add this machine's address to the key's allowlist, in the dashboard"


class NotFoundError(APIStatusError):
    """404: no such record or path."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "check the id and the environment"


_AT_WORK = ("in progress", "being processed", "being worked on", "processing", "running", "concurrent")
"""Words of a 409 about a request that is still in progress."""
_WORD = re.compile(r"[^\W_]+")
_TAKEN = ("exist", "taken", "already used", "already been used", "duplicate reference")
"""Words of a 409 about a reference that another payout has."""


class ConflictError(APIStatusError):
    """409: in conflict with something that exists. Never retried."""

    effects: ClassVar[tuple[Effect, ...]] = ("none", "unknown")
    remedy = "find out what happened before you send"

    @property
    def in_progress(self) -> bool:
        """True if the service says that the request is in progress, and not that a reference is taken.

        A creation raises `OutcomeUnknown` instead, with this `ConflictError` as its cause.
        """
        return _is_in_progress(self.message)


def _is_in_progress(message: str | None) -> bool:
    words = " ".join(_WORD.findall((message or "").lower()))
    taken = "reference" in words and any(word in words for word in _TAKEN)
    return not taken and any(word in words for word in _AT_WORK)


class DuplicateReference(ConflictError):
    """409: a payout with this `reference` exists. `client.resolve(error)` compares it with the request."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "`client.resolve(error)` returns that payout if it is the one asked for"

    _left_out_of_pickles = frozenset({"body", "prepared"})

    prepared: PreparedRequest | None = None
    """The exact request; left behind by a pickle."""


class IdempotencyConflict(ConflictError):
    """409: the idempotency key belongs to another body (gap R).

    Also raised, and nothing sent, while another call of this process sends a request with the key: `effect`
    is unknown then, as that call may move money.
    """

    effects: ClassVar[tuple[Effect, ...]] = ("none", "unknown")
    remedy = "find out what happened before you send; use a key once"


class UnprocessableError(APIStatusError):
    """422: the data is invalid; `.errors` has the fields."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "correct the fields in `.errors`; send under a new key"


class RateLimitedError(APIStatusError):
    """429: over the rate limit, and the client did not wait (Limits)."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "wait `.retry_after` seconds"

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        limit: int | None = None,
        remaining: int | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after
        """Seconds to wait, from `Retry-After`."""
        self.limit = limit
        """Requests a minute (`X-RateLimit-Limit`)."""
        self.remaining = remaining
        """Requests left (`X-RateLimit-Remaining`)."""


class ServerError(APIStatusError):
    """5xx: the service failed. The outcome of a write is not known; see `OutcomeUnknown`."""

    effects: ClassVar[tuple[Effect, ...]] = ("none", "unknown")
    remedy = "try again later; as the cause of an `OutcomeUnknown`, resolve that"


STATUS_ERRORS: Mapping[int, type[APIStatusError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    422: UnprocessableError,
    429: RateLimitedError,
}


def error_class(
    status: int, *, message: str | None = None, reference: str | None = None
) -> type[APIStatusError]:
    """The error class of a status. The message decides which 409 it is, then whether a reference was sent.

    A 409 about a request in progress says nothing about the reference.
    """
    if status == 409 and any(word in (message or "").lower() for word in ("idempoten", "key")):
        return IdempotencyConflict
    if status == 409 and reference is not None and not _is_in_progress(message):
        return DuplicateReference
    if status >= 500:
        return ServerError
    return STATUS_ERRORS.get(status, APIStatusError)


__all__ = [
    "STATUS_ERRORS",
    "APIConnectionError",
    "APIStatusError",
    "APITimeoutError",
    "AuthenticationError",
    "BadRequestError",
    "Body",
    "ConfigurationError",
    "ConflictError",
    "DeadlineExceeded",
    "DecodeError",
    "DuplicateReference",
    "Effect",
    "GuardRefused",
    "IdempotencyConflict",
    "InvalidRequest",
    "LimitReached",
    "LimitStoreUnavailable",
    "NotFoundError",
    "OutcomeUnknown",
    "PaymentsError",
    "PermissionDeniedError",
    "RateLimitedError",
    "ResponseMismatch",
    "SearchIncomplete",
    "ServerError",
    "UnprocessableError",
    "WaitTimeout",
    "error_class",
]


class ConfigurationError(PaymentsError):
    """The client cannot be built or used like this; the message says what to change. Nothing was sent."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "change what the message names"


class InvalidRequest(PaymentsError):
    """The arguments break the interface's limits (Endpoints). Nothing was sent."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "correct the fields in `.errors`"

    def __init__(self, errors: Mapping[str, list[str]], *, operation: str | None = None) -> None:
        self.errors: dict[str, list[str]] = dict(errors)
        """{field, dotted when nested: [every rule it breaks]}, the shape of a 422's `errors`."""
        faults = "; ".join(f"{field}: {' and '.join(texts)}" for field, texts in self.errors.items())
        super().__init__(f"{operation or 'request'} was not sent: {faults}", operation=operation)


class APIConnectionError(PaymentsError):
    """No answer came, and nothing can have happened: a read, or a write that never left."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "try again later"

    def __init__(self, message: str, *, kind: str, detail: str = "", **facts: Any) -> None:
        super().__init__(message, **facts)
        self.kind = kind
        """`dns`, `connect`, `tls`, `pool`, `reset`, `protocol`, `closed`, `withheld`, `timeout`
        or `unexpected`: an exception that is no failure of a connection, such as a stand-in's; the
        message has its class, file, line and text, and it is the cause unless its text holds a secret."""
        self.detail = detail
        """What went wrong, in words: for a refused certificate its reason."""

    def _may_pass(self) -> bool:
        return self.kind not in ("tls", "closed", "withheld", "unexpected")


class APITimeoutError(APIConnectionError):
    """The attempt's `timeout` passed without an answer, and nothing can have happened."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "try again later"


class OutcomeUnknown(PaymentsError):
    """A write was sent and no definite answer came: money may have moved.

    Pass the error to `client.resolve(error)`, or keep `error.prepared.to_json()` and resolve it later. Do not
    send the same payment again under a new key.
    """

    effects: ClassVar[tuple[Effect, ...]] = ("unknown",)
    remedy = "`client.resolve(error)`: it may send the same request again, and so complete it"

    _left_out_of_pickles = frozenset({"prepared"})

    def __init__(
        self,
        message: str,
        *,
        prepared: PreparedRequest,
        first_sent_at: datetime | None,
        key_expires_at: datetime | None,
        last_sent_at: datetime | None = None,
        ended: object = None,
        in_use: float = 0.0,
        first_answered: float | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(message, effect="unknown", **facts)
        self.prepared: PreparedRequest | None = prepared
        """The exact request; left behind by a pickle, store `prepared.to_json()` instead."""
        self.reference: str | None = prepared.reference
        """The payout's reference, by which it can be looked up at any time."""
        self.first_sent_at = first_sent_at
        """When the request was prepared: no attempt, in any process, can have been sent before."""
        self.last_sent_at = last_sent_at
        """When the call ended, by the wall clock: no attempt of it was sent later."""
        self._ended: Any = ended
        """`last_sent_at` on every clock (`_request/key_age.py`)."""
        self._in_use = in_use
        """Seconds for which the idempotency key had been in use when the call ended, as far as is known."""
        self._first_answered = first_answered
        """The service's time at the answer to the first attempt, seconds since 1970; None without one."""
        self.key_expires_at = key_expires_at
        """End of the time in which the idempotency key protects a repeat (Limits, Idempotency)."""


class DeadlineExceeded(PaymentsError):
    """The call's `deadline` passed before anything was sent, or in a read."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "try again with more time"

    def _may_pass(self) -> bool:
        return True


class LimitReached(PaymentsError):
    """With `on_limit="raise"`: the call would have to wait for the rate limit. Nothing was sent."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "wait `.retry_after` seconds"

    def __init__(self, message: str, *, retry_after: float, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after
        """Seconds after which a new call can succeed."""

    def _may_pass(self) -> bool:
        return True


class LimitStoreUnavailable(LimitReached):
    """The limit store could not be reached for 30 s, in bulk for a minute. Nothing was sent.

    Also raised when a guard's sums cannot be read for 5 s.
    """

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "bring the store back and call again; with `expected_workers` only bulk calls need it"


class GuardRefused(PaymentsError):
    """The guard of this secret key does not allow the write. Nothing was sent (docs/guard.md)."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "check the amount and its unit; where it is right, wait until `.room_at`, or change the guard"

    def __init__(
        self,
        message: str,
        *,
        rule: str,
        amount: Decimal | None = None,
        currency: str | None = None,
        allowed: Decimal | None = None,
        room_at: datetime | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(message, **facts)
        self.rule = rule
        """The guard's word: `most`, `sums`, `currency`, `methods`, …; `body` for what it cannot read."""
        self.amount = amount
        """What was asked, major units."""
        self.currency = currency
        self.allowed = allowed
        """What would have been allowed, major units, where there is such a figure."""
        self.room_at = room_at
        """When there may be room in the sum, UTC; None where waiting does not help."""


class SearchIncomplete(PaymentsError):
    """A look-up did not reach the end of the list, or could not read all of it: the record may be there."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = (
        "`find(reference, cursor=error.cursor)`, a larger `max_pages`, or a date; where "
        "`.cursor` is None, report it to the service"
    )

    def __init__(self, message: str, *, pages: int, cursor: str | None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.pages = pages
        """Pages read."""
        self.cursor = cursor
        """Position to continue from, as `client.payouts.find(reference, cursor=...)`; None if unknown."""


class DecodeError(PaymentsError):
    """A 2xx answer that could not be read as the expected record. A write was carried out.

    Also raised for an answer to a read of more than 4 MiB, decompressed, or a list of more than 1,000
    records.

    A write's 2xx without the record's id, or with another reference, proves nothing: it raises an
    OutcomeUnknown caused by this error.
    """

    effects: ClassVar[tuple[Effect, ...]] = ("none", "happened")
    remedy = (
        "a write was carried out: find a payout by its reference or in the list, read a checkout by "
        "its id (`.record_id`); report it"
    )

    _left_out_of_pickles = frozenset({"body"})

    def __init__(self, message: str, *, record_id: str | None, body: bytes, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.record_id: str | None = record_id and without_keys(record_id)
        """The record's id, if it could be read; secret keys masked."""
        self.body: Body | None = Body(body)
        """The answer's body; left behind by a pickle."""


class ResponseMismatch(PaymentsError):
    """A 2xx answer whose record differs from the request. The outcome is unknown: check before paying again.

    `client.resolve(error)` sends the same request again, with its key: an answer to another request is
    replaced by the right one. For a read it means an answer about another record: effect "none". The
    connection is closed.
    """

    effects: ClassVar[tuple[Effect, ...]] = ("none", "unknown")
    remedy = "compare `.differences`; a write: `client.resolve(error)` before you send; a read: read again"

    _left_out_of_pickles = frozenset({"record", "prepared"})

    prepared: PreparedRequest | None = None
    """The exact request of a write; left behind by a pickle, store `prepared.to_json()` instead."""

    def __init__(
        self,
        message: str,
        *,
        record: Any,
        differences: Mapping[str, tuple[str, str]],
        effect: Effect = "unknown",
        **facts: Any,
    ) -> None:
        super().__init__(message, effect=effect, **facts)
        self.record = record
        """The record that the service returned; left behind by a pickle, as it holds account data."""
        self.differences: dict[str, tuple[str, str]] = {
            name: (asked, without_keys(answered)) for name, (asked, answered) in differences.items()
        }
        """{field: (asked, answered)} of amount, currency and reference; of a read, of the id.
        Secret keys are masked."""


class WaitTimeout(PaymentsError):
    """A wait's `deadline` passed before the record was final. The record may become final later."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "wait again with `.token`"

    _left_out_of_pickles = frozenset({"last"})

    def __init__(self, message: str, *, last: Any, token: str, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.last = last
        """The record as last read; None when it was never seen, and in a pickle."""
        self.token = token
        """JSON text that continues the same `wait`, in this or another process."""


for _error in [value for value in globals().values() if isinstance(value, type)]:
    if issubclass(_error, PaymentsError):
        _error.__module__ = __name__  # tracebacks and pickles name the public module
del _error
