"""The sandbox over HTTP: aiohttp on a loopback port, in a daemon thread with an event loop of its own.

Its own thread, so that blocking callers need no asyncio and an async caller's loop may come and go.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from ..._loopback import HOST, listen
from ..common.values import Answer, Cut, Hang, Request, Reset, Slow, Stream
from ..webhooks.sender import WebhookSender

_GRACE = 0.01
"""Seconds for requests under way when the server stops; not 0, which aiohttp reads as for ever."""

_LINGER_ZERO = struct.pack("ii", 1, 0)
"""Makes a close send RST instead of FIN."""

_NO_HTTP = (HttpProcessingError, web.RequestPayloadError)
"""Errors of aiohttp for a head or a body that cannot be read."""


def _is_own_fault(record: logging.LogRecord) -> bool:
    """True if an error is our own: an invalid HTTP request is the caller's, and a 400 is enough."""
    return not (record.exc_info and isinstance(record.exc_info[1], _NO_HTTP))


_log = logging.getLogger(__name__)
_log.addFilter(_is_own_fault)


def check_port(port: object) -> None:
    """Raise TypeError or ValueError for anything but a port."""
    if port is not None and (not isinstance(port, int) or isinstance(port, bool)):
        raise TypeError(f"port must be a whole number, not {type(port).__name__}")
    if port is not None and not 0 <= port <= 65_535:
        raise ValueError("port must be 0 to 65535")


class Server:
    """Serves `answer` over HTTP from `start` to `stop`; `sleep` is what `slow` faults wait on.

    `sender` sends webhooks meanwhile.
    """

    def __init__(
        self,
        answer: Callable[[Request], Answer | Stream],
        sleep: Callable[[float], Awaitable[None]],
        port: int | None,
        sender: WebhookSender,
    ) -> None:
        self._answer = answer
        self._sleep = sleep
        self._sender = sender
        self._socket = listen(port)
        self.port: int = self._socket.getsockname()[1]
        sender.own = (HOST, self.port)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=f"sandbox-{self.port}", daemon=True)
        self._ready: Future[None] = Future()

    def start(self) -> None:
        """Serve; returns once requests are answered, or raises what prevented it."""
        self._thread.start()
        self._ready.result()

    def stop(self) -> None:
        """Stop serving, cutting off the requests under way; returns once the thread has ended."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        # handler_cancellation: a hung request ends when its caller leaves
        server = web.Server(self._handle, access_log=None, handler_cancellation=True, logger=_log)
        runner = web.ServerRunner(server, shutdown_timeout=_GRACE)
        try:
            await runner.setup()
            await web.SockSite(runner, self._socket).start()
        except Exception as failure:  # for `start` to raise
            self._socket.close()
            self._ready.set_exception(failure)
            return
        sending = asyncio.ensure_future(self._sender.run())
        self._ready.set_result(None)
        await self._stopping.wait()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path, _, query = request.raw_path.partition("?")
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            body = await request.read()
        except _NO_HTTP:
            return _unreadable()
        answer = self._answer(Request(request.method, path, query, headers, body, request.remote or ""))
        if isinstance(answer, Stream):
            return await _stream(request, answer)
        try:
            if answer.awaits:
                await self._sender.tried(answer.awaits)
            if answer.fault is not None:
                return await self._act(request, answer)
            return web.Response(status=answer.status, headers=answer.headers, body=answer.body)
        finally:
            answer.on_end()

    async def _act(self, request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
        """Simulate the network fault of an answer: late, never, cut, closed or reset."""
        response = web.Response(status=answer.status or 200, headers=answer.headers, body=answer.body)
        if isinstance(answer.fault, Slow):
            await self._sleep(answer.fault.seconds)
            return response
        if isinstance(answer.fault, Hang):
            await asyncio.get_running_loop().create_future()
        if isinstance(answer.fault, Cut):
            return await _cut(request, answer, answer.fault.size)
        _close(request, reset=isinstance(answer.fault, Reset))
        return response


def _unreadable() -> web.Response:
    response = web.Response(status=400, text="The body cannot be read.")
    response.force_close()
    return response


async def _stream(request: web.BaseRequest, answer: Stream) -> web.StreamResponse:
    response = web.StreamResponse(headers=answer.headers)
    with suppress(ConnectionResetError):  # a reader who leaves at once is no error
        await response.prepare(request)
        async for chunk in answer.chunks:  # most are endless: until the caller leaves or the server stops
            await response.write(chunk)
    return response


async def _cut(request: web.BaseRequest, answer: Answer, size: int) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    response.content_length = len(answer.body)
    await response.prepare(request)
    await response.write(answer.body[:size])
    _close(request, reset=False)
    return response


def _close(request: web.BaseRequest, *, reset: bool) -> None:
    transport = request.transport
    if transport is None:  # the caller has left already
        return
    if reset:
        line = transport.get_extra_info("socket")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        transport.abort()
    else:
        transport.close()
