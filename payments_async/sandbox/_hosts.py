"""By which names the server may be asked: its own only, at every address.

A web page can have its own name resolved to this machine (rebinding) and is then of one origin with the
sandbox, as its browser sees it; the name it asked for still stands in Host.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from ._json import encode
from ._values import Answer, Request

_NAMES = ("127.0.0.1", "localhost", "[::1]")
_FOREIGN = Answer(
    403,
    {"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
    encode({"message": "This Host is not the sandbox's own; open it as http://127.0.0.1 with its port."}),
)


def refuse_foreign(request: Request, origin: str) -> Answer | None:
    """403 unless Host names this server, None when it does.

    Browsers always send Host; what sends none is a program in this process.
    """
    host = request.headers.get("host")
    return None if host is None or host.lower() in own_hosts(origin) else _FOREIGN


def own_hosts(origin: str) -> set[str]:
    """The server's names with its port, as Host has them."""
    parts = urlsplit(origin)
    port = f":{parts.port}" if parts.port else ""
    return {parts.netloc, *(name + port for name in _NAMES)}
