"""Servers that only this machine reaches: the sandbox (in a container a network, too), a batch's page and the
webhook listener.

peers    which user of this machine a connection is from
access   who may reach a server: the rules of all three
page_files  templates and assets of pages
server   HTTP by these rules, on an event loop or in a thread of its own; the only part that uses aiohttp
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Final

import attrs

HOST: Final = "127.0.0.1"

_FIRST_PORT, _PORTS = 20_000, 12_000
"""Free ports are taken below 32768: outgoing connections take theirs above it and could steal one."""

_BACKLOG: Final = 1024


def listen(port: int | None, host: str = HOST) -> socket.socket:
    """A listening socket on `port`, or on a free one below 32768; `OSError` when taken."""
    if port is not None:
        return socket.create_server((host, port), backlog=_BACKLOG)
    start = os.getpid() * 37
    for offset in range(_PORTS):
        try:
            return socket.create_server((host, _FIRST_PORT + (start + offset) % _PORTS), backlog=_BACKLOG)
        except OSError:
            continue
    raise OSError(f"no free port from {_FIRST_PORT} to {_FIRST_PORT + _PORTS - 1}")


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
    query: str = ""  # raw, percent-encoded, without the question mark
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    body: bytes = attrs.field(default=b"", repr=False)
    address: str = "127.0.0.1"
    root: str = attrs.field(default="", repr=False)
    """What stood before `path`: the segment with a secret of the server, or nothing."""
    is_trusted: bool = True
    """False where it is not known whose it is, and the secret was not given."""


@attrs.frozen
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes = b""
