"""Which way a request is sent, and what happens when something stands in for aiohttp's parts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import ClientConnectorError, ServerDisconnectedError
from aiohttp.client_reqrep import ConnectionKey
from aioresponses import aioresponses

from payments_async.testing import adapt_aioresponses
from tests.http.requests import AiohttpTransport, TransportError, get, make_request
from tests.support.rawserver import RawServer
from tests.support.simulated import SYSTEM


async def test_the_way_is_chosen_by_what_is_installed_and_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert AiohttpTransport(runtime=SYSTEM)._is_direct
    assert not AiohttpTransport(runtime=SYSTEM, proxy="http://127.0.0.1:1")._is_direct
    monkeypatch.setattr("payments_async._http.transport.is_supported", lambda: False)
    assert not AiohttpTransport(runtime=SYSTEM)._is_direct


async def test_a_connection_that_could_not_take_the_request_at_once_is_not_kept(server: RawServer) -> None:
    transport = AiohttpTransport(runtime=SYSTEM)
    body = b"a" * 20_000_000
    assert (await transport.send(make_request(server.url("/large"), body=body))).status == 200
    assert len(server.requests[0]) > len(body)
    await transport.send(get(server.url("/")))
    assert server.connections == 2


WHERE = ConnectionKey("api.example.com", 443, True, True, None, None, None)


@pytest.mark.parametrize(
    ("raised", "kind", "sent"),
    [
        (ServerDisconnectedError(), "reset", True),
        (ClientConnectorError(WHERE, ConnectionRefusedError(111, "no")), "connect", False),
    ],
)
async def test_a_stand_in_that_breaks_off_leaves_the_request_in_doubt_unless_it_cannot_connect(
    raised: Exception, kind: str, sent: bool, transport: AiohttpTransport
) -> None:
    adapt_aioresponses()
    request = make_request("https://api.example.com/v1/payouts")
    with aioresponses() as service, pytest.raises(TransportError) as caught:
        service.post(request.url, exception=raised)
        await transport.send(request)
    assert (caught.value.kind, request.sent) == (kind, sent)
    await transport.aclose()


def test_a_stand_in_that_was_there_first_is_recognised() -> None:
    code = """
from aioresponses import aioresponses
with aioresponses():
    from payments_async._http.session import is_replaced
    assert is_replaced()
assert is_replaced()
"""
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True, timeout=300)
