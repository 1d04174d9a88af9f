"""Who writes a request that goes by aiohttp's public interface, and what happens when it is somebody else."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from aiohttp import ClientRequest, ClientSession, TraceConfig, TraceRequestStartParams
from aiohttp.client_reqrep import ClientResponse

from payments_async._http import session
from payments_async._http import transport as _transport
from payments_async._http.transport import AiohttpTransport
from payments_async._http.types import TransportError
from payments_async._runtime import SYSTEM
from tests.http.requests import KEY, flight, get
from tests.support.rawserver import OK, RawServer


@pytest.fixture(autouse=True)
def _plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_transport, "lean_supported", lambda: False)


@pytest.fixture
def transport() -> AiohttpTransport:
    return AiohttpTransport(runtime=SYSTEM)


@pytest.fixture
def by_aiohttp(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Methods of the requests that aiohttp was left to write."""
    written: list[str] = []
    send = ClientRequest.send

    async def note(self: ClientRequest, conn: object) -> ClientResponse:
        written.append(self.method)
        return await send(self, conn)  # type: ignore[arg-type] # a pass-through

    monkeypatch.setattr(ClientRequest, "send", note)
    return written


async def test_a_request_of_the_usual_size_writes_itself(
    server: RawServer, transport: AiohttpTransport, by_aiohttp: list[str]
) -> None:
    await transport.send(flight(server.url("/"), body=b"a" * 32 * 1024))
    assert by_aiohttp == []
    await transport.send(flight(server.url("/"), body=b"a" * (32 * 1024 + 1)))
    assert by_aiohttp == ["POST"]


async def test_a_proxy_that_is_told_the_whole_address_is_told_by_aiohttp(
    server: RawServer, by_aiohttp: list[str]
) -> None:
    server.scripts["http://api.example.com/v1"] = [OK]
    transport = AiohttpTransport(runtime=SYSTEM, proxy=server.url(""))
    await transport.send(flight("http://api.example.com/v1"))
    assert by_aiohttp == ["POST"]
    (request,) = server.requests
    assert f"Authorization: {KEY}\r\n".encode() in request
    assert request.endswith(b"\r\nContent-Length: 2\r\n\r\n{}")


async def test_who_traces_sessions_sees_the_headers_and_may_add_to_them(
    server: RawServer, transport: AiohttpTransport, by_aiohttp: list[str]
) -> None:
    async def start(_: ClientSession, __: SimpleNamespace, params: TraceRequestStartParams) -> None:
        params.headers["traceparent"] = params.headers["X-Idempotency-Key"]

    watch = TraceConfig()
    watch.on_request_start.append(start)
    watch.freeze()
    await transport.send(get(server.url("/")))
    (home,) = transport._homes.values()
    home.session.trace_configs.append(watch)
    await transport.send(flight(server.url("/")))
    assert by_aiohttp == ["POST"]
    assert b"\r\ntraceparent: key-12345678\r\n" in server.requests[1]


async def test_an_aiohttp_that_would_write_what_is_not_its_to_write_sends_nothing(
    server: RawServer, transport: AiohttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.SessionRequest, "send", ClientRequest.send)
    request = flight(server.url("/"))
    with pytest.raises(TransportError) as caught:
        await transport.send(request)
    assert (caught.value.kind, request.sent, server.requests) == ("connect", False, [])


async def test_an_aiohttp_whose_response_is_made_otherwise_sends_nothing(
    server: RawServer, transport: AiohttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(self: object, request: object) -> None:
        """Parameters that no aiohttp has."""

    monkeypatch.setattr(session.AbortingResponse, "__init__", other)
    request = flight(server.url("/"))
    with pytest.raises(TransportError) as caught:
        await transport.send(request)
    assert (caught.value.kind, request.sent, server.requests) == ("connect", False, [])
