"""Under TLS and through a proxy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payments_async._http.transport import AiohttpTransport
from payments_async._http.types import TransportError
from tests.http.conftest import BOTH, MakeTransport
from tests.http.requests import KEY, get, make_request
from tests.support.rawserver import EXPIRED, OK, RawServer, Step, client_tls
from tests.support.surfaces import error_of

pytestmark = BOTH


@pytest.fixture
def tls_server() -> Iterator[RawServer]:
    with RawServer(tls=True) as running:
        yield running


async def test_calls_share_a_tls_connection(tls_server: RawServer, make_transport: MakeTransport) -> None:
    transport = make_transport(ssl_context=client_tls())
    for _ in range(3):
        assert (await transport.send(make_request(tls_server.url("/", scheme="https")))).body == b"{}"
    assert (tls_server.connections, len(tls_server.requests)) == (1, 3)
    await transport.aclose()


async def test_an_untrusted_certificate_fails(tls_server: RawServer, transport: AiohttpTransport) -> None:
    request = make_request(tls_server.url("/", scheme="https"))
    caught = await error_of(TransportError, transport.send(request))
    assert (caught.kind, request.sent) == ("tls", False)
    assert caught.detail.startswith("the server's certificate was refused: self-signed certificate; ")
    assert caught.detail.endswith("; it is valid from 2026-11-20 22:38 UTC to 2126-10-27 22:38 UTC")
    assert tls_server.requests == []


async def test_an_expired_certificate_is_told_with_its_dates(make_transport: MakeTransport) -> None:
    with RawServer(tls=EXPIRED) as server, pytest.raises(TransportError) as caught:
        await make_transport(ssl_context=client_tls(EXPIRED)).send(
            make_request(server.url("/", scheme="https"))
        )
    reason, _, clock = caught.value.detail.rpartition(", and this machine's clock says ")
    assert reason == (
        "the server's certificate was refused: certificate has expired; "
        "it is valid from 2020-01-01 00:00 UTC to 2020-02-01 00:00 UTC"
    )
    assert clock.endswith(" UTC: is the clock right?")
    assert server.requests == []


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


async def test_a_proxy_does_not_see_the_key(server: RawServer, make_transport: MakeTransport) -> None:
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


async def test_a_proxy_may_refuse_connections(server: RawServer, make_transport: MakeTransport) -> None:
    server.scripts["api.example.com:443"] = [b"HTTP/1.1 407 Who?\r\nContent-Length: 0\r\n\r\n"]
    request = make_request("https://api.example.com/v1")
    caught = await error_of(TransportError, make_transport(proxy=server.url("")).send(request))
    assert (caught.kind, request.sent) == ("connect", False)


async def test_a_proxy_that_is_down_is_a_connect_failure(make_transport: MakeTransport) -> None:
    request = make_request("http://api.example.com/v1")
    caught = await error_of(
        TransportError, make_transport(proxy="http://shop:secret@127.0.0.1:1").send(request)
    )
    assert (caught.kind, request.sent) == ("connect", False)
    assert "no connection to the proxy 127.0.0.1:1 (" in caught.detail
