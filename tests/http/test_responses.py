"""Answers as values, without a network: status, headers and body as the service gave them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import ClientConnectorError, ServerDisconnectedError
from aiohttp.client_reqrep import ConnectionKey
from aioresponses import aioresponses

from payments_async._http.transport import AiohttpTransport
from payments_async._http.types import TransportError
from payments_async.testing import adapt_aioresponses
from tests.http.requests import make_request
from tests.support.surfaces import error_of

URL = "https://api.example.com/v1/payouts"


@pytest.fixture
def service() -> Iterator[aioresponses]:
    adapt_aioresponses()
    with aioresponses() as mocked:
        yield mocked


async def test_a_stand_in_may_break_off(service: aioresponses, transport: AiohttpTransport) -> None:
    service.post(URL, exception=ServerDisconnectedError())
    request = make_request(URL)
    caught = await error_of(TransportError, transport.send(request))
    assert (caught.kind, request.sent) == ("reset", True)
    await transport.aclose()


async def test_a_stand_in_may_not_connect(service: aioresponses, transport: AiohttpTransport) -> None:
    where = ConnectionKey("api.example.com", 443, True, True, None, None, None)
    service.post(URL, exception=ClientConnectorError(where, ConnectionRefusedError(111, "no")))
    request = make_request(URL)
    caught = await error_of(TransportError, transport.send(request))
    assert (caught.kind, request.sent) == ("connect", False)
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
