"""Answers as values, without a network: status, headers and body as the service gave them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from aiohttp import ClientResponse
from aiohttp.abc import AbstractStreamWriter
from aioresponses import aioresponses

from payments_async._transport import AiohttpTransport
from tests.transport.flights import flight

URL = "https://api.example.com/v1/payouts"


class Response(ClientResponse):
    """aioresponses does not know the newest parameter of aiohttp's responses."""

    def __init__(self, *args: object, **options: object) -> None:
        options.setdefault("stream_writer", AbstractStreamWriter)
        super().__init__(*args, **options)  # type: ignore[arg-type] # a pass-through


@pytest.fixture
def service() -> Iterator[aioresponses]:
    with aioresponses() as mocked:
        yield mocked


@pytest.mark.parametrize("status", [200, 201, 302, 401, 409, 422, 429, 500, 503])
async def test_every_status_is_an_answer(
    status: int, service: aioresponses, transport: AiohttpTransport
) -> None:
    service.post(URL, status=status, body=b'{"message":"m"}', response_class=Response)
    answer = await transport.send(flight(URL))
    assert (answer.status, answer.body) == (status, b'{"message":"m"}')
    await transport.aclose()


async def test_headers_compare_without_case(service: aioresponses, transport: AiohttpTransport) -> None:
    service.post(URL, headers={"Retry-After": "7", "x-request-id": "r"}, response_class=Response)
    answer = await transport.send(flight(URL))
    assert (answer.headers["retry-after"], answer.headers["X-Request-Id"]) == ("7", "r")
    assert "Absent" not in answer.headers
    await transport.aclose()


async def test_an_answer_does_not_show_its_body(service: aioresponses, transport: AiohttpTransport) -> None:
    service.post(URL, body=b"account 123456", response_class=Response)
    answer = await transport.send(flight(URL))
    assert "123456" not in repr(answer)
    await transport.aclose()
