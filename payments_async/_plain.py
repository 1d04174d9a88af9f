"""Requests by aiohttp's public interface: works with any aiohttp, and through a proxy. Slower than `_lean`.

Marking `flight.sent`: aiohttp hands a request the connection it is to be written to, and the request marks
its flight then, before anything else. The mark is never late; it may be early by a few instructions, in which
case an attempt that sent nothing is reported as one in doubt. An aiohttp that hands over something else may
not call the request at all: with one like that every flight is marked before aiohttp sees it.
"""

from __future__ import annotations

import inspect
from asyncio import BaseTransport, selector_events
from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache
from operator import methodcaller
from typing import Any, Final

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
)
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.typedefs import LooseHeaders
from multidict import CIMultiDict, CIMultiDictProxy, istr
from yarl import URL

from payments_async._inflate import inflate
from payments_async._wire import Answer, Flight, TransportFailure

_AUTOMATIC: Final = ("Accept", "Accept-Encoding", "User-Agent")
"""Headers that aiohttp adds by itself where they are missing, besides the type of a body."""

BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods for which no body is said by saying nothing."""

_CONTENT_ENCODING: Final = istr("Content-Encoding")
_CONTENT_LENGTH: Final = istr("Content-Length")
_HOST: Final = istr("Host")
_RECEIVE: Final = 64 * 1024
"""asyncio allocates a read's buffer at full size; its 256 KiB cost each answer a system call for memory."""

_STOCK: Final = getattr(selector_events, "_SelectorSocketTransport", None)
_TO_BE_SENT: Final[ContextVar[list[Flight]]] = ContextVar("_TO_BE_SENT")
"""The running task's flight, until it is sent: how a request, which aiohttp makes, learns whose it is."""


class Plain:
    """Opens sessions and flies over them, optionally through an HTTP proxy (`proxy` is its address)."""

    def __init__(self, proxy: str | None) -> None:
        self._proxy = None if proxy is None else URL(proxy)

    def session(self, connector: TCPConnector, timeout: ClientTimeout) -> ClientSession:
        """A session of the running loop, which owns the connector.

        It adds nothing of its own: no cookies, headers, decompression or environment.
        """
        return ClientSession(
            connector=connector,
            timeout=timeout,
            request_class=PlainRequest,
            response_class=AbortingResponse,
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            raise_for_status=False,
            trust_env=False,
        )

    async def exchange(self, session: ClientSession, url: URL, flight: Flight, limit: int) -> Answer:
        """Send the flight and read its answer of at most `limit` bytes."""
        if is_replaced() or not _MARKED:
            flight.sent = True  # whoever answers in aiohttp's place does not say when
        headers = flight.headers
        token = _TO_BE_SENT.set([flight])
        try:
            response = await session.request(
                flight.method,
                url,
                data=flight.body,
                headers=CIMultiDict(zip(_stored(tuple(headers)), headers.values(), strict=True)),
                skip_auto_headers=_unwanted(
                    tuple(headers), flight.body is None and flight.method in BODILESS
                ),
                allow_redirects=False,
                proxy=self._proxy,
            )
        except ClientConnectorError:
            flight.sent = False
            raise
        finally:
            _TO_BE_SENT.reset(token)
        try:
            return await read_answer(response.status, response.headers, response.content, limit)
        except BaseException:
            response.close()
            raise


@lru_cache(maxsize=64)
def _stored(names: tuple[str, ...]) -> tuple[istr, ...]:
    """The names as aiohttp keeps them, without making each anew for each request."""
    return tuple(map(istr, names))


@lru_cache(maxsize=64)
def _unwanted(names: tuple[str, ...], bodiless: bool) -> tuple[str, ...] | None:
    """What aiohttp is kept from adding: what goes out is what the flight says. Asking for it takes time."""
    present = {name.lower() for name in names}
    automatic = _AUTOMATIC if bodiless else (*_AUTOMATIC, "Content-Type")
    missing = tuple(name for name in automatic if name.lower() not in present)
    return missing or None


class PlainRequest(ClientRequest):
    """aiohttp's request, which looks at its connection before using it, and is written once."""

    def __init__(self, method: str, url: URL, **options: Any) -> None:
        """aiohttp repeats a GET whose pooled connection was dead, out of our sight. Not with us."""
        if not _TO_BE_SENT.get():
            raise ClientConnectionResetError("aiohttp would have sent it again")
        super().__init__(method, url, **options)

    def update_headers(self, headers: LooseHeaders | None) -> None:
        """Host first, then what the session got, which is the flight's."""
        self.headers = CIMultiDict(((_HOST, self.url.host_port_subcomponent or ""),))
        self.headers.extend(headers or ())

    async def send(self, conn: Connection) -> ClientResponse:
        """Mark the flight and write the request; called by the session when it has a connection."""
        _TO_BE_SENT.get().pop().sent = True
        check_fresh(conn.protocol)
        receive_less(conn.transport)
        return await super().send(conn)


class AbortingResponse(ClientResponse):
    """aiohttp's response, which breaks its connection off when it ends before its time."""

    def close(self) -> None:
        """End the attempt; not called when an answer was read to its end."""
        if self.connection is not None:
            abort(self.connection)
        super().close()


async def read_answer(
    status: int,
    headers: CIMultiDictProxy[str],
    content: StreamReader,
    limit: int,
    at_hand: Callable[[StreamReader], bytes] = methodcaller("read_nowait"),
) -> Answer:
    """Read and decompress a body of at most `limit` bytes; `at_hand` gives one that is there as a whole.

    Raises:
        TransportFailure: `too_large`, or `protocol` for an answer that is not one.
    """
    if status == 101:
        raise TransportFailure("protocol", "the server wants to switch protocols")
    declared = headers.get(_CONTENT_LENGTH)
    if declared is not None and int(declared) > limit:
        raise TransportFailure("too_large", "the answer is declared longer than the limit")
    if content.is_eof():  # it came with its head, as most do
        body = _within(at_hand(content), limit)
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


def receive_less(transport: BaseTransport | None) -> None:
    """Have the stock loop read this connection into a smaller buffer."""
    if type(transport) is _STOCK:
        transport.max_size = _RECEIVE  # type: ignore[union-attr] # the stock transport's own, undeclared


def is_replaced() -> bool:
    """Whether something stands in for aiohttp's client, as aioresponses and recorders of traffic do."""
    return ClientSession._request is not _REQUEST


def _source(function: object) -> str | None:
    return getattr(getattr(function, "__code__", None), "co_filename", None)


_REQUEST: Final = (
    ClientSession._request if _source(ClientSession._request) == _source(ClientSession.close) else None
)
"""aiohttp's own, or None when this module was first imported while something stood in for it."""

_MARKED: Final = list(inspect.signature(ClientRequest.send).parameters) == ["self", "conn"]
"""Whether this aiohttp hands its requests the connection, as far as can be seen."""
