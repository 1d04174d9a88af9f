"""`payments webhooks listen`: print and forward deliveries."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Final

import attrs

from ..._runtime import SYSTEM
from ...errors import ConfigurationError
from .._exit_codes import Exit, until_interrupted
from .._output import show_for
from .forward import ForwardAddress, read_address, send
from .payload import ShownDelivery, quoted, read_delivery
from .receiver import Receiver

DELIVERY: Final = "x-sandbox-delivery"
"""Header with the sandbox's name of a delivery, for `payments webhooks resend`."""

DEFAULT_PORT: Final = 7789

_NO_ANSWER: Final = 502
_NAME: Final = re.compile(r"wh_[0-9]{8,16}", re.ASCII)
"""The sandbox's names of deliveries. Any sender may send the header with any content."""

_FORWARDED: Final = ("content-type", "user-agent", "x-payment-event", "x-payment-id", DELIVERY)


def listen(port: int | None, forward: str | None, *, shared: bool, as_json: bool) -> Exit:
    """Receive until Ctrl-C or SIGTERM; ConfigurationError for an unusable `port` or `forward`."""
    address = None if forward is None else read_address(forward, "--forward")
    printer = DeliveryPrinter(address, as_json=as_json)
    wanted = DEFAULT_PORT if port is None else port
    try:
        receiver = Receiver(wanted, printer.handle, only_listens=address is None, shared=shared)
    except OSError as refused:
        reason = str(refused.strerror).partition(" (while")[0]  # Python adds the address
        problem = f"port {wanted} cannot be used: {reason}; choose another with --port"
        raise ConfigurationError(problem) from refused
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    try:
        with suppress(KeyboardInterrupt), receiver:
            printer.open(receiver.url)
            wait(receiver)
    finally:
        signal.signal(signal.SIGTERM, before)
    return Exit.DONE


def wait(receiver: Receiver) -> None:
    """Sleep until a signal raises KeyboardInterrupt."""
    until_interrupted()


class DeliveryPrinter:
    """Prints and forwards deliveries and prints the answers, one at a time, so that lines stay together."""

    def __init__(self, address: ForwardAddress | None, *, as_json: bool) -> None:
        self._show = show_for(as_json=as_json)
        self._address = address
        self._lock = threading.Lock()

    def open(self, url: str) -> None:
        """Show where to send deliveries."""
        self._show.heading("payments webhooks listen", "deliveries prove nothing: read the record first")
        onward = f"; deliveries go on to {self._address.place}" if self._address else ""
        self._show.step("Listening", f"pass {url} as webhook_url{onward}; Ctrl-C stops it", webhook_url=url)

    def handle(self, body: bytes, headers: Mapping[str, str]) -> int:
        """Take one delivery; returns the status to answer with."""
        delivery, name = read_delivery(body), headers.get(DELIVERY, "")
        if not _NAME.fullmatch(name):  # it is not from a sandbox
            name = ""
        if self._address is None:
            with self._lock:
                self._show_received(delivery, name)
            return 200
        started = SYSTEM.monotonic()
        status, problem = self._forward(self._address, body, headers)
        seconds = SYSTEM.monotonic() - started
        text = f"{self._address.place} answered {status} in {seconds * 1000:,.0f} ms"
        if problem:
            text = f"{problem}; `payments webhooks resend {name}` sends it again" if name else problem
        record, took = delivery.record, round(seconds, 3)
        with self._lock:
            self._show_received(delivery, name)
            self._show.step("Forwarded", text, good=not problem, record=record, status=status, seconds=took)
        return status

    def _show_received(self, delivery: ShownDelivery, name: str) -> None:
        claims = (delivery.event, delivery.record, delivery.status, delivery.reference)
        event, record, status, reference = map(quoted, claims)
        said = ", ".join(filter(None, (event, record, delivery.amount, status, reference, name)))
        text = f"{SYSTEM.now():%H:%M:%S} UTC {said}"
        self._show.step(
            "Received",
            text if delivery.is_object else f"{text}: its body is not a JSON object",
            good=delivery.is_object,
            delivery=name,
            **attrs.asdict(delivery, filter=lambda field, _: field.name != "is_object"),
        )

    def _forward(self, address: ForwardAddress, body: bytes, headers: Mapping[str, str]) -> tuple[int, str]:
        passed = {name: headers[name] for name in _FORWARDED if name in headers}
        try:
            status = send("POST", address, body, passed)[0]
        except OSError as failure:
            why = f"{address.place} did not answer: {failure.strerror or failure}"
            return _NO_ANSWER, f"{why}; start your application there, or correct --forward"
        words = f" {HTTPStatus(status).phrase}" if status in set(HTTPStatus) else ""
        return status, "" if 200 <= status < 300 else f"{address.place} answered {status}{words}"
