"""A transport that plays a script: what the service would have said, and how the line behaved."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from multidict import CIMultiDict, CIMultiDictProxy

from payments_async._http.types import Answer, Flight, TransportFailure

Step = Answer | TransportFailure | BaseException | Callable[[Flight], Answer]


def answer(status: int = 200, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer; a body that is not bytes is written as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status, CIMultiDictProxy(CIMultiDict(headers or {})), raw)


def lost(kind: Any = "reset") -> Callable[[Flight], Answer]:
    """The request goes out and no answer comes back."""

    def step(flight: Flight) -> Answer:
        flight.sent = True
        raise TransportFailure(kind, "scripted")

    return step


def unsent(kind: Any = "connect") -> TransportFailure:
    """The request never leaves."""
    return TransportFailure(kind, "scripted")


class ScriptedTransport:
    """Gives the script's steps in order, the last one again and again. `flights` keeps what was sent."""

    def __init__(self, *script: Step) -> None:
        self._script = list(script)
        self.flights: list[Flight] = []
        self.closed = False

    async def send(self, flight: Flight) -> Answer:
        self.flights.append(flight)
        await asyncio.sleep(0)
        step = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if isinstance(step, BaseException):
            raise step
        flight.sent = True
        return step if isinstance(step, Answer) else step(flight)

    async def aclose(self) -> None:
        self.closed = True

    @property
    def bodies(self) -> list[Any]:
        """The JSON of every body sent."""
        return [json.loads(flight.body) for flight in self.flights if flight.body is not None]
