"""Fixtures of the transport's tests: a raw server, and the transport in each of its ways to send."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from payments_async._http import transport as _transport
from payments_async._http.transport import AiohttpTransport
from payments_async._http.types import CommonHeaders as CommonHeaders
from payments_async._http.types import Secret as Secret
from payments_async._runtime import SYSTEM

MakeTransport = Callable[..., AiohttpTransport]

BOTH = pytest.mark.parametrize("way", ["direct", "session"])
"""Run a test over both ways to send: for failures, bytes, cancellation and TLS. The others need one."""


@pytest.fixture
def way() -> str:
    """How requests are sent, unless the test says otherwise (`BOTH`)."""
    return "direct"


@pytest.fixture
def make_transport(way: str, monkeypatch: pytest.MonkeyPatch) -> MakeTransport:
    monkeypatch.setattr(_transport, "is_supported", lambda: way == "direct")

    def make(**options: object) -> AiohttpTransport:
        return AiohttpTransport(runtime=SYSTEM, **options)  # type: ignore[arg-type] # a pass-through

    return make


@pytest.fixture
def transport(make_transport: MakeTransport) -> AiohttpTransport:
    return make_transport()
