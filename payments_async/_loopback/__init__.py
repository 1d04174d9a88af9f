"""Servers that only this machine reaches: the sandbox, a batch's page and the webhook listener.

peers    which user of this machine a connection is from
access   who may reach a server: the rules of all three
values   a request, and what answers it
page_files  templates and assets of pages
server   HTTP by these rules, on an event loop or in a thread of its own; the only part that uses aiohttp
"""

from __future__ import annotations

import os
import socket
from typing import Final

HOST: Final = "127.0.0.1"

_FIRST_PORT, _PORTS = 20_000, 12_000
"""Free ports are taken below 32768: outgoing connections take theirs above it and could steal one."""

_BACKLOG: Final = 1024


def listen(port: int | None) -> socket.socket:
    """A listening loopback socket on `port`, or on a free one below 32768; `OSError` when taken."""
    if port is not None:
        return socket.create_server((HOST, port), backlog=_BACKLOG)
    start = os.getpid() * 37
    for offset in range(_PORTS):
        try:
            return socket.create_server((HOST, _FIRST_PORT + (start + offset) % _PORTS), backlog=_BACKLOG)
        except OSError:
            continue
    raise OSError(f"no free port from {_FIRST_PORT} to {_FIRST_PORT + _PORTS - 1}")
