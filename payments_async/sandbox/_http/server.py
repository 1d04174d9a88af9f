"""The sandbox over HTTP: its answers and the faults of its line, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address

from aiohttp import web

from ..._loopback import HOST, listen
from ..._loopback.access import Access
from ..._loopback.server import ServerThread
from .._common.values import Answer, Cut, Hang, Request, Reset, Slow
from .._webhooks.sender import WebhookSender

_LINGER_ZERO = struct.pack("ii", 1, 0)  # makes a close send RST instead of FIN


def check_port(port: object) -> None:
    """Raise TypeError or ValueError for anything but a port."""
    if port is not None and (not isinstance(port, int) or isinstance(port, bool)):
        raise TypeError(f"port must be a whole number, not {type(port).__name__}")
    if port is not None and not 0 <= port <= 65_535:
        raise ValueError("port must be 0 to 65535")


def check_bind(bind: str | None, *, shared: bool) -> None:
    """Raise ValueError for anything but an IPv4 address that other machines can reach."""
    if bind is None:
        return
    try:
        is_usable = not IPv4Address(str(bind)).is_loopback
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ValueError("bind must be an IPv4 address that other machines reach, or 0.0.0.0 for all of them")
    if shared:
        raise ValueError("bind lets in whoever has the key or the token; shared would let in everybody")


class Server:
    """Serves `answer` over HTTP from `start` to `stop`; `sleep` is what `slow` faults wait on.

    `access` says who may reach it. `sender` sends webhooks meanwhile. It listens on `bind`, and `host` is the
    address by which this machine reaches it.
    """

    def __init__(
        self,
        answer: Callable[[Request], Answer],
        sleep: Callable[[float], Awaitable[None]],
        port: int | None,
        sender: WebhookSender,
        access: Access,
        bind: str | None = None,
    ) -> None:
        self._answer = answer
        self._sleep = sleep
        self._sender = sender
        listener = listen(port, bind or HOST)
        self.port: int = listener.getsockname()[1]
        self.host: str = HOST if bind in (None, "0.0.0.0") else bind  # noqa: S104 - compared, not listened on
        sender.own = (bind or HOST, self.port)
        self._thread = ServerThread(listener, access, self._handle, f"sandbox-{self.port}", sender.run)

    def start(self) -> None:
        """Serve; returns once requests are answered, or raises what prevented it."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving, cutting off the requests under way; returns once the thread has ended."""
        self._thread.stop()

    async def _handle(self, line: web.BaseRequest, request: Request) -> web.StreamResponse:
        answer = self._answer(request)
        try:
            if answer.awaits:
                await self._sender.tried(answer.awaits)
            if answer.fault is not None:
                return await self._act(line, answer)
            return web.Response(status=answer.status, headers=answer.headers, body=answer.body)
        finally:
            answer.on_end()

    async def _act(self, line: web.BaseRequest, answer: Answer) -> web.StreamResponse:
        """Simulate the network fault of an answer: late, never, cut, closed or reset."""
        response = web.Response(status=answer.status or 200, headers=answer.headers, body=answer.body)
        if isinstance(answer.fault, Slow):
            await self._sleep(answer.fault.seconds)
            return response
        if isinstance(answer.fault, Hang):
            await asyncio.get_running_loop().create_future()
        if isinstance(answer.fault, Cut):
            return await _cut(line, answer, answer.fault.size)
        _close(line, reset=isinstance(answer.fault, Reset))
        return response


async def _cut(line: web.BaseRequest, answer: Answer, size: int) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    response.content_length = len(answer.body)
    await response.prepare(line)
    await response.write(answer.body[:size])
    _close(line, reset=False)
    return response


def _close(line: web.BaseRequest, *, reset: bool) -> None:
    transport = line.transport
    if transport is None:  # the caller has left already
        return
    if reset:
        end = transport.get_extra_info("socket")
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        transport.abort()
    else:
        transport.close()
