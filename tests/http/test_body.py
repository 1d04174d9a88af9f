"""Decompression with a bound."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest

from tests.http.requests import AiohttpTransport, TransportError, get
from tests.support.rawserver import RawServer

TEXT = b'{"data": {"id": "po_1"}}' * 50
NOISE = random.Random(7).randbytes(300_000)
LIMIT = 4 * 1024 * 1024
PACKED = gzip.compress(TEXT, mtime=0)


def packed(data: bytes, wbits: int) -> bytes:
    """Compressed as gzip (31), or deflate with (15) or without (-15) its wrapper."""
    coder = zlib.compressobj(wbits=wbits)
    return coder.compress(data) + coder.flush()


async def read(server: RawServer, transport: AiohttpTransport, body: bytes, encoding: str) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n"
    server.scripts["/"] = [head.encode() + body]
    return (await transport.send(get(server.url("/")))).body


@pytest.mark.parametrize(
    "data", [TEXT, NOISE, b"a" * LIMIT, b""], ids=["text", "noise", "at the limit", "none"]
)
@pytest.mark.parametrize(
    ("encoding", "wbits"), [("gzip", 31), (" X-GZip ", 31), ("deflate", 15), ("deflate", -15)]
)
async def test_what_was_compressed_comes_back(
    encoding: str, wbits: int, data: bytes, server: RawServer, transport: AiohttpTransport
) -> None:
    assert await read(server, transport, packed(data, wbits), encoding) == data


async def test_identity_and_an_empty_body_pass_through(
    server: RawServer, transport: AiohttpTransport
) -> None:
    assert await read(server, transport, TEXT, "identity") == TEXT
    assert await read(server, transport, b"", "gzip") == b""


@pytest.mark.parametrize(
    ("encoding", "body", "kind"),
    [
        *((encoding, PACKED, "protocol") for encoding in ("br", "gzip, gzip", "gzip, identity", "", "zstd")),
        ("gzip", b"not compressed", "protocol"),
        ("gzip", PACKED[:-5], "protocol"),
        ("gzip", PACKED + b"more", "protocol"),
        ("gzip", PACKED + bytes(20_000), "protocol"),
        ("gzip", PACKED[:20] + b"\x00\xff" + PACKED[22:], "protocol"),
        *(
            (encoding, packed(b"a" * (LIMIT + 1), wbits), "too_large")
            for encoding, wbits in (("gzip", 31), ("deflate", 15), ("deflate", -15))
        ),
    ],
)
async def test_what_cannot_be_read_is_refused_without_a_chained_exception(
    encoding: str, body: bytes, kind: str, server: RawServer, transport: AiohttpTransport
) -> None:
    with pytest.raises(TransportError) as caught:
        await read(server, transport, body, encoding)
    assert caught.value.kind == kind
    assert caught.value.__context__ is None
