"""Why the service cannot be worked with at all, in one sentence that says what mends it. Pure."""

from __future__ import annotations

from typing import Final

from ..errors import (
    APIConnectionError,
    APIStatusError,
    AuthenticationError,
    ConfigurationError,
    NotFoundError,
    PaymentsError,
    PermissionDeniedError,
)

FATAL: Final = (AuthenticationError, PermissionDeniedError, NotFoundError, ConfigurationError)
"""Answers to a reading after which no other request of this client can do better."""

_KEY: Final = {
    "HTTP 401": "the service refused the API key (HTTP 401): use a valid key of the same project",
    "HTTP 403": (
        "the service does not take the API key from this machine's address (HTTP 403): put that address on "
        "the key's allowlist"
    ),
}


def is_shut_out(error: PaymentsError) -> bool:
    """Whether the key was refused, or this is not the service: a name that TLS does not prove, a redirect."""
    if isinstance(error, APIConnectionError):
        return error.kind == "tls"
    status = error.status if isinstance(error, APIStatusError) else None
    return isinstance(error, FATAL) or (status is not None and 300 <= status < 400)


def why(error: PaymentsError) -> str:
    """What keeps a run out, and what to do about it."""
    if isinstance(error, APIStatusError):
        return why_of(f"HTTP {error.status}")
    return why_of(error.kind) if isinstance(error, APIConnectionError) else str(error)


def why_of(code: str | None) -> str:
    """The same of what an attempt came to: `HTTP 401`, or why there was no answer."""
    return _KEY.get(code or "") or f"something else than the service answered ({code}): check the base URL"
