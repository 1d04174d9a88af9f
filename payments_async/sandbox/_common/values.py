"""The inputs and outputs of the core, as frozen values.

A `Request` goes in, whose path begins with `/v1`. An `Answer` comes out, with the `effects` of the request:
changes, due webhooks and log lines. A network fault of an answer (`answer.fault`) is a value too, so that
the server and an in-process transport can both act it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import msgspec

from ..._loopback import Request as Request
from .masking import shown_address
from .scenario_words import HookWords


@attrs.frozen
class Slow:
    """Send the answer after `seconds` of sandbox time."""

    seconds: float


@attrs.frozen
class Hang:
    """Give no answer and keep the connection open until the caller leaves."""


@attrs.frozen
class Drop:
    """Close the connection without a byte of an answer."""


@attrs.frozen
class Reset:
    """Abort the connection (RST) without a byte of an answer."""


@attrs.frozen
class Cut:
    """Announce the whole body, send its first `size` bytes, close."""

    size: int


LineFault = Slow | Hang | Drop | Reset | Cut


class Answer(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The service's answer. `status` is 0 when a fault kept the request from being carried out at all."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    fault: LineFault | None = None
    awaits: tuple[str, ...] = ()
    """Webhooks whose first try comes before this answer leaves, by their ids."""
    on_end: Callable[[], object] = bool
    """Called once the answer was handed to the connection, or its caller is gone."""

    def __repr__(self) -> str:  # no account data
        return f"Answer(status={self.status!r}, fault={self.fault!r})"


class Change(msgspec.Struct, frozen=True, gc=False):
    """A record was created (`before` is None) or moved to another status, `at` seconds since 1970."""

    at: float
    kind: str
    """`payout`, `payment` or `attempt`."""
    id: str
    before: str | None
    after: str


@attrs.frozen
class Delivery:
    """A webhook that is due: the JSON `body` belongs to `url`. Unsigned (`docs/interface.md`, Events)."""

    at: float
    event: str
    record_id: str
    url: str = attrs.field(repr=shown_address)
    """Empty for a record without a `webhook_url`. It may hold a receiver's token."""
    body: bytes = attrs.field(repr=False)
    hooks: HookWords = ()
    """The scenario's webhook words for this delivery."""
    forged: bool = False
    """True if its content is false."""


class LoggedRequest(msgspec.Struct, frozen=True, gc=False):
    """One line of the request log. `headers` never holds `authorization`."""

    at: float
    request_id: str
    method: str
    path: str
    operation: str | None
    status: int
    idempotency_key: str | None
    replayed: bool
    fault: str | None
    """The fault that was applied, in scenario words; None when the service answered as it should."""
    key: str | None
    """Fingerprint of the API key; None when it was not a known one."""
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name != "headers")
        return f"LoggedRequest({', '.join(shown)})"


Effect = Change | Delivery | LoggedRequest


class RequestRefused(Exception):
    """A request is answered with an error status. Stays inside the core, which turns it into an `Answer`."""

    def __init__(
        self,
        status: int,
        message: str,
        errors: Mapping[str, list[str]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors
        self.headers: Mapping[str, str] = headers or {}
