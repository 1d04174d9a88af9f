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

URL = "https://api.example.com/v1/payouts"


@pytest.fixture
def service() -> Iterator[aioresponses]:
    adapt_aioresponses()
    with aioresponses() as mocked:
        yield mocked


@pytest.mark.parametrize("status", [201, 302, 429, 503])
async def test_every_status_is_an_answer(
    status: int, service: aioresponses, transport: AiohttpTransport
) -> None:
    service.post(URL, status=status, body=b'{"message":"m"}')
    answer = await transport.send(make_request(URL))
    assert (answer.status, answer.body) == (status, b'{"message":"m"}')
    await transport.aclose()


async def test_headers_compare_without_case(service: aioresponses, transport: AiohttpTransport) -> None:
    service.post(URL, headers={"Retry-After": "7", "x-request-id": "r"})
    answer = await transport.send(make_request(URL))
    assert (answer.headers["retry-after"], answer.headers["X-Request-Id"]) == ("7", "r")
    assert "Absent" not in answer.headers
    await transport.aclose()


async def test_an_answer_does_not_show_its_body(service: aioresponses, transport: AiohttpTransport) -> None:
    service.post(URL, body=b"account 123456")
    answer = await transport.send(make_request(URL))
    assert "123456" not in repr(answer)
    await transport.aclose()


async def test_a_stand_in_that_breaks_off_leaves_the_request_in_doubt(
    service: aioresponses, transport: AiohttpTransport
) -> None:
    service.post(URL, exception=ServerDisconnectedError())
    request = make_request(URL)
    with pytest.raises(TransportError) as caught:
        await transport.send(request)
    assert (caught.value.kind, request.sent) == ("reset", True)
    await transport.aclose()


async def test_a_stand_in_that_cannot_connect_leaves_it_unsent(
    service: aioresponses, transport: AiohttpTransport
) -> None:
    where = ConnectionKey("api.example.com", 443, True, True, None, None, None)
    service.post(URL, exception=ClientConnectorError(where, ConnectionRefusedError(111, "no")))
    request = make_request(URL)
    with pytest.raises(TransportError) as caught:
        await transport.send(request)
    assert (caught.value.kind, request.sent) == ("connect", False)
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
