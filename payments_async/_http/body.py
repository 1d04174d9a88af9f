"""Reads and decompresses an answer's body as it arrives, up to a limit.

The limit holds for the decompressed size too, so a small body that inflates without end costs little memory.
"""

from __future__ import annotations

import zlib
from typing import Final

from aiohttp import StreamReader
from multidict import CIMultiDictProxy, istr

from .types import HTTPResponse, TransportError

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
