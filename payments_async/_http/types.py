"""What crosses the wire, as values: one request under way, one answer, one failure to get an answer.

The pipeline makes a `HTTPRequest`, the transport sends it. Nothing here does I/O, so any transport will do:
aiohttp's, or the in-process one of `payments_async.testing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, SupportsIndex

import attrs

FailureKind = Literal["pool", "dns", "connect", "tls", "timeout", "reset", "protocol", "too_large", "closed"]


class Secret(str):
    """Text that goes out as it is and never shows itself (tracebacks print reprs of locals)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"

    def __getitem__(self, index: SupportsIndex | slice[Any, Any, Any]) -> Secret:
        return Secret(super().__getitem__(index))  # who shortens a long text shows a part of it


class Connection(Protocol):
    """What carried a request: an `asyncio` transport."""

    def abort(self) -> None:
        """Close at once."""


@attrs.define(eq=False)
class HTTPRequest:
    """One attempt to send one request. `sent` turns true before the first byte leaves."""

    method: str
    url: str
    """Absolute, already percent-encoded."""
    headers: dict[str, str] = attrs.field(repr=False)
    body: bytes | None = attrs.field(repr=False)
    timeout: float
    """Seconds for the whole attempt: connection, request, answer."""
    sent: bool = False
    connection: Connection | None = attrs.field(default=None, repr=False)
    """What it was written to; None where the transport does not say."""


@attrs.define(eq=False)
class HTTPResponse:
    """What the service said. Header names compare without case."""

    status: int
    headers: Mapping[str, str] = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)


class TransportError(Exception):
    """No usable answer came. Whether the request may have been carried out is `request.sent`'s to say."""

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind: FailureKind = kind
        self.detail = detail


class Transport(Protocol):
    """Sends requests. Usable from any loop, one at a time per loop's own connections."""

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """The answer, whatever its status; `TransportError` when none came."""

    async def aclose(self) -> None:
        """Close every connection of the running loop."""
