"""Requests by aiohttp's public interface: works with any aiohttp, and through a proxy. Slower than `_lean`.

Marking `flight.sent`: aiohttp announces that a connection was made or taken from the pool before it writes to
it, so the mark is set then. It is never late; it may be early by a few instructions, in which case an attempt
that sent nothing is reported as one in doubt.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

from aiohttp import (
    ClientConnectionResetError,
    ClientConnectorError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    StreamReader,
    TCPConnector,
    TraceConfig,
)
from aiohttp.client_middlewares import ClientHandlerType
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from multidict import CIMultiDictProxy, istr
from yarl import URL

from payments_async._inflate import inflate
from payments_async._wire import Answer, Flight, TransportFailure

_OURS: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp would add by itself: what goes out is what the flight says."""

_CONTENT_ENCODING: Final = istr("Content-Encoding")
_CONTENT_LENGTH: Final = istr("Content-Length")


class Plain:
    """Opens sessions and flies over them, optionally through an HTTP proxy (`proxy` is its address)."""

    def __init__(self, proxy: str | None) -> None:
        self._proxy = proxy
        self._trace = TraceConfig()
        self._trace.on_connection_create_end.append(_mark)
        self._trace.on_connection_reuseconn.append(_mark)

    def session(self, connector: TCPConnector, timeout: ClientTimeout) -> ClientSession:
        """A session of the running loop, which owns the connector.

        It adds nothing of its own: no cookies, headers, decompression or environment.
        """
        return ClientSession(
            connector=connector,
            timeout=timeout,
            request_class=PlainRequest,
            response_class=AbortingResponse,
            trace_configs=[self._trace],
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=_OURS,
            raise_for_status=False,
            trust_env=False,
        )

    async def exchange(self, session: ClientSession, url: URL, flight: Flight, limit: int) -> Answer:
        """Send the flight and read its answer of at most `limit` bytes."""
        if is_replaced():
            flight.sent = True  # whoever answers in aiohttp's place does not say when
        try:
            response = await session.request(
                flight.method,
                url,
                data=flight.body,
                headers=flight.headers,
                allow_redirects=False,
                proxy=self._proxy,
                trace_request_ctx=flight,
                middlewares=(_Once(),),
            )
        except ClientConnectorError:
            flight.sent = False
            raise
        try:
            return await read_answer(response.status, response.headers, response.content, limit)
        except BaseException:
            response.close()
            raise


class PlainRequest(ClientRequest):
    """aiohttp's request, which looks at its connection before using it."""

    async def send(self, conn: Connection) -> ClientResponse:
        """Write the request; called by the session when it has a connection."""
        check_fresh(conn.protocol)
        return await super().send(conn)


class AbortingResponse(ClientResponse):
    """aiohttp's response, which breaks its connection off when it ends before its time."""

    def close(self) -> None:
        """End the attempt; not called when an answer was read to its end."""
        if self.connection is not None:
            abort(self.connection)
        super().close()


class _Once:
    """Middleware of one attempt: aiohttp repeats a GET whose pooled connection was dead, out of our sight."""

    def __init__(self) -> None:
        self._used = False

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        if self._used:
            raise ClientConnectionResetError("aiohttp would have sent it again")
        self._used = True
        return await handler(request)


async def _mark(_session: ClientSession, context: SimpleNamespace, _params: object) -> None:
    flight: Flight = context.trace_request_ctx
    flight.sent = True


async def read_answer(
    status: int, headers: CIMultiDictProxy[str], content: StreamReader, limit: int
) -> Answer:
    """Read and decompress a body of at most `limit` bytes.

    Raises:
        TransportFailure: `too_large`, or `protocol` for an answer that is not one.
    """
    if status == 101:
        raise TransportFailure("protocol", "the server wants to switch protocols")
    declared = headers.get(_CONTENT_LENGTH)
    if declared is not None and int(declared) > limit:
        raise TransportFailure("too_large", "the answer is declared longer than the limit")
    if content.is_eof():  # it came with its head, as most do
        body = _within(content.read_nowait(), limit)
    else:
        body = await _read(content, limit)
    if _CONTENT_ENCODING in headers:
        body = inflate(body, ", ".join(headers.getall(_CONTENT_ENCODING)), limit)
    return Answer(status, headers, body)


async def _read(content: StreamReader, limit: int) -> bytes:
    """The whole body, as it comes. Most come in one piece, which is then not copied."""
    pieces: list[bytes] = []
    room = limit
    while True:
        piece = _within(await content.readany(), room)
        if content.at_eof():
            return b"".join([*pieces, piece]) if pieces else piece
        room -= len(piece)
        pieces.append(piece)


def _within(piece: bytes, room: int) -> bytes:
    if len(piece) > room:
        raise TransportFailure("too_large", "the answer is longer than the limit")
    return piece


def check_fresh(protocol: ResponseHandler | None) -> None:
    """Refuse a connection that is closing, or on which something arrived before anything was asked.

    aiohttp hands out an idle connection without looking at what has come in meanwhile (a server's farewell
    before it hangs up, say) and would take that for the answer to the next request.
    """
    if protocol is None or not protocol.is_connected() or protocol.should_close:
        raise ClientConnectionResetError("the pooled connection was no longer usable")


def abort(connection: Connection) -> None:
    """Break a connection off.

    Closing it under TLS would say farewell first and wait for the peer's, half a minute if the peer is
    silent; and what is still in our buffers would be sent although the attempt has been given up.
    """
    transport = connection.transport
    if transport is not None:
        transport.abort()


def is_replaced() -> bool:
    """Whether something stands in for aiohttp's client, as aioresponses and recorders of traffic do."""
    return ClientSession._request is not _REQUEST


def _source(function: object) -> str | None:
    return getattr(getattr(function, "__code__", None), "co_filename", None)


_REQUEST: Final = (
    ClientSession._request if _source(ClientSession._request) == _source(ClientSession.close) else None
)
"""aiohttp's own, or None when this module was first imported while something stood in for it."""
