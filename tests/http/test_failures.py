"""Each way an attempt can fail: its kind, whether something was sent, and that it happened once."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from tests.http.conftest import BOTH, MakeTransport, _transport
from tests.http.requests import AiohttpTransport, HTTPRequest, TransportError, cut_short, get, make_request
from tests.support.patience import bounded_memory
from tests.support.rawserver import Drip, RawServer, Script, Step
from tests.support.servers import free_port

pytestmark = BOTH

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

BROKEN: dict[str, tuple[Script, str]] = {
    "closed unanswered": ([Step.CLOSE], "reset"),
    "reset unanswered": ([Step.RESET], "reset"),
    "closed in the head": ([HEAD + b"X-A: b", Step.CLOSE], "reset"),
    "closed in the body": ([HEAD + b"Content-Length: 9\r\n\r\n{}", Step.CLOSE], "reset"),
    "reset in the body": ([HEAD + b"Content-Length: 9\r\n\r\n{}", Step.RESET], "reset"),
    "closed in a chunk": ([CHUNKED + b"5\r\n{}", Step.CLOSE], "reset"),
    "closed between chunks": ([CHUNKED + b"2\r\n{}\r\n", Step.CLOSE], "reset"),
    "no chunk size": ([CHUNKED + b"zz\r\n{}"], "protocol"),
    "another protocol": ([b"SSH-2.0-OpenSSH_9.2\r\n\r\n"], "protocol"),
    "no status": ([b"HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n"], "protocol"),
    "two lengths": ([HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"], "protocol"),
    "control character": ([HEAD + b"X-A: \x00\r\nContent-Length: 0\r\n\r\n"], "protocol"),
    "long header": ([HEAD + b"X-A: " + b"a" * 9000 + b"\r\n\r\n"], "protocol"),
    "many headers": ([HEAD + b"".join(b"X-%d: a\r\n" % n for n in range(300)) + b"\r\n"], "protocol"),
    "switching": ([b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"], "protocol"),
    "declared too long": ([HEAD + b"Content-Length: 1001\r\n\r\n", Step.HANG], "too_large"),
    "chunked too long": ([CHUNKED, *[b"64\r\n" + b"a" * 100 + b"\r\n"] * 11, Step.HANG], "too_large"),
    "endless": ([HEAD + b"\r\n" + b"a" * 2000, Step.HANG], "too_large"),
}


async def fail(transport: AiohttpTransport, request: HTTPRequest) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await transport.send(request)
    return caught.value


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_answer_is_in_doubt_asked_for_once_and_its_connection_closed(
    case: str, method: str, server: RawServer, transport: AiohttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, kind = BROKEN[case]
    server.scripts["/broken"] = script
    monkeypatch.setattr(_transport, "MAX_BODY", 1000)
    request = make_request(server.url("/broken"), method)
    failure = await fail(transport, request)
    assert (failure.kind, request.sent) == (kind, True)
    assert (failure.__cause__, failure.__context__) == (None, None)
    assert len(server.requests) == 1
    await transport.send(get(server.url("/next")))
    assert server.connections == 2


async def test_an_answer_in_two_encodings_is_a_protocol_failure(
    server: RawServer, transport: AiohttpTransport
) -> None:
    encoding = b"Content-Encoding: gzip\r\n"
    server.scripts["/odd"] = [HEAD + encoding * 2 + b"Content-Length: 2\r\n\r\n{}"]
    request = make_request(server.url("/odd"))
    failure = await fail(transport, request)
    assert (failure.kind, request.sent) == ("protocol", True)


async def test_a_refused_connection_is_a_connect_failure_with_nothing_sent(
    transport: AiohttpTransport,
) -> None:
    request = make_request(f"http://127.0.0.1:{free_port()}/")
    failure = await fail(transport, request)
    assert (failure.kind, request.sent) == ("connect", False)
    assert failure.detail == "no connection (ClientConnectorError, ECONNREFUSED)"


async def test_a_handshake_that_hangs_is_ended_by_the_connect_timeout(make_transport: MakeTransport) -> None:
    with RawServer(unread=True) as server:
        request = make_request(server.url("/", scheme="https"))
        failure = await fail(make_transport(connect_timeout=0.05), request)
        assert (failure.kind, request.sent) == ("timeout", False)


@pytest.mark.parametrize(
    "script",
    [
        [Step.HANG],
        [HEAD, Step.HANG],
        [HEAD + b"Content-Length: 9\r\n\r\n{", Step.HANG],
        [HEAD + b"Content-Length: 900000\r\n\r\n", Drip(b" ", 0.005)],
        [HEAD + b"X-A: ", Drip(b"a", 0.005)],
        [Drip(b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.005)],
    ],
    ids=["silent", "head", "body", "dripping body", "dripping head", "endless hints"],
)
async def test_an_answer_that_does_not_end_is_ended_on_time(
    script: Script, server: RawServer, transport: AiohttpTransport
) -> None:
    server.scripts["/slow"] = script
    request, caught = await cut_short(transport, server.url("/slow"))
    assert caught.value.kind == "timeout"
    assert caught.value.detail == f"the attempt took longer than {request.timeout:g} s"
    assert await asyncio.to_thread(server.hangups.get, timeout=300) == "/slow"


async def test_waiting_too_long_for_a_free_connection_is_a_pool_failure_with_nothing_sent(
    server: RawServer, make_transport: MakeTransport
) -> None:
    server.scripts["/busy"] = [Step.HANG]
    transport = make_transport(max_connections=1)
    busy = asyncio.ensure_future(transport.send(make_request(server.url("/busy"))))
    assert await asyncio.to_thread(server.arrivals.get, timeout=300) == "/busy"
    request = make_request(server.url("/next"), timeout=0.05)
    failure = await fail(transport, request)
    assert (failure.kind, request.sent) == ("pool", False)
    assert server.connections == 1
    busy.cancel()
    await asyncio.wait([busy])
    assert (await transport.send(get(server.url("/next")))).status == 200


async def test_an_answer_as_long_as_the_limit_is_read(
    server: RawServer, transport: AiohttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"a" * 1000
    packed = gzip.compress(text)
    server.scripts["/long"] = [CHUNKED + b"3e8\r\n" + text + b"\r\n0\r\n\r\n"]
    server.scripts["/packed"] = [
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed
    ]
    monkeypatch.setattr(_transport, "MAX_BODY", 1000)
    assert (await transport.send(get(server.url("/long")))).body == text
    assert (await transport.send(get(server.url("/packed")))).body == text
    assert server.connections == 1


async def test_a_bomb_is_too_large_and_bounded_in_memory(
    server: RawServer, transport: AiohttpTransport
) -> None:
    bomb = gzip.compress(bytes(100 * 1024 * 1024), compresslevel=1)
    server.scripts["/bomb"] = [
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb
    ]
    await transport.send(get(server.url("/warm")))
    with bounded_memory((4 + 1) * 1024 * 1024):
        failure = await fail(transport, get(server.url("/bomb")))
    assert failure.kind == "too_large"
