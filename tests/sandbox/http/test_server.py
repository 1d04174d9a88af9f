"""The sandbox over a real socket, from asyncio and from blocking code."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web

from payments_async.sandbox import Sandbox
from tests.sandbox.raw_requests import INTENT, PAYOUT
from tests.support.patience import until


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


Post = Callable[..., "aiohttp.client._RequestContextManager"]


def poster(sandbox: Sandbox, session: aiohttp.ClientSession) -> Post:
    def post(words: str | None = None, **options: object) -> aiohttp.client._RequestContextManager:
        headers = {"Authorization": f"Bearer {sandbox.api_key}", "X-Idempotency-Key": "key-00001"}
        if words:
            headers["X-Sandbox-Scenario"] = words
        return session.post(f"{sandbox.base_url}/payouts", json=PAYOUT, headers=headers, **options)  # type: ignore[arg-type] # a pass-through

    return post


@pytest.mark.fact("conventions.base-url-v1")
async def test_it_serves_inside_async_with(session: aiohttp.ClientSession) -> None:
    async with Sandbox() as sandbox:
        assert urlsplit(sandbox.base_url).path == "/v1"
        assert urlsplit(sandbox.base_url).hostname == "127.0.0.1"
        async with poster(sandbox, session)() as response:
            assert response.status == 201
            created = (await response.json())["data"]
        headers = {"Authorization": f"Bearer {sandbox.api_key}"}
        async with session.get(f"{sandbox.base_url}/payouts?per_page=1", headers=headers) as response:
            page = await response.json()
        assert [record["id"] for record in page["data"]] == [created["id"]]
        assert page["pagination"]["path"] == f"{sandbox.base_url}/payouts"
        checkout = f"{sandbox.base_url}/payment/checkouts"
        async with session.post(checkout, json=INTENT, headers=headers) as response:
            url = (await response.json())["data"]["checkout"]["url"]
        assert url.startswith(sandbox.base_url.removesuffix("/v1"))
        assert [entry.headers.get("authorization") for entry in sandbox.requests] == [None] * 3


def test_the_port_is_free_and_below_those_of_outgoing_connections() -> None:
    with Sandbox() as one, Sandbox() as two:
        ports = [urlsplit(sandbox.base_url).port or 0 for sandbox in (one, two)]
    assert len(set(ports)) == 2
    assert all(20_000 <= port < 32_768 for port in ports)


def test_a_port_can_be_chosen_and_is_given_back() -> None:
    with Sandbox() as first:
        port = urlsplit(first.base_url).port
        with pytest.raises(OSError, match="in use"):
            Sandbox(port=port).start()
    with Sandbox(port=port) as second:
        assert urlsplit(second.base_url).port == port


def test_running_out_of_ports_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(*_: object, **__: object) -> socket.socket:
        raise OSError("in use")

    monkeypatch.setattr(socket, "create_server", taken)
    with pytest.raises(OSError, match="no free port"):
        Sandbox().start()


def test_a_start_that_fails_says_why_and_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: object) -> None:
        raise OSError("no more sockets")

    monkeypatch.setattr(web.SockSite, "start", fail)
    sandbox = Sandbox()
    with pytest.raises(OSError, match="no more sockets"):
        sandbox.start()
    with pytest.raises(RuntimeError, match="not serving"):
        _ = sandbox.base_url


def test_it_can_be_stopped_and_started_again_with_its_state() -> None:
    sandbox = Sandbox()
    with pytest.raises(RuntimeError, match="not serving"):
        _ = sandbox.base_url
    sandbox.stop()
    with sandbox:
        with pytest.raises(RuntimeError, match="already"):
            sandbox.start()
        headers = {"Authorization": f"Bearer {sandbox.api_key}"}
        sandbox.handle("POST", "/v1/payouts", headers, json.dumps(PAYOUT).encode())
    with sandbox:
        assert len(sandbox.books.payouts()) == 1


def test_leaving_leaves_no_thread() -> None:
    before = threading.active_count()
    with Sandbox():
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


@pytest.mark.parametrize("words", ["lost_request", "lost_response", "reset"])
async def test_a_lost_answer_is_a_broken_connection(session: aiohttp.ClientSession, words: str) -> None:
    async with Sandbox() as sandbox:
        post = poster(sandbox, session)
        with pytest.raises((aiohttp.ServerDisconnectedError, ConnectionResetError, aiohttp.ClientOSError)):
            await post(words)
        async with post(words) as response:
            assert response.headers.get("X-Idempotent-Replayed") == (
                "true" if words == "lost_response" else None
            )
        assert len(sandbox.books.payouts()) == 1


def test_a_reset_is_seen_as_one_by_the_socket() -> None:
    with Sandbox() as sandbox:
        address = urlsplit(sandbox.base_url)
        with socket.create_connection((str(address.hostname), address.port or 0)) as line:
            request = f"GET /v1/payouts HTTP/1.1\r\nHost: {address.netloc}\r\n"
            request += f"Authorization: Bearer {sandbox.api_key}\r\n"
            line.sendall(f"{request}X-Sandbox-Scenario: reset\r\n\r\n".encode())
            with pytest.raises(ConnectionResetError):
                line.recv(1)


async def test_a_cut_body_is_announced_whole_and_ends_early(session: aiohttp.ClientSession) -> None:
    async with Sandbox() as sandbox:
        async with poster(sandbox, session)("cut_body") as response:
            assert response.status == 201
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()
        assert len(sandbox.books.payouts()) == 1


async def test_leaving_cuts_off_what_hangs(session: aiohttp.ClientSession) -> None:
    async with Sandbox() as sandbox:
        hung = asyncio.ensure_future(poster(sandbox, session)("hang").__aenter__())
        await until(lambda: bool(sandbox.requests))
    with pytest.raises(aiohttp.ClientError):
        await hung


async def test_a_line_that_is_gone_already_needs_no_closing(
    session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web.BaseRequest, "transport", None)
    async with Sandbox() as sandbox, poster(sandbox, session)("reset") as response:
        assert response.status == 200


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"limits": 5}, TypeError, "limits must be SandboxLimits, not int"),
        ({"port": 99_999}, ValueError, "port must be 0 to 65535"),
        ({"port": -1}, ValueError, "port must be 0 to 65535"),
        ({"port": "8080"}, TypeError, "port must be a whole number, not str"),
        ({"port": True}, TypeError, "port must be a whole number, not bool"),
    ],
)
def test_what_a_sandbox_cannot_be_made_of_is_refused_at_once(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Sandbox(**options)


def test_a_sandbox_shows_its_address_and_profile_and_no_key() -> None:
    sandbox = Sandbox(profile="hostile")
    assert repr(sandbox) == "Sandbox(not serving, profile='hostile')"
    with sandbox:
        assert repr(sandbox) == f"Sandbox({sandbox.base_url!r}, profile='hostile')"
        assert sandbox.api_key not in repr(sandbox)


_HEAD = b"POST /v1/payouts HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01 no HTTP at all\r\n\r\n",
        b"GET / HTTP/1.1\r\nno header\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: " + b"x" * 20_000 + b"\r\n\r\n",
        _HEAD + b"Content-Length: 1x\r\n\r\n",
        _HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        _HEAD + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    ],
)
def test_what_is_no_http_is_a_400_and_no_traceback(
    sent: bytes, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with Sandbox() as sandbox:
        address = urlsplit(sandbox.origin)
        with socket.create_connection((address.hostname, address.port), timeout=300) as line:
            line.sendall(sent)
            assert line.recv(100).split()[1] == b"400"
            while line.recv(1000):  # until the server has hung up
                pass
    assert (caplog.records, capfd.readouterr().err) == ([], "")


def test_a_fault_of_the_server_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with Sandbox() as sandbox:
        sandbox._answer = None  # type: ignore[assignment, method-assign] # what no caller can bring about
        line = http.client.HTTPConnection(urlsplit(sandbox.origin).netloc, timeout=300)
        line.request("GET", "/v1/payouts")
        assert line.getresponse().status == 500
        line.close()
    assert "TypeError" in caplog.text
