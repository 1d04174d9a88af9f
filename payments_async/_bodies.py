"""From the head of an answer to the whole of it, within a bound."""

from __future__ import annotations

from typing import Final

from aiohttp import StreamReader
from multidict import CIMultiDictProxy, istr

from payments_async._inflate import inflate
from payments_async._wire import Answer, TransportFailure

_CONTENT_ENCODING: Final = istr("Content-Encoding")
_CONTENT_LENGTH: Final = istr("Content-Length")


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
    body = await _read(content, limit)
    if _CONTENT_ENCODING in headers:
        body = inflate(body, ", ".join(headers.getall(_CONTENT_ENCODING)), limit)
    return Answer(status, headers, body)


async def _read(content: StreamReader, limit: int) -> bytes:
    """The whole body. Most come in one piece, which is then not copied."""
    pieces: list[bytes] = []
    room = limit
    while True:
        piece = await content.readany()
        room -= len(piece)
        if room < 0:
            raise TransportFailure("too_large", "the answer is longer than the limit")
        if content.at_eof():
            return b"".join([*pieces, piece]) if pieces else piece
        pieces.append(piece)
