"""Hostile servers on a real socket, through the whole client: no crash, no hang, no false success."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pytest

from payments_async.errors import APIStatusError, DecodeError, OutcomeUnknown
from tests.support.bodies import encoded
from tests.support.calls import OPERATIONS
from tests.support.patience import bounded_memory
from tests.support.rawserver import RawServer
from tests.support.surfaces import Connect

MIB = 1024 * 1024
one_surface = pytest.mark.parametrize("surface", ["async"], indirect=True)
"""The mirror reads no bytes itself."""
BODY = encoded(OPERATIONS["payouts.create"].body)
CREATE, READ = "/v1/payouts", "/v1/payouts/po_1/sync"


@pytest.fixture
def client(connect: Connect, server: RawServer) -> Any:
    return connect(base_url=server.url("/v1"), max_retries=0, timeout=60.0)


def http(body: bytes = BODY, *head: str, status: str = "200 OK", length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", *head, f"Content-Length: {len(body) if length is None else length}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def create(client: Any) -> Any:
    return OPERATIONS["payouts.create"].call(client)


def read(client: Any) -> Any:
    return OPERATIONS["payouts.sync"].call(client)


LARGE: dict[str, Callable[[], bytes]] = {
    "a length of 10 GB": lambda: http(BODY, length=10**10),
    "a bomb": lambda: http(gzip.compress(bytes(100 * MIB), compresslevel=1), "Content-Encoding: gzip"),
}


@one_surface
@pytest.mark.parametrize("large", LARGE)
async def test_of_too_large_an_answer_16_mib_are_read(server: RawServer, client: Any, large: str) -> None:
    server.scripts[CREATE] = server.scripts[READ] = [LARGE[large]()]
    with pytest.raises(DecodeError):
        await read(client)  # everything is loaded now
    with bounded_memory(17 * MIB):
        with pytest.raises(DecodeError) as failed:
            await read(client)
        with pytest.raises(OutcomeUnknown) as doubtful:
            await create(client)
    assert failed.value.effect == "none"
    assert isinstance(doubtful.value.__cause__, DecodeError)


@one_surface
async def test_a_list_of_a_million_is_refused_before_any_is_made(server: RawServer, client: Any) -> None:
    page = b'{"data":[' + b",".join([b"{}"] * 1_398_000) + b"]}"
    server.scripts = {"/v1/payouts": [http(gzip.compress(page, 1), "Content-Encoding: gzip")]}
    # the body twice, compressed and in pieces, and no object of its JSON
    with bounded_memory(16 * MIB), pytest.raises(DecodeError, match="more than 1,000 records"):
        await client.payouts.list()


@pytest.mark.parametrize("status", ["302 Found", "307 Temporary"])
async def test_a_redirect_is_never_followed(server: RawServer, client: Any, status: str) -> None:
    redirect = http(BODY, f"Location: {server.url('/elsewhere')}", status=status)
    server.scripts = {CREATE: [redirect], READ: [redirect]}
    with pytest.raises(OutcomeUnknown):
        await create(client)
    with pytest.raises(APIStatusError) as caught:
        await read(client)
    assert caught.value.status == int(status[:3])
    assert [request.split()[1].decode() for request in server.requests] == [CREATE, READ]


async def test_204_says_nothing_about_a_creation(server: RawServer, client: Any) -> None:
    nothing = b"HTTP/1.1 204 No Content\r\n\r\n"
    server.scripts = {CREATE: [nothing], READ: [nothing]}
    with pytest.raises(OutcomeUnknown):
        await create(client)
    with pytest.raises(DecodeError) as caught:
        await read(client)
    assert caught.value.effect == "none"
