"""The receiver: HTTP on loopback, a thread for each delivery, bounded in size and time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

HOST: Final = "127.0.0.1"
LARGEST: Final = 1024 * 1024
"""Bytes of a body; a larger one is a 413."""

_PATIENCE: Final = 10.0
"""Seconds a sender may pause."""

LISTENER: Final = "X-Sandbox-Listener"
"""In an answer: the delivery was only looked at. The sandbox's Advisor then expects nobody to act on it."""

DELIVERY: Final = "x-sandbox-delivery"
"""The sandbox's own name of a delivery, for `payments webhooks resend`."""

_HINT: Final = b"Webhooks arrive here, by POST.\n"

Take = Callable[[bytes, Mapping[str, str]], int]
"""Body and headers (names in small letters) of a delivery → the status to answer."""


class Receiver(ThreadingHTTPServer):
    """Gives each POST to `take`; OSError when `port` is taken. 0 means a free one.

    With `only_listens` nothing acts on what arrives, and each answer to a delivery says so.
    """

    daemon_threads = True

    def __init__(self, port: int, take: Take, *, only_listens: bool = False) -> None:
        self.take = take
        self.marks: Mapping[str, str] = {LISTENER: "1"} if only_listens else {}
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
            status = self.server.take(self.rfile.read(int(length)), headers)
            self._answer(status, self.server.marks)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Instead of the library's page: in a word what is meant to come here; 405 for other methods."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._answer(HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": "POST"}, _HINT)
        else:
            self._answer(code)

    def _answer(self, status: int, headers: Mapping[str, str] | None = None, body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if body:
            self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        if body and self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what came is told by whoever takes it."""
