"""Requests as the pipeline would make them, with a secret to look for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from payments_async._http.transport import AiohttpTransport
from payments_async._http.types import HTTPRequest, TransportError
from tests.support.patience import PATIENCE

KEY = "Bearer sk_sandbox_canary_8c1f"
"""Must not be seen anywhere but on the wire."""


def make_request(
    url: str, method: str = "POST", *, body: bytes | None = b"{}", timeout: float = 60
) -> HTTPRequest:
    headers = {"Authorization": KEY, "Accept": "application/json", "X-Idempotency-Key": "key-12345678"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    return HTTPRequest(method, url, headers, body, timeout)


def get(url: str, *, timeout: float = 60) -> HTTPRequest:
    return make_request(url, "GET", body=None, timeout=timeout)


async def cut_short(
    transport: AiohttpTransport,
    url: str,
    arrived: Callable[[HTTPRequest], object] = lambda request: request.sent,
) -> tuple[HTTPRequest, pytest.ExceptionInfo[TransportError]]:
    """An attempt that fails within a short time, and how; with more time if nothing `arrived` within it."""
    for seconds in PATIENCE:
        request = make_request(url, timeout=seconds)
        with pytest.raises(TransportError) as caught:
            await transport.send(request)
        if arrived(request):
            return request, caught
    raise AssertionError("nothing was sent")


async def idle_connections_lost(transport: AiohttpTransport) -> None:
    """Wait until the running loop has seen its idle connections end."""
    opened = transport._loops[asyncio.get_running_loop()]
    connector = opened.session.connector
    assert connector is not None
    pooled = [protocol for pool in connector._conns.values() for protocol, _ in pool]
    for protocol in [*pooled, *(protocol for _, protocol, _ in opened.idle._ready)]:
        if (closed := protocol.closed) is not None:
            await closed
