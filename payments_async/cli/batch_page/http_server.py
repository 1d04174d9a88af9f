"""The page over HTTP: aiohttp's server on the event loop that the batch is worked on."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from ...sandbox.common.values import Request, Stream
from .access import PageAccess
from .feed import BatchFeed
from .site import answer

_GRACE: Final = 0.01
"""Seconds for requests under way at the end; not 0, which aiohttp reads as for ever."""
_CALLERS_FAULTS: Final = (HttpProcessingError, web.RequestPayloadError)


def _is_own_fault(record: logging.LogRecord) -> bool:
    """True if an error is our own: an invalid HTTP request is the caller's, and a 400 is enough."""
    return not (record.exc_info and isinstance(record.exc_info[1], _CALLERS_FAULTS))


_log = logging.getLogger(__name__)
_log.addFilter(_is_own_fault)


async def serve(
    feed: BatchFeed, access: PageAccess, listener: socket.socket
) -> Callable[[], Awaitable[None]]:
    """Answer the visitors of a listening socket. Returns what ends that."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        path, _, query = request.raw_path.partition("?")
        headers = {name.lower(): value for name, value in request.headers.items()}
        answered = await answer(feed, access, Request(request.method, path, query, headers))
        if isinstance(answered, Stream):
            return await _stream(request, answered)
        return web.Response(status=answered.status, headers=answered.headers, body=answered.body)

    # handler_cancellation: a stream ends when its reader leaves
    server = web.Server(handle, access_log=None, handler_cancellation=True, logger=_log)
    runner = web.ServerRunner(server, shutdown_timeout=_GRACE)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    return runner.cleanup


async def _stream(request: web.BaseRequest, answered: Stream) -> web.StreamResponse:
    response = web.StreamResponse(headers=answered.headers)
    with suppress(ConnectionResetError):  # a reader who leaves at once is no error
        await response.prepare(request)
        async for chunk in answered.chunks:
            await response.write(chunk)
    return response
