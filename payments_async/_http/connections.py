"""Checks, sets up, reads from, aborts and keeps aiohttp's connections, for `direct` and `session`.

A pooled connection is checked before use: aiohttp takes bytes that arrived on an idle connection for the next
answer. When an attempt ends early, its connection is aborted, not closed: closing under TLS waits for the
peer, half a minute if it is silent, and would still send the cancelled request.

Idle connections to one origin skip aiohttp's pool; the last one used is the next one used.

An answer's body is read and decompressed as it arrives, up to a limit. The limit holds for the decompressed
size too, so a small body that inflates without end costs little memory.
"""

from __future__ import annotations

import zlib
from asyncio import BaseTransport, selector_events
from typing import Final

from aiohttp import ClientConnectionResetError, StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from multidict import CIMultiDictProxy, istr
from yarl import URL

from .._runtime import Runtime, Timer
from .types import HTTPResponse, TransportError

_RECEIVE: Final = 64 * 1024
"""Bytes of a read buffer. asyncio's 256 KiB, allocated for each read, cost each answer a system call."""

_STOCK: Final = getattr(selector_events, "_SelectorSocketTransport", None)


def is_fresh(protocol: ResponseHandler | None) -> bool:
    """Return whether a connection is open and no bytes arrived on it while it was idle.

    aiohttp would take bytes that came in meanwhile (such as a server's last words before it closes) for the
    answer to the next request.
    """
    return protocol is not None and protocol.is_connected() and not protocol.should_close


def check_fresh(protocol: ResponseHandler | None) -> ResponseHandler:
    """Raise for a connection that is not fresh."""
    if protocol is None or not is_fresh(protocol):
        raise ClientConnectionResetError("the pooled connection was no longer usable")
    return protocol


def abort(connection: Connection) -> None:
    """Abort a connection.

    Closing under TLS would wait for the peer's closing message, half a minute if the peer is silent; and
    bytes still in our buffers would be sent although the attempt was given up.
    """
    transport = connection.transport
    if transport is not None:
        transport.abort()


def end(connection: Connection) -> None:
    """Abort a connection, and take it from aiohttp's."""
    abort(connection)  # no TLS closing message to a peer that may be silent
    connection.close()


def receive_less(transport: BaseTransport | None) -> None:
    """Make asyncio's own event loop read this connection into a smaller buffer."""
    if type(transport) is _STOCK:
        transport.max_size = _RECEIVE  # type: ignore[union-attr] # the stock transport's own, undeclared


REST: Final = 5.0  # seconds after which all idle connections return to the pool

LONGEST: Final = 15.0
"""Seconds that a connection may stay idle, here and in the pool: aiohttp's own figure."""


class IdleConnections:
    """The idle connections of one event loop, all to one origin. The last one used is the next one used."""

    __slots__ = ("_closed", "_monotonic", "_ready", "_runtime", "_timer", "_url")

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._monotonic = runtime, runtime.monotonic
        self._ready: list[tuple[Connection, ResponseHandler, float]] = []
        self._timer: Timer | None = None
        self._url: URL | None = None
        self._closed = False

    def take(self, url: URL) -> tuple[Connection, ResponseHandler] | None:
        """Take a usable connection; None when there is none. Unusable ones on the way are aborted."""
        if url is not self._url:
            if self._url is not None and self._url.origin() != url.origin():
                self.give_back()
            self._url = url
        ready = self._ready
        while ready:
            connection, protocol, since = ready.pop()
            if is_fresh(protocol) and self._monotonic() - since < LONGEST:
                return connection, protocol
            end(connection)
        return None

    def keep(self, connection: Connection, protocol: ResponseHandler) -> None:
        """Keep a connection whose answer was read to its end, with no bytes after it."""
        if self._closed:
            connection.release()
            return
        self._ready.append((connection, protocol, self._monotonic()))
        if self._timer is None:
            self._timer = self._runtime.call_later(REST, self._rest)

    def give_back(self) -> None:
        """Return all connections to the pool; no effect when the pool is closed."""
        while self._ready:
            self._ready.pop()[0].release()

    def close(self) -> None:
        """Return all connections and keep none from now on. Call on the loop itself."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.give_back()

    def _rest(self) -> None:
        self._timer = None
        self.give_back()


# Answers

_SLICE: Final = 16 * 1024
"""Compressed bytes passed to zlib at a time: bounds the tail that zlib returns unread."""
_BURST: Final = 64 * 1024
"""Decompressed bytes taken at a time: bounds how far past the limit one step can go."""

_GZIP_WINDOW: Final = zlib.MAX_WBITS | 16
_ZLIB_METHOD: Final = 8
"""Low half of the first byte of a zlib stream; a bare deflate stream starts otherwise."""


def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """Decompress a body with a `Content-Encoding` of gzip or deflate, to at most `limit` bytes.

    `encoding` is the whole header value; several encodings, or nested ones, are refused, because the client
    does not ask for them. An empty body stays empty (204).

    Raises:
        TransportError: `too_large` past `limit`; `protocol` for an unknown encoding or a damaged stream.
    """
    name = encoding.strip().lower()
    if name == "identity" or not body:
        return body
    window = _window(name, body[0])
    if window is None:
        raise TransportError("protocol", "the answer has a content encoding that was not asked for")
    try:
        whole = _inflated(body, window, limit)
    except zlib.error:
        whole = None
    if whole is None:
        raise TransportError("protocol", "the compressed answer is damaged")
    return whole


def _window(name: str, first: int) -> int | None:
    """The window of an encoding; servers send `deflate` both with and without its zlib wrapper."""
    if name in ("gzip", "x-gzip"):
        return _GZIP_WINDOW
    if name == "deflate":
        return zlib.MAX_WBITS if first & 0x0F == _ZLIB_METHOD else -zlib.MAX_WBITS
    return None


def _inflated(body: bytes, window: int, limit: int) -> bytes | None:
    """Decompress in pieces; None unless the stream ends where the body does."""
    decoder, pieces = zlib.decompressobj(window), list[bytes]()
    read, room = 0, limit
    while not decoder.eof:
        data = decoder.unconsumed_tail
        if not data:
            data, read = body[read : read + _SLICE], read + _SLICE
        piece = decoder.decompress(data, _BURST)
        if not (data or piece or decoder.eof):  # it was cut short
            return None
        room -= len(piece)
        if room < 0:
            raise TransportError("too_large", "the answer inflates to more than the limit")
        pieces.append(piece)
    return None if decoder.unused_data or read < len(body) else b"".join(pieces)


_CONTENT_ENCODING: Final = istr("Content-Encoding")
_CONTENT_LENGTH: Final = istr("Content-Length")


async def read_answer(
    status: int, headers: CIMultiDictProxy[str], content: StreamReader, limit: int
) -> HTTPResponse:
    """Read and decompress a body of at most `limit` bytes.

    Raises:
        TransportError: `too_large`, or `protocol` for a malformed answer.
    """
    if status == 101:
        raise TransportError("protocol", "the server wants to switch protocols")
    declared = headers.get(_CONTENT_LENGTH)
    if declared is not None and int(declared) > limit:
        raise TransportError("too_large", "the answer is declared longer than the limit")
    body = content.read_nowait() if content.is_eof() else await _read(content, limit)
    return whole_answer(status, headers, body, limit)


def whole_answer(status: int, headers: CIMultiDictProxy[str], body: bytes, limit: int) -> HTTPResponse:
    """Make the answer of a body that has arrived. Raises as `read_answer`."""
    _within(body, limit)
    if _CONTENT_ENCODING in headers:
        body = inflate(body, ", ".join(headers.getall(_CONTENT_ENCODING)), limit)
    return HTTPResponse(status, headers, body)


async def _read(content: StreamReader, limit: int) -> bytes:
    """Read the whole body as it arrives. Most come in one piece, which is not copied."""
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
        raise TransportError("too_large", "the answer is longer than the limit")
    return piece
