"""Decompression with a bound."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest

from payments_async._http.body import inflate
from payments_async._http.types import TransportError

TEXT = b'{"data": {"id": "po_1"}}' * 50
NOISE = random.Random(7).randbytes(300_000)
LIMIT = 1024 * 1024


def bare_deflate(data: bytes) -> bytes:
    coder = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return coder.compress(data) + coder.flush()


@pytest.mark.parametrize(
    "data", [TEXT, NOISE, b"a" * LIMIT, b""], ids=["text", "noise", "at the limit", "none"]
)
@pytest.mark.parametrize(
    ("encoding", "compress"),
    [
        ("gzip", gzip.compress),
        (" X-GZip ", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", bare_deflate),
    ],
)
def test_what_was_compressed_comes_back(encoding: str, compress: object, data: bytes) -> None:
    assert callable(compress)
    assert inflate(compress(data), encoding, LIMIT) == data


def test_identity_and_an_empty_body_pass_through() -> None:
    assert inflate(TEXT, "identity", 10) == TEXT
    assert inflate(b"", "gzip", 10) == b""


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "gzip, identity", "", "zstd"])
def test_an_encoding_that_was_not_asked_for_is_refused(encoding: str) -> None:
    with pytest.raises(TransportError) as caught:
        inflate(gzip.compress(TEXT), encoding, LIMIT)
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize(
    "body",
    [
        b"not compressed",
        gzip.compress(TEXT)[:-5],
        gzip.compress(TEXT) + b"more",
        gzip.compress(TEXT) + bytes(20_000),
        gzip.compress(TEXT)[:20] + b"\x00\xff" + gzip.compress(TEXT)[22:],
    ],
    ids=["not gzip", "cut", "trailing", "trailing past a slice", "damaged"],
)
def test_a_damaged_stream_is_refused_without_a_chained_exception(body: bytes) -> None:
    with pytest.raises(TransportError) as caught:
        inflate(body, "gzip", LIMIT)
    assert caught.value.kind == "protocol"
    assert caught.value.__context__ is None


@pytest.mark.parametrize(("encoding", "wbits"), [("gzip", 31), ("deflate", 15), ("deflate", -15)])
def test_one_byte_too_many_is_too_large(encoding: str, wbits: int) -> None:
    coder = zlib.compressobj(wbits=wbits)
    body = coder.compress(b"a" * (LIMIT + 1)) + coder.flush()
    with pytest.raises(TransportError) as caught:
        inflate(body, encoding, LIMIT)
    assert caught.value.kind == "too_large"
