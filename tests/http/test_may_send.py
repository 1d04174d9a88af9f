"""The last check: permission to send is asked for right before the first byte, once there is a connection."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.http.conftest import BOTH, AiohttpTransport, MakeTransport
from tests.http.requests import HTTPRequest, TransportError, connector_of, make_request, opened_by
from tests.support.rawserver import RawServer, client_tls


def asking(url: str, may_send: Callable[[], bool]) -> HTTPRequest:
    request = make_request(url)
    request.may_send = may_send
    return request


async def withheld(transport: AiohttpTransport, request: HTTPRequest) -> None:
    with pytest.raises(TransportError) as caught:
        await transport.send(request)
    assert (caught.value.kind, request.sent) == ("withheld", False)


@BOTH
async def test_a_withheld_request_sends_nothing_and_its_connection_is_used_again(
    server: RawServer, transport: AiohttpTransport
) -> None:
    for _ in range(2):  # over a new connection, then over one that has served
        await withheld(transport, asking(server.url("/no"), lambda: False))
        assert (await transport.send(asking(server.url("/yes"), lambda: True))).status == 200
    assert (server.connections, len(server.requests)) == (1, 2)
    assert all(request.startswith(b"POST /yes ") for request in server.requests)
    await transport.aclose()


@BOTH
async def test_permission_is_asked_for_after_the_tls_handshake(make_transport: MakeTransport) -> None:
    transport = make_transport(ssl_context=client_tls())

    def may_send() -> bool:
        asked.append(len(connector_of(opened_by(transport))._acquired))
        return False

    asked = list[int]()
    with RawServer(tls=True) as server:
        await withheld(transport, asking(server.url("/", scheme="https"), may_send))
        assert (asked, server.requests) == ([1], [])
        await transport.aclose()


@pytest.mark.parametrize("way", ["session"])
async def test_an_aiohttp_that_does_not_say_when_it_sends_is_asked_for_beforehand(
    server: RawServer, transport: AiohttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_async._http.session._ASKS_REQUESTS_TO_SEND", False)
    await withheld(transport, asking(server.url("/"), lambda: False))
    assert (server.connections, server.requests) == (0, [])
