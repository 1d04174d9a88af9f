"""`payments webhooks listen`: print what arrives, and pass it on.

The receiver: HTTP on loopback, a thread for each delivery, bounded in size and time.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from ...errors import ConfigurationError
from .._exit_codes import Exit
from .._output import Show, show_for
from .forward import ForwardAddress, post, read_place
from .payload import ShownDelivery, quoted, read_letter

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


USUAL_PORT: Final = 7789

_NO_ANSWER: Final = 502
_SHORT: Final = 40
"""Characters of an amount that are shown."""

_NAME: Final = re.compile(r"wh_[0-9]{8,16}", re.ASCII)
"""What a sandbox names its deliveries. Anybody may send the header, and anything in it."""

_PASSED_ON: Final = ("content-type", "user-agent", "x-payment-event", "x-payment-id", DELIVERY)


def listen(port: int | None, forward: str | None, *, as_json: bool) -> Exit:
    """Receive until Ctrl-C or SIGTERM; ConfigurationError for an unusable `port` or `forward`."""
    place = None if forward is None else read_place(forward, "--forward")
    desk = DeliveryPrinter(show_for(as_json=as_json), place)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    try:
        with suppress(KeyboardInterrupt), _opened(port, desk.take, only_listens=place is None) as receiver:
            desk.open(receiver.url, forward)
            serve(receiver)
    finally:
        signal.signal(signal.SIGTERM, before)
    return Exit.DONE


def serve(receiver: Receiver) -> None:
    """Receive until a signal raises KeyboardInterrupt."""
    receiver.serve_forever()


def _opened(port: int | None, take: Take, *, only_listens: bool) -> Receiver:
    try:
        return Receiver(USUAL_PORT if port is None else port, take, only_listens=only_listens)
    except OSError as refused:
        if port is not None:
            told = str(refused.strerror).partition(" (while")[0]  # Python adds the address
            wrong = f"port {port} cannot be had: {told}; choose another with --port"
            raise ConfigurationError(wrong) from refused
    return Receiver(0, take, only_listens=only_listens)


class DeliveryPrinter:
    """Tells each delivery, passes it on, tells the answer; one at a time, so that lines stay together."""

    def __init__(self, show: Show, place: ForwardAddress | None) -> None:
        self._show = show
        self._place = place
        self._lock = threading.Lock()

    def open(self, url: str, forward: str | None) -> None:
        """Tell where to send deliveries."""
        self._show.heading(
            "payments webhooks listen", "deliveries are unsigned: read the record before you act"
        )
        onward = f", and on to {self._place.host}" if self._place else ""
        self._show.step("Listening", f"pass {url} as webhook_url{onward}", webhook_url=url)

    def take(self, body: bytes, headers: Mapping[str, str]) -> int:
        """One delivery; gives the status to answer with."""
        letter = read_letter(body)
        status, told = (200, "") if self._place is None else self._pass_on(self._place, body, headers)
        with self._lock:
            self._tell(letter, _delivery_in(headers))
            if self._place is not None:
                good = 200 <= status < 300 and not told
                text = told or f"your application answered {status}"
                self._show.step("Forwarded", text, good=good, record=letter.record, status=status)
        return status

    def _tell(self, letter: ShownDelivery, delivery: str) -> None:
        words = [quoted(word) for word in (letter.event, letter.record, letter.status)]
        words.append(letter.amount[:_SHORT])
        words += [f"reference {quoted(letter.reference)}"] if letter.reference else []
        words += [delivery] if delivery else []
        text = "  ".join(words)
        self._show.step(
            "Received",
            "what is not a JSON object" if letter.body is None else text,
            good=letter.body is not None,
            event=letter.event,
            record=letter.record,
            status=letter.status,
            amount=letter.amount,
            reference=letter.reference,
            delivery=delivery,
            body=letter.body,
        )

    def _pass_on(self, place: ForwardAddress, body: bytes, headers: Mapping[str, str]) -> tuple[int, str]:
        passed = {name: headers[name] for name in _PASSED_ON if name in headers}
        try:
            return post(place, body, passed)[0], ""
        except OSError as failure:
            return _NO_ANSWER, f"your application did not answer: {failure.strerror or failure}"


def _delivery_in(headers: Mapping[str, str]) -> str:
    """The delivery's name, empty when no sandbox gave it one."""
    named = headers.get(DELIVERY, "")
    return named if _NAME.fullmatch(named) else ""
