"""What a server of this machine is asked, and its answer: whole, or a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import attrs

GUARDS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of answers that nobody keeps, and that no other site's page gets."""


@attrs.define(eq=False)  # not frozen, which takes twice the time to make
class Request:
    """One request as it arrives. `headers` has its names in lower case."""

    method: str
    path: str
    query: str = ""
    """Raw, percent-encoded, without the question mark."""
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    body: bytes = attrs.field(default=b"", repr=False)
    address: str = "127.0.0.1"
    root: str = attrs.field(default="", repr=False)
    """What stood before `path`: the segment with the server's secret, or nothing."""
    is_trusted: bool = True
    """False where it is not known whose it is, and the secret was not given."""


@attrs.frozen
class Reply:
    """An answer that is no stream."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


@attrs.frozen(eq=False)
class Stream:
    """An answer that is a stream of events."""

    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes] = attrs.field(repr=False)
