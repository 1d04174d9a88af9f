"""The receiver: HTTP on loopback, a thread for each delivery, bounded in size and time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

HOST: Final = "127.0.0.1"
LARGEST: Final = 1024 * 1024
"""Bytes of a body; a larger one is a 413."""

_PATIENCE: Final = 10.0
"""Seconds a sender may pause."""

Take = Callable[[bytes, Mapping[str, str]], int]
"""Body and headers (names in small letters) of a delivery → the status to answer."""


class Receiver(ThreadingHTTPServer):
    """Gives each POST to `take`; OSError when `port` is taken. 0 means a free one."""

    daemon_threads = True

    def __init__(self, port: int, take: Take) -> None:
        self.take = take
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        """What to pass as webhook_url."""
        return f"http://{HOST}:{self.server_port}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """A sender that leaves midway is no news."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE
    server: Receiver

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            self._answer(411)
        elif len(length) > len(str(LARGEST)) or int(length) > LARGEST:
            self._answer(413)
        else:
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._answer(self.server.take(self.rfile.read(int(length)), headers))

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what came is told by whoever takes it."""
