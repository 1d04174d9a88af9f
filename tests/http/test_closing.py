"""Closing while attempts are under way: each of them fails, at once and by name, whatever it waits for."""

from __future__ import annotations

import asyncio

import pytest

from tests.http.requests import AiohttpTransport, TransportError, make_request
from tests.support.rawserver import RawServer


class Silence:
    """Stands for a resolver or a peer that never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def __call__(self, *_: object, **__: object) -> None:
        self.asked.set()
        await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("stage", ["getaddrinfo", "sock_connect"])
async def test_an_attempt_that_is_connecting_fails_as_one_that_sent_nothing(
    stage: str, transport: AiohttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    silence = Silence()
    monkeypatch.setattr(asyncio.get_running_loop(), stage, silence)
    address = "http://localhost:1/" if stage == "getaddrinfo" else "http://127.0.0.1:1/"
    request = make_request(address)
    task = asyncio.ensure_future(transport.send(request))
    await silence.asked.wait()
    await transport.aclose()
    with pytest.raises(TransportError, match="client was closed") as caught:
        await asyncio.wait_for(task, 300)
    assert (caught.value.kind, request.sent) == ("closed", False)


async def test_an_unrequested_cancellation_is_a_failure(
    transport: AiohttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cancelled(*_: object, **__: object) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", cancelled)
    with pytest.raises(TransportError) as caught:
        await transport.send(make_request("http://localhost:1/"))
    assert caught.value.kind == "connect"


async def test_an_attempt_that_comes_upon_closed_connections_fails_as_one_that_sent_nothing(
    server: RawServer, transport: AiohttpTransport
) -> None:
    opened = await transport._open(asyncio.get_running_loop())
    await opened.close()
    request = make_request(server.url("/"))
    with pytest.raises(TransportError) as caught:
        await transport.send(request)
    assert (caught.value.kind, request.sent) == ("connect", False)
