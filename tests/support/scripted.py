"""A transport that plays a script: what the service would have said, and how the line behaved."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, TypeVar

from multidict import CIMultiDict, CIMultiDictProxy

from payments_async._http.types import HTTPRequest, HTTPResponse, TransportError

M = TypeVar("M", HTTPRequest, HTTPResponse)
Step = HTTPResponse | TransportError | BaseException | Callable[[HTTPRequest], HTTPResponse]


def answer(status: int = 200, body: Any = None, headers: Mapping[str, str] | None = None) -> HTTPResponse:
    """An answer; a body that is not bytes is written as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HTTPResponse(status, CIMultiDictProxy(CIMultiDict(headers or {})), raw)


def altered(message: M, **changes: Any) -> M:
    other = copy(message)
    for name, value in changes.items():
        setattr(other, name, value)
    return other


def lost(kind: Any = "reset") -> Callable[[HTTPRequest], HTTPResponse]:
    """The request goes out and no answer comes back."""

    def step(request: HTTPRequest) -> HTTPResponse:
        request.sent = True
        raise TransportError(kind, "scripted")

    return step


def unsent(kind: Any = "connect") -> TransportError:
    return TransportError(kind, "scripted")


EMPTY_PAGE = answer(200, {"data": [], "pagination": {}})


class ScriptedTransport:
    """Gives the script's steps in order, the last one again and again. `requests` keeps what was sent."""

    def __init__(self, *script: Step) -> None:
        self._script = list(script)
        self.requests: list[HTTPRequest] = []
        self.closed = False

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        self.requests.append(request)
        await asyncio.sleep(0)
        step = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if isinstance(step, BaseException):
            raise step
        request.sent = True
        return step if isinstance(step, HTTPResponse) else step(request)

    def share(self) -> ScriptedTransport:
        return self

    async def aclose(self) -> None:
        self.closed = True

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.body) for request in self.requests if request.body is not None]


class SilentTransport:
    """A transport on which no answer ever comes. `asked` says that a request is under way."""

    def __init__(self, *, sends: bool = True) -> None:
        self.asked = asyncio.Event()
        self._sends = sends

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        request.sent = self._sends
        self.asked.set()
        raise await asyncio.get_running_loop().create_future()

    async def aclose(self) -> None:
        """Nothing is open."""
