"""Checks `Host`: the server answers only to its own names.

A web page can have its own name resolved to this machine (rebinding) and is then of one origin with the
sandbox for its browser; but Host still has the name that it asked for.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from .json import encode
from .values import Answer, Request

_NAMES = ("127.0.0.1", "localhost", "[::1]")
_FOREIGN = Answer(
    403,
    {"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
    encode({"message": "This Host is not the sandbox's own; ask for it as 127.0.0.1 or localhost."}),
)


def refuse_foreign(request: Request, origin: str) -> Answer | None:
    """403 unless Host names this machine, None when it does; whatever the port, which may be forwarded.

    Browsers always send Host; what sends none is a program in this process.
    """
    host = request.headers.get("host")
    return None if host is None or _name_of(host) in _NAMES or host == _own(origin) else _FOREIGN


def _name_of(host: str) -> str:
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdecimal() else host.lower()


def _own(origin: str) -> str:
    return urlsplit(origin).netloc


def own_hosts(origin: str) -> set[str]:
    """The server's names with its port, as Host has them."""
    parts = urlsplit(origin)
    port = f":{parts.port}" if parts.port else ""
    return {_own(origin), *(name + port for name in _NAMES)}
