"""What the service refused, by status. Found in `errors`, which shows where these stand among the others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ._error_base import Body, PaymentsError
from ._masking import without_keys


class APIStatusError(PaymentsError):
    """The service answered with a status that is not 2xx (Errors)."""

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
        self.headers: dict[str, str] = {name.lower(): without_keys(value) for name, value in headers.items()}
        """The answer's headers, names in lower case, secret keys masked."""
        self.body: Body | None = Body(body)
        """The answer's body; left behind by a pickle."""

    @property
    def request_id(self) -> str | None:
        """`X-Request-Id`, when the service sends one (gap AE)."""
        return self.headers.get("x-request-id")


class BadRequestError(APIStatusError):
    """400: the request was malformed."""


class AuthenticationError(APIStatusError):
    """401: the key is missing, invalid, inactive or expired (Authentication, rule 4)."""


class PermissionDeniedError(APIStatusError):
    """403: this address is not on the key's allowlist (Authentication, rule 5)."""


class NotFoundError(APIStatusError):
    """404: no such record or path."""


_AT_WORK = ("in progress", "being processed", "being worked on", "processing", "running", "concurrent")
"""Words of a 409 about a request that is still at work."""
_WORD = re.compile(r"[^\W_]+")
_TAKEN = ("exist", "taken", "already used", "already been used", "duplicate reference")
"""Words of a 409 about a reference that another payout has."""


class ConflictError(APIStatusError):
    """409: in conflict with something that exists. Never retried."""

    @property
    def in_progress(self) -> bool:
        """Whether the service says that the request is still at work, and not that a reference is taken.

        To a creation this arrives as an `OutcomeUnknown`, with the `ConflictError` as its cause.
        """
        return _is_in_progress(self.message)


def _is_in_progress(message: str | None) -> bool:
    words = " ".join(_WORD.findall((message or "").lower()))
    taken = "reference" in words and any(word in words for word in _TAKEN)
    return not taken and any(word in words for word in _AT_WORK)


class DuplicateReference(ConflictError):
    """409: a payout with this `reference` exists. `client.payouts.find(reference)` shows it."""


class IdempotencyConflict(ConflictError):
    """409: the idempotency key belongs to another body (gap R)."""


class UnprocessableError(APIStatusError):
    """422: the data is invalid; `.errors` says which fields."""


class RateLimitedError(APIStatusError):
    """429: over the limit, and not waited out (Limits)."""

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
        """Seconds to wait, as `Retry-After` said."""
        self.limit = limit
        """Requests a minute (`X-RateLimit-Limit`)."""
        self.remaining = remaining
        """Requests left (`X-RateLimit-Remaining`)."""


class ServerError(APIStatusError):
    """5xx: the service failed. Of a write nobody can tell what came; see `OutcomeUnknown`."""


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
    """The class for a status. A 409 is told apart by its message, then by whether a reference was sent.

    One about a request that is still at work says nothing of the reference.
    """
    if status == 409 and any(word in (message or "").lower() for word in ("idempoten", "key")):
        return IdempotencyConflict
    if status == 409 and reference is not None and not _is_in_progress(message):
        return DuplicateReference
    if status >= 500:
        return ServerError
    return STATUS_ERRORS.get(status, APIStatusError)
