"""Fixtures of the transport's tests: a raw server, and the transport written in each of its ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from payments_async._http import session
from payments_async._http import transport as _transport
from payments_async._http.transport import AiohttpTransport
from payments_async._runtime import SYSTEM
from tests.support.rawserver import RawServer

MakeTransport = Callable[..., AiohttpTransport]


@pytest.fixture
def server() -> Iterator[RawServer]:
    with RawServer() as running:
        yield running


@pytest.fixture(params=["lean", "plain", "aiohttp"])
def style(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with each way to write requests; the last leaves it to aiohttp, as an unknown one is."""
    name: str = request.param
    monkeypatch.setattr(_transport, "lean_supported", lambda: name == "lean")
    monkeypatch.setattr(session, "_FAMILIAR", name != "aiohttp")
    return name


@pytest.fixture
def make_transport(style: str) -> MakeTransport:
    def make(**options: object) -> AiohttpTransport:
        return AiohttpTransport(runtime=SYSTEM, **options)  # type: ignore[arg-type] # a pass-through

    return make


@pytest.fixture
def transport(make_transport: MakeTransport) -> AiohttpTransport:
    return make_transport()
