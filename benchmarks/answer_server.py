"""The fastest server that fits: one fixed answer to every request, so that the client is what is measured.

On a core of its own it does not sleep while anybody is connected. On a virtual machine, waking a process on
another core costs the sender some 15 µs, a fifth of a call, more often the less his sends come in bunches.
Who calls a service across a network pays nothing of that kind.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, cast

from benchmarks.worker import SERVER_CORE, hold


class Requests(asyncio.Protocol):
    """Cuts what arrives into requests."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one without being a subclass

    def data_received(self, data: bytes) -> None:
        self._pending += data
        while (end := self._pending.find(b"\r\n\r\n")) >= 0:
            head = self._pending[:end]
            whole = end + 4 + _body_length(head)
            if len(self._pending) < whole:
                return
            body, self._pending = self._pending[end + 4 : whole], self._pending[whole:]
            self.asked(head, body)

    def asked(self, head: bytes, body: bytes) -> None:
        """A request is whole."""
        raise NotImplementedError


class _Answering(Requests):
    connected = 0

    def __init__(self, answer: bytes) -> None:
        super().__init__()
        self._answer = answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        _Answering.connected += 1

    def connection_lost(self, exc: Exception | None) -> None:
        _Answering.connected -= 1

    def asked(self, head: bytes, body: bytes) -> None:
        self.transport.write(self._answer)


def _body_length(head: bytes) -> int:
    _, found, rest = head.lower().partition(b"content-length: ")
    return int(rest.split(b"\r\n", 1)[0]) if found else 0


def _serve(listener: socket.socket, answer: bytes) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Answering(answer), sock=listener)
        loop.call_soon(stay_awake, loop)
        async with server:
            while os.getppid() == parent:  # noqa: ASYNC110 # a killed parent sets no event
                await asyncio.sleep(1.0)

    def stay_awake(loop: asyncio.AbstractEventLoop) -> None:
        if _Answering.connected:
            loop.call_soon(stay_awake, loop)
        else:
            loop.call_later(0.005, stay_awake, loop)

    parent = os.getppid()
    hold(SERVER_CORE)
    run(main())


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


def framed(body: bytes, status: str = "200 OK", headers: tuple[str, ...] = ()) -> bytes:
    """A JSON answer, with its head."""
    own = (f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}")
    return "\r\n".join((*own, *headers, "\r\n")).encode() + body


@contextmanager
def serving(serve: Callable[..., None], *arguments: object, backlog: int = 1024) -> Iterator[str]:
    """The base URL at which `serve(listener, *arguments)` answers, in a process of its own."""
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as listener:
        process = multiprocessing.get_context("fork").Process(
            target=serve, args=(listener, *arguments), daemon=True
        )
        process.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            process.terminate()
            process.join()


@contextmanager
def answering(body: bytes, status: str = "201 Created", headers: tuple[str, ...] = ()) -> Iterator[str]:
    """The base URL of a server that answers everything with `body`, on another core than clients."""
    with serving(_serve, framed(body, status, headers)) as url:
        yield url
