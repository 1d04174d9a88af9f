"""Every error, and what each says about money.

PaymentsError                      .effect: "none" | "happened" | "unknown"
├─ ConfigurationError              bad key, base_url or option; wrong environment        nothing sent
├─ InvalidRequest                  local validation; .errors {field: [texts]}             nothing sent
├─ APIConnectionError              no answer, and nothing can have happened
│  └─ APITimeoutError
├─ OutcomeUnknown                  a write was sent and no definite answer came: client.resolve(error)
├─ DeadlineExceeded                the caller's deadline ended a read, or a write before it was sent
├─ LimitReached                    on_limit="raise": our own gate would have waited       nothing sent
├─ SearchIncomplete                a bounded look-up ended before the end of the list
├─ APIStatusError                  the service answered and refused
│  ├─ BadRequestError 400   AuthenticationError 401   PermissionDeniedError 403   NotFoundError 404
│  ├─ ConflictError 409
│  │  ├─ DuplicateReference        another payout has this reference: client.payouts.find(reference)
│  │  └─ IdempotencyConflict       the key was used with another body
│  ├─ UnprocessableError 422       .errors {field: [texts]}
│  ├─ RateLimitedError 429         .retry_after .limit .remaining
│  └─ ServerError 5xx
├─ DecodeError                     a 2xx whose record could not be read; .record_id
├─ ResponseMismatch                a 2xx with another record than was asked for
└─ WaitTimeout                     a wait ended before the record was final; .last .token

Errors carry facts: never the key or a request's headers. Bodies never print, and leave in no pickle.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ._error_base import Body as Body
from ._error_base import Effect as Effect
from ._error_base import PaymentsError as PaymentsError
from ._masking import without_keys
from ._status_errors import STATUS_ERRORS as STATUS_ERRORS
from ._status_errors import APIStatusError as APIStatusError
from ._status_errors import AuthenticationError as AuthenticationError
from ._status_errors import BadRequestError as BadRequestError
from ._status_errors import ConflictError as ConflictError
from ._status_errors import DuplicateReference as DuplicateReference
from ._status_errors import IdempotencyConflict as IdempotencyConflict
from ._status_errors import NotFoundError as NotFoundError
from ._status_errors import PermissionDeniedError as PermissionDeniedError
from ._status_errors import RateLimitedError as RateLimitedError
from ._status_errors import ServerError as ServerError
from ._status_errors import UnprocessableError as UnprocessableError
from ._status_errors import error_class as error_class

if TYPE_CHECKING:
    from ._request.clocks import Moment
    from .params import PreparedRequest

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
    "IdempotencyConflict",
    "InvalidRequest",
    "LimitReached",
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


class InvalidRequest(PaymentsError):
    """The arguments break the interface's limits (Endpoints). Nothing was sent."""

    def __init__(self, errors: Mapping[str, list[str]], *, operation: str | None = None) -> None:
        self.errors: dict[str, list[str]] = dict(errors)
        """{field, dotted when nested: [every rule it breaks]}, the shape of a 422's `errors`."""
        told = "; ".join(f"{field}: {' and '.join(texts)}" for field, texts in self.errors.items())
        super().__init__(f"{operation or 'request'} was not sent: {told}", operation=operation)


class APIConnectionError(PaymentsError):
    """No answer came, and nothing can have happened: a read, or a write that never left."""

    def __init__(self, message: str, *, kind: str, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.kind = kind
        """`dns`, `connect`, `tls`, `pool`, `reset`, `protocol`, `closed` or `timeout`."""


class APITimeoutError(APIConnectionError):
    """The attempt's `timeout` passed without an answer, and nothing can have happened."""


class OutcomeUnknown(PaymentsError):
    """A write was sent and no definite answer came: money may have moved.

    Give it to `client.resolve(error)`, or keep `error.prepared.to_json()` and resolve it later. Do not
    send the same payment again under a new key.
    """

    _left_out_of_pickles = frozenset({"prepared"})

    def __init__(
        self,
        message: str,
        *,
        prepared: PreparedRequest,
        first_sent_at: datetime | None,
        key_expires_at: datetime | None,
        last_sent_at: datetime | None = None,
        ended: Moment | None = None,
        in_use: float = 0.0,
        **facts: Any,
    ) -> None:
        super().__init__(message, effect="unknown", **facts)
        self.prepared: PreparedRequest | None = prepared
        """The exact request; left behind by a pickle, store `prepared.to_json()` instead."""
        self.reference: str | None = prepared.reference
        """The payout's reference, by which it can be looked up at any time."""
        self.first_sent_at = first_sent_at
        """When the request was prepared: no try of it, in any process, can have left before."""
        self.last_sent_at = last_sent_at
        """When the call ended, by the wall clock: no try of it has left since."""
        self._ended = ended
        self._in_use = in_use
        """Seconds for which the key had been in use when the call ended, as far as the call can tell."""
        self.key_expires_at = key_expires_at
        """Until when the same key protects a repeat (Limits, Idempotency)."""


class DeadlineExceeded(PaymentsError):
    """The call's `deadline` passed before anything was sent, or in a read."""


class LimitReached(PaymentsError):
    """`on_limit="raise"` and the gate would have made the call wait. Nothing was sent."""

    def __init__(self, message: str, *, retry_after: float, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after
        """Seconds after which a try can succeed."""


class SearchIncomplete(PaymentsError):
    """A look-up has not come to the end of the list, or could not read all of it: the record may be there."""

    def __init__(self, message: str, *, pages: int, cursor: str | None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.pages = pages
        """Pages read."""
        self.cursor = cursor
        """Where to go on: `client.payouts.find(reference, cursor=error.cursor)`; None when nobody knows."""


class DecodeError(PaymentsError):
    """A 2xx that could not be read as the record it should be. For a write, it happened.

    Also an answer to a read of more than 16 MiB, decompressed, or with a list of more than 1,000 records.

    A write's 2xx that shows no id of the record proves nothing: that is an OutcomeUnknown, caused by this.
    """

    _left_out_of_pickles = frozenset({"body"})

    def __init__(self, message: str, *, record_id: str | None, body: bytes, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.record_id = record_id and without_keys(record_id)
        """The record's id, when that much could be read; secret keys masked."""
        self.body: Body | None = Body(body)
        """The answer's body; left behind by a pickle."""


class ResponseMismatch(PaymentsError):
    """A 2xx whose record differs from what was asked for. Nothing is known; look before you pay again.

    A read's is an answer about another record: effect "none". The connection that gave it was closed.
    """

    _left_out_of_pickles = frozenset({"record"})

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
        """What the service returned; left behind by a pickle, as it holds account data."""
        self.differences: dict[str, tuple[str, str]] = {
            name: (asked, without_keys(answered)) for name, (asked, answered) in differences.items()
        }
        """{field: (asked, answered)} of amount, currency and reference; of a read, of the id.
        Secret keys are masked."""


class WaitTimeout(PaymentsError):
    """A wait's `deadline` passed before the record was final. It may become final later."""

    _left_out_of_pickles = frozenset({"last"})

    def __init__(self, message: str, *, last: Any, token: str, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.last = last
        """The record as last read; None when it was never seen, and in a pickle."""
        self.token = token
        """JSON with which the same `wait` goes on, here or in another process."""


for _error in [value for value in globals().values() if isinstance(value, type)]:
    if issubclass(_error, PaymentsError):
        _error.__module__ = __name__  # what tracebacks and pickles name is where one imports it from
del _error
