"""An answer's body: read as it comes, never more than the limit, and decompressed."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Final

from aiohttp import StreamReader
from multidict import CIMultiDictProxy, istr

from payments_async._http.types import Answer, TransportFailure
from payments_async._inflate import inflate

_CONTENT_ENCODING: Final = istr("Content-Encoding")
_CONTENT_LENGTH: Final = istr("Content-Length")


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
