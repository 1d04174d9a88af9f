"""Requests by aiohttp's public interface: works with any aiohttp, and through a proxy. Slower than `_lean`.

Marking `flight.sent`: aiohttp announces that a connection was made or taken from the pool before it writes to
it, so the mark is set then. It is never late; it may be early by a few instructions, in which case an attempt
that sent nothing is reported as one in doubt.
"""

from __future__ import annotations

from collections.abc import Awaitable
from types import SimpleNamespace

from aiohttp import (
    ClientConnectionResetError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    TraceConfig,
)
from aiohttp.client_middlewares import ClientHandlerType
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from yarl import URL

from payments_async._wire import Flight

_OURS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp would add by itself: what goes out is what the flight says."""


def check_fresh(protocol: ResponseHandler | None) -> None:
    """Refuse a connection that is closing, or on which something arrived before anything was asked.

    aiohttp hands out an idle connection without looking at what has come in meanwhile (a server's farewell
    before it hangs up, say) and would take that for the answer to the next request.
    """
    if protocol is None or not protocol.is_connected() or protocol.should_close:
        raise ClientConnectionResetError("the pooled connection was no longer usable")


class AbortingResponse(ClientResponse):
    """aiohttp's response, which breaks its connection off when it ends before its time.

    Closing under TLS would say farewell first and wait for the peer's, half a minute if the peer is silent;
    and what is still in our buffers would be sent although the attempt has been given up.
    """

    def close(self) -> None:
        """End the attempt; not called when an answer was read to its end."""
        connection = self.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        super().close()


class PlainRequest(ClientRequest):
    """aiohttp's request, which looks at its connection before using it."""

    async def send(self, conn: Connection) -> ClientResponse:
        """Write the request; called by the session when it has a connection."""
        check_fresh(conn.protocol)
        return await super().send(conn)


class _Once:
    """Middleware of one attempt: aiohttp repeats a GET whose pooled connection was dead, out of our sight."""

    def __init__(self) -> None:
        self._used = False

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        if self._used:
            raise ClientConnectionResetError("aiohttp would have sent it again")
        self._used = True
        return await handler(request)


class Plain:
    """Opens sessions and requests, optionally through an HTTP proxy (`proxy` is its address)."""

    def __init__(self, proxy: str | None) -> None:
        self._proxy = proxy
        self._trace = TraceConfig()
        self._trace.on_connection_create_end.append(_mark)
        self._trace.on_connection_reuseconn.append(_mark)

    def session(self, connector: TCPConnector, timeout: ClientTimeout) -> ClientSession:
        """A session of the running loop; it owns the connector."""
        return new_session(connector, timeout, PlainRequest, [self._trace])

    def request(self, session: ClientSession, url: URL, flight: Flight) -> Awaitable[ClientResponse]:
        """Start the request; the response's body is not read yet."""
        return session.request(
            flight.method,
            url,
            data=flight.body,
            headers=flight.headers,
            allow_redirects=False,
            proxy=self._proxy,
            trace_request_ctx=flight,
            middlewares=(_Once(),),
        )


async def _mark(_session: ClientSession, context: SimpleNamespace, _params: object) -> None:
    flight: Flight = context.trace_request_ctx
    flight.sent = True


def new_session(
    connector: TCPConnector,
    timeout: ClientTimeout,
    request_class: type[ClientRequest],
    traces: list[TraceConfig] | None = None,
) -> ClientSession:
    """A session that adds nothing of its own: no cookies, headers, decompression or environment."""
    return ClientSession(
        connector=connector,
        timeout=timeout,
        request_class=request_class,
        response_class=AbortingResponse,
        trace_configs=traces,
        cookie_jar=DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=_OURS,
        raise_for_status=False,
        trust_env=False,
    )
