"""HTTP on a socket that only this machine reaches: aiohttp's server, with the rules of `access`.

Either on the running event loop, or in a daemon thread with a loop of its own, so that blocking callers need
no asyncio and an async caller's loop may come and go.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from . import GUARDS, Reply, Request
from .access import Access, AccessRefused
from .peers import uid_of

_GRACE: Final = 0.01
"""Seconds for requests under way at the end; not 0, which aiohttp reads as for ever."""
_NO_HTTP: Final = (HttpProcessingError, web.RequestPayloadError)
"""Errors of aiohttp for a head or a body that cannot be read."""
_REFUSED: Final = {"Content-Type": "application/json", **GUARDS}

Handler = Callable[[web.BaseRequest, Request], Awaitable[web.StreamResponse]]
"""Answers an admitted request; the first argument is its connection, for faults of the line."""


def _is_own_fault(record: logging.LogRecord) -> bool:
    """True if an error is our own: an invalid HTTP request is the caller's, and a 400 is enough."""
    return not (record.exc_info and isinstance(record.exc_info[1], _NO_HTTP))


_log = logging.getLogger(__name__)
_log.addFilter(_is_own_fault)


class _Server(web.Server):
    """aiohttp's server, which asks once a connection whose it is."""

    def __init__(self, access: Access, handler: Handler) -> None:
        # handler_cancellation: what waits for its caller ends when the caller leaves
        super().__init__(self._handle, access_log=None, handler_cancellation=True, logger=_log)
        self._access = access
        self._handler = handler
        self._uids: dict[object, int | None] = {}

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._uids[handler] = uid_of(transport.get_extra_info("socket"))

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._uids.pop(handler, None)

    async def _handle(self, line: web.BaseRequest) -> web.StreamResponse:
        path, _, query = line.raw_path.partition("?")
        headers = {name.lower(): value for name, value in line.headers.items()}
        try:
            root, is_trusted = self._access.admit(self._uids.get(line.protocol), line.method, path, headers)
            body = await line.read()
        except AccessRefused as refused:
            text = json.dumps({"message": refused.message}).encode()
            return web.Response(status=refused.status, headers={**_REFUSED, **refused.headers}, body=text)
        except _NO_HTTP:
            return _unreadable()
        path = path.removeprefix(root)
        return await self._handler(
            line, Request(line.method, path, query, headers, body, line.remote or "", root, is_trusted)
        )


def _unreadable() -> web.Response:
    response = web.Response(status=400, text="The body cannot be read.")
    response.force_close()
    return response


async def serve(listener: socket.socket, access: Access, handler: Handler) -> Callable[[], Awaitable[None]]:
    """Answer the requests to a listening socket on the running loop. Returns what ends that."""
    runner = web.ServerRunner(_Server(access, handler), shutdown_timeout=_GRACE)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    return runner.cleanup


def answered_by(answer: Callable[[Request], Awaitable[Reply]]) -> Handler:
    """A handler that sends what `answer` gives."""

    async def handle(line: web.BaseRequest, request: Request) -> web.StreamResponse:
        reply = await answer(request)
        return web.Response(status=reply.status, headers=reply.headers, body=reply.body)

    return handle


class ServerThread:
    """Serves in a daemon thread of its own from `start` to `stop`; `beside` runs on its loop meanwhile."""

    def __init__(
        self,
        listener: socket.socket,
        access: Access,
        handler: Handler,
        name: str,
        beside: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self._listener = listener
        self._access = access
        self._handler = handler
        self._beside = beside
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
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
        try:
            end = await serve(self._listener, self._access, self._handler)
        except Exception as failure:  # for `start` to raise
            self._listener.close()
            self._ready.set_exception(failure)
            return
        beside = [] if self._beside is None else [asyncio.ensure_future(self._beside())]
        self._ready.set_result(None)
        await self._stopping.wait()
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        await end()
