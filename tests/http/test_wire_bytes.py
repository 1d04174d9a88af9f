"""What goes over the wire: the request's bytes, once, on a connection that is fit for it."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.http.conftest import BOTH, AiohttpTransport, CommonHeaders, MakeTransport, Secret
from tests.http.requests import KEY, connector_of, get, idle_connections_lost, make_request, opened_by
from tests.support.rawserver import OK, RawServer, Step
from tests.support.scripted import HTTPRequest, TransportError

pytestmark = BOTH

HEADERS = {
    "Authorization": Secret(KEY),
    "User-Agent": "payments-sdk/1",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "X-Idempotency-Key": "key-12345678",
    "X-Note": "é",
}
CASES: dict[str, tuple[str, str, dict[str, str], bytes | None]] = {
    "write": ("POST", "/v1/payouts", HEADERS | {"Content-Type": "application/json"}, b'{"amount":50}'),
    "read": ("GET", "/v1/payouts?created_at%5Bgte%5D=2026-01-01&cursor=a+b%20c", HEADERS, None),
    "no headers": ("POST", "/", {}, b"{}"),
    "no headers, no body": ("GET", "/", {}, None),
    "write without a body": ("POST", "/v1/payouts/a/sync", HEADERS, None),
    "write of an empty body": ("POST", "/v1", HEADERS, b""),
    "read with a body": ("GET", "/v1", HEADERS, b"{}"),
    "delete": ("DELETE", "/v1", HEADERS, None),
    "large": ("POST", "/v1/large", HEADERS, b"a" * 500_000),
}


def expected(method: str, target: str, headers: dict[str, str], body: bytes | None, port: int) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
    lines += [f"{name}: {str.__str__(value)}" for name, value in headers.items()]
    if body is not None or method in ("POST", "DELETE"):
        lines.append(f"Content-Length: {len(body or b'')}")
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


@pytest.mark.parametrize("case", CASES)
async def test_each_way_writes_the_request_and_nothing_else(
    case: str, server: RawServer, transport: AiohttpTransport
) -> None:
    method, target, headers, body = CASES[case]
    await transport.send(HTTPRequest(method, server.url(target), headers, body, 60))
    assert server.requests == [expected(method, target, headers, body, server.port)]


@pytest.mark.parametrize("own", ["X-Idempotency-Key", None])
async def test_common_headers_go_out_like_a_requests_own(
    own: str | None, server: RawServer, transport: AiohttpTransport
) -> None:
    common = CommonHeaders({name: HEADERS[name] for name in ("Authorization", "Accept")}, own)
    for number in range(3):
        request = HTTPRequest(
            "POST", server.url("/"), None, b"{}", 60, common=common, own=f"key-{number}" if own else ""
        )
        if number == 1:
            request.headers["X-Note"] = "added"
        if number == 2:
            request.headers = {**request.headers, "Accept": "replaced"}
        await transport.send(request)
    sent = [{**common.headers, **({own: f"key-{number}"} if own else {})} for number in range(3)]
    wanted = [sent[0], sent[1] | {"X-Note": "added"}, sent[2] | {"Accept": "replaced"}]
    assert server.requests == [expected("POST", "/", headers, b"{}", server.port) for headers in wanted]


async def test_32_at_once_each_get_their_own_answer(server: RawServer, transport: AiohttpTransport) -> None:
    for number in range(32):
        text = b'{"n":%d}' % number
        server.scripts[f"/{number}"] = [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text), text]
    for _ in range(3):
        answers = await asyncio.gather(*(transport.send(get(server.url(f"/{n}"))) for n in range(32)))
        assert [answer.body for answer in answers] == [b'{"n":%d}' % number for number in range(32)]
    assert server.connections <= 32


async def test_no_more_connections_are_opened_than_allowed(
    server: RawServer, make_transport: MakeTransport
) -> None:
    transport = make_transport(max_connections=3)
    await asyncio.gather(*(transport.send(get(server.url("/"))) for _ in range(20)))
    assert (server.connections, len(server.requests)) == (3, 20)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_request_on_a_dead_connection_is_not_repeated_behind_our_back(
    method: str, server: RawServer, transport: AiohttpTransport
) -> None:
    server.scripts["/dead"] = [Step.CLOSE]
    await transport.send(get(server.url("/")))
    request = make_request(server.url("/dead"), method)
    with pytest.raises(TransportError) as caught:
        await transport.send(request)
    assert (caught.value.kind, request.sent) == ("reset", True)
    assert (len(server.requests), server.connections) == (2, 1)


async def test_a_connection_closed_while_idle_is_not_used(
    server: RawServer, transport: AiohttpTransport
) -> None:
    await transport.send(get(server.url("/")))
    server.hang_up()
    await idle_connections_lost(transport)
    assert (await transport.send(make_request(server.url("/")))).status == 200
    assert server.connections == 2


async def test_what_arrives_unasked_is_never_taken_for_the_next_answer(
    way: str, server: RawServer, transport: AiohttpTransport
) -> None:
    await transport.send(get(server.url("/")))
    await asyncio.to_thread(server.broadcast, b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nstale")
    await asyncio.to_thread(server.broadcast, b"")  # let the loop see it
    if way != "direct":  # aiohttp hands it out all the same; an idle one is passed over
        with pytest.raises(TransportError) as caught:
            await transport.send(make_request(server.url("/fresh")))
        assert caught.value.kind == "reset"
    answer = await transport.send(make_request(server.url("/fresh")))
    assert (answer.status, answer.body, server.connections, len(server.requests)) == (200, b"{}", 2, 2)


STRAY = OK.replace(b"{}", b"[]")


@pytest.mark.parametrize("cut", [1, STRAY.index(b"\r\n\r\n") + 3, len(STRAY) - 1])
@pytest.mark.parametrize("behind", [False, True], ids=["by itself", "behind an answer"])
async def test_half_an_unsolicited_answer_is_never_the_next_ones_beginning(
    cut: int, behind: bool, server: RawServer, transport: AiohttpTransport
) -> None:
    server.scripts["/first"] = [OK + STRAY[:cut]] if behind else [OK]
    server.scripts["/second"] = [STRAY[cut:] + OK]  # the rest of it is there before the answer is
    await transport.send(get(server.url("/first")))
    if not behind:
        await asyncio.to_thread(server.broadcast, STRAY[:cut])
        await asyncio.to_thread(server.broadcast, b"")  # let the loop see it
    with contextlib.suppress(TransportError):
        assert (await transport.send(get(server.url("/second")))).body != b"[]"


async def test_an_unusable_connection_is_left_before_anything_is_written(
    server: RawServer, transport: AiohttpTransport
) -> None:
    await transport.send(get(server.url("/")))
    opened_by(transport).idle.give_back()
    ((pooled,),) = connector_of(opened_by(transport))._conns.values()
    pooled[0].force_close()
    request = make_request(server.url("/next"))
    with pytest.raises(TransportError):
        await transport.send(request)
    assert (request.sent, len(server.requests)) == (False, 1)


@pytest.mark.parametrize(
    ("size", "pieces"), [(1, 0), (30_000, 0), (300_000, 0), (100, 1), (40_000, 1), (1, 3), (300_000, 3)]
)
async def test_a_body_is_read_whole_however_it_comes_and_the_connection_goes_on(
    size: int, pieces: int, server: RawServer, transport: AiohttpTransport
) -> None:
    text = b"ab" * size
    head = b"HTTP/1.1 200 OK\r\n"
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(text), text) for _ in range(pieces))
    chunked = [head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"]
    sized = [head + b"Content-Length: %d\r\n\r\n" % len(text) + text]
    server.scripts["/body"] = chunked if pieces else sized
    for _ in range(3):
        assert (await transport.send(get(server.url("/body")))).body == text * (pieces or 1)
    assert server.connections == 1


async def test_cookies_are_not_kept(server: RawServer, transport: AiohttpTransport) -> None:
    server.scripts["/cookie"] = [OK.replace(b"\r\n\r\n", b"\r\nSet-Cookie: a=b\r\n\r\n")]
    await transport.send(get(server.url("/cookie")))
    await transport.send(get(server.url("/next")))
    assert b"ookie" not in server.requests[1].split(b"\r\n", 1)[1]


async def test_the_environment_chooses_no_proxy(
    server: RawServer, transport: AiohttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert (await transport.send(get(server.url("/")))).status == 200
