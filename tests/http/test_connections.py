"""A connection whose answer came whole waits for the next request; everything else goes back to aiohttp."""

from __future__ import annotations

import asyncio
import gzip
import random
import zlib
from collections.abc import Callable

import pytest
from yarl import URL

from tests.http.requests import AiohttpTransport, TransportError, connector_of, get, make_request, opened_by
from tests.support.rawserver import RawServer
from tests.support.simulated import SystemRuntime, Timer

REST, LONGEST = 5.0, 15.0


class Clock(SystemRuntime):
    """A clock that is moved by hand; the timers for rest are run by hand, too."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 1000.0
        self.rests: list[Callable[[], object]] = []
        self.monotonic = lambda: self.at

    def call_later(self, delay: float, callback: Callable[[], object]) -> Timer:
        if delay != REST:
            return super().call_later(delay, callback)
        self.rests.append(callback)
        return asyncio.get_running_loop().call_later(3600, callback)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def transport(clock: Clock) -> AiohttpTransport:
    return AiohttpTransport(runtime=clock)


def pooled(transport: AiohttpTransport) -> int:
    return sum(map(len, connector_of(opened_by(transport))._conns.values()))


async def test_the_pool_is_asked_for_the_first_request_only(
    server: RawServer, transport: AiohttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    await transport.send(get(server.url("/")))
    monkeypatch.setattr(connector_of(opened_by(transport)), "connect", None)
    for _ in range(3):
        assert (await transport.send(make_request(server.url("/next")))).status == 200
    assert (server.connections, pooled(transport)) == (1, 0)


async def test_after_a_while_all_go_back_to_the_pool_and_can_be_had_again(
    server: RawServer, transport: AiohttpTransport, clock: Clock
) -> None:
    await transport.send(get(server.url("/")))
    await transport.send(get(server.url("/")))
    (rest,) = clock.rests  # one timer, not one for each
    rest()
    assert pooled(transport) == 1
    await transport.send(get(server.url("/")))
    assert (server.connections, pooled(transport), len(clock.rests)) == (1, 0, 2)


async def test_one_that_waited_too_long_is_closed_and_not_used(
    server: RawServer, transport: AiohttpTransport, clock: Clock
) -> None:
    await asyncio.gather(*(transport.send(get(server.url("/"))) for _ in range(2)))
    clock.at += LONGEST
    assert (await transport.send(get(server.url("/")))).status == 200
    assert (server.connections, len(opened_by(transport).idle._ready)) == (3, 1)


async def test_what_went_back_to_the_pool_is_as_old_there_as_it_was(
    server: RawServer, transport: AiohttpTransport, clock: Clock
) -> None:
    await transport.send(get(server.url("/")))
    assert connector_of(opened_by(transport))._keepalive_timeout == LONGEST - REST


async def test_another_origin_has_no_use_for_what_waits(
    server: RawServer, transport: AiohttpTransport
) -> None:
    with RawServer() as other:
        await transport.send(get(server.url("/")))
        await transport.send(get(other.url("/")))
        assert pooled(transport) == 1
        await transport.send(get(server.url("/")))
        await transport.send(get(server.url("/elsewhere")))
        assert (server.connections, other.connections) == (1, 1)
        await transport.aclose()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
async def test_one_that_the_server_wants_closed_does_not_wait(
    answer: bytes, server: RawServer, transport: AiohttpTransport
) -> None:
    server.scripts["/last"] = [answer]
    await transport.send(get(server.url("/last")))
    assert opened_by(transport).idle._ready == []
    await transport.send(get(server.url("/")))
    assert server.connections == 2


async def test_a_parser_that_has_read_an_answer_reads_the_next_ones_as_a_new_one_would(
    server: RawServer, transport: AiohttpTransport
) -> None:
    head = b"HTTP/1.1 %d Said\r\nX-Number: %d\r\n"
    answers = [
        (204, b"", head % (204, 1) + b"\r\n"),
        (200, b"abc", head % (200, 2) + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        (404, b"no", head % (404, 3) + b"Content-Length: 2\r\n\r\nno"),
        (304, b"", head % (304, 4) + b"\r\n"),
        (201, b"", head % (201, 5) + b"Content-Length: 0\r\n\r\n"),
        (200, b"y", b"HTTP/1.1 100 Go on\r\n\r\n" + head % (200, 6) + b"Content-Length: 1\r\n\r\ny"),
    ]
    for number, (status, body, raw) in enumerate([*answers, *reversed(answers)]):
        server.scripts[f"/{number}"] = [raw]
        answer = await transport.send(get(server.url(f"/{number}")))
        assert (answer.status, answer.body) == (status, body)
        assert answer.headers["X-Number"] == str(answers.index((status, body, raw)) + 1)
    assert server.connections == 1


async def test_nothing_waits_where_the_connections_were_closed(
    server: RawServer, transport: AiohttpTransport, clock: Clock
) -> None:
    await transport.send(get(server.url("/")))
    opened = opened_by(transport)
    taken = opened.idle.take(URL(server.url("/")))
    assert taken is not None
    opened.idle.close()
    opened.idle.keep(*taken)
    del taken
    assert (opened.idle._ready, pooled(transport)) == ([], 1)
    await transport.aclose()


# Decompression with a bound


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
