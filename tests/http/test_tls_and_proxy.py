"""Under TLS and through a proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.http.conftest import BOTH, MakeTransport
from tests.http.requests import KEY, AiohttpTransport, TransportError, cut_short, get, make_request
from tests.support.rawserver import EXPIRED, OK, RawServer, Step, client_tls

pytestmark = BOTH


@pytest.fixture
def tls_server() -> Iterator[RawServer]:
    with RawServer(tls=True) as running:
        yield running


async def test_an_untrusted_certificate_is_a_tls_failure_with_nothing_sent(
    tls_server: RawServer, transport: AiohttpTransport
) -> None:
    request = make_request(tls_server.url("/", scheme="https"))
    with pytest.raises(TransportError) as caught:
        await transport.send(request)
    assert (caught.value.kind, request.sent) == ("tls", False)
    assert caught.value.detail == "the server's certificate was refused: self-signed certificate"
    assert tls_server.requests == []


async def test_an_expired_certificate_is_told_with_the_clock(make_transport: MakeTransport) -> None:
    with RawServer(tls=EXPIRED) as server, pytest.raises(TransportError) as caught:
        await make_transport(ssl_context=client_tls(EXPIRED)).send(
            make_request(server.url("/", scheme="https"))
        )
    reason, _, clock = caught.value.detail.rpartition(", and this machine's clock says ")
    assert reason == "the server's certificate was refused: certificate has expired"
    assert clock.endswith(" UTC: is the clock right?")
    assert server.requests == []


async def test_a_deadline_holds_under_tls(tls_server: RawServer, make_transport: MakeTransport) -> None:
    tls_server.scripts["/slow"] = [Step.HANG]
    transport = make_transport(ssl_context=client_tls())
    _, caught = await cut_short(transport, tls_server.url("/slow", scheme="https"))
    assert caught.value.kind == "timeout"
    await transport.aclose()


async def test_a_proxy_gets_the_whole_address(server: RawServer, make_transport: MakeTransport) -> None:
    transport = make_transport(proxy=server.url(""))
    server.scripts["http://api.example.com/v1"] = [OK]
    assert not transport._is_direct
    request = get("http://api.example.com/v1")
    assert (await transport.send(request)).status == 200
    assert request.sent
    assert server.requests[0].startswith(
        b"GET http://api.example.com/v1 HTTP/1.1\r\nHost: api.example.com\r\n"
    )


async def test_a_proxy_tunnels_tls_and_does_not_see_the_key(
    server: RawServer, make_transport: MakeTransport
) -> None:
    name = f"127.0.0.1:{server.port}"
    server.scripts[name] = [b"HTTP/1.1 200 Connected\r\n\r\n", Step.TLS]
    transport = make_transport(proxy=server.url(""), ssl_context=client_tls())
    for _ in range(2):
        assert (await transport.send(make_request(server.url("/v1", scheme="https")))).body == b"{}"
    assert [request.split()[:2] for request in server.requests] == [
        [b"CONNECT", name.encode()],
        [b"POST", b"/v1"],
        [b"POST", b"/v1"],
    ]
    assert KEY.encode() not in server.requests[0]
    await transport.aclose()


async def test_a_tunnel_in_use_is_closed_with_its_attempt(
    server: RawServer, make_transport: MakeTransport
) -> None:
    server.scripts[f"127.0.0.1:{server.port}"] = [b"HTTP/1.1 200 Connected\r\n\r\n", Step.TLS]
    server.scripts["/slow"] = [Step.HANG]
    transport = make_transport(proxy=server.url(""), ssl_context=client_tls())
    task = asyncio.ensure_future(transport.send(make_request(server.url("/slow", scheme="https"))))
    while await asyncio.to_thread(server.arrivals.get, timeout=300) != "/slow":
        pass
    task.cancel()
    await asyncio.wait([task])
    assert await asyncio.to_thread(server.hangups.get, timeout=300) == "/slow"
    await transport.aclose()


@pytest.mark.parametrize("is_down", [False, True])
async def test_a_proxy_that_refuses_or_is_down_is_a_connect_failure_with_nothing_sent(
    server: RawServer, make_transport: MakeTransport, is_down: bool
) -> None:
    server.scripts["api.example.com:443"] = [b"HTTP/1.1 407 Who?\r\nContent-Length: 0\r\n\r\n"]
    request = make_request("https://api.example.com/v1")
    proxy = "http://shop:secret@127.0.0.1:1" if is_down else server.url("")
    with pytest.raises(TransportError) as caught:
        await make_transport(proxy=proxy).send(request)
    assert (caught.value.kind, request.sent) == ("connect", False)
    assert ("no connection to the proxy 127.0.0.1:1 (" in caught.value.detail) is is_down
