"""Reads and decompresses an answer's body as it arrives, up to a limit.

The limit holds for the decompressed size too, so a small body that inflates without end costs little memory.
"""

from __future__ import annotations

import zlib
from typing import Final, Protocol

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


class _Decoder(Protocol):
    """The part of zlib's decompression object used here (its class has no importable name)."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    @property
    def unconsumed_tail(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """Decompress a body with a `Content-Encoding` of gzip or deflate, to at most `limit` bytes.

    `encoding` is the whole header value; several encodings, or nested ones, are refused, because the client
    does not ask for them. An empty body stays empty (204, HEAD).

    Raises:
        TransportError: `too_large` past `limit`; `protocol` for an unknown encoding or a damaged stream.
    """
    name = encoding.strip().lower()
    if name == "identity" or not body:
        return body
    decoder = _decoder(name, body[0])
    if decoder is None:
        raise TransportError("protocol", "the answer has a content encoding that was not asked for")
    try:
        pieces = _run(decoder, body, limit)
    except zlib.error:
        pieces = None
    if pieces is None or not decoder.eof or decoder.unused_data:
        raise TransportError("protocol", "the compressed answer is damaged")
    return b"".join(pieces)


def _decoder(name: str, first: int) -> _Decoder | None:
    """Make a decoder for the encoding; servers send `deflate` both with and without its zlib wrapper."""
    if name in ("gzip", "x-gzip"):
        return zlib.decompressobj(_GZIP_WINDOW)
    if name == "deflate":
        return zlib.decompressobj(zlib.MAX_WBITS if first & 0x0F == _ZLIB_METHOD else -zlib.MAX_WBITS)
    return None


def _run(decoder: _Decoder, body: bytes, limit: int) -> list[bytes] | None:
    """Decompress in pieces, up to one byte past `limit`; None when bytes follow the end of the stream."""
    pieces: list[bytes] = []
    room = limit
    for start in range(0, len(body), _SLICE):
        if decoder.eof:
            return None
        data = body[start : start + _SLICE]
        full = True
        while full and not decoder.eof:
            piece = decoder.decompress(data, _BURST)
            data = decoder.unconsumed_tail
            room -= len(piece)
            if room < 0:
                raise TransportError("too_large", "the answer inflates to more than the limit")
            pieces.append(piece)
            full = len(piece) == _BURST  # zlib may hold more output even when it has read all input
    return pieces


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
