"""Plugins and fixtures of every test run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio

from payments_async import client
from payments_async._limiters import Limiters
from payments_async.sandbox import Sandbox, VirtualClock
from tests.support.canary import CANARY_KEY
from tests.support.surfaces import make_client
from tests.support.watched import WatchedSandbox

pytest_plugins = ["pytester", "tests.canary_plugin", "tests.facts_plugin"]

KEY = CANARY_KEY
BASE_URL = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def _limits_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A 429 that one test was given closes no gate for the next, though both use the same key."""
    monkeypatch.setattr(client, "PROCESS", Limiters())


@pytest.fixture(params=["async", "sync"])
def surface(request: pytest.FixtureRequest) -> str:
    """Which client the test drives."""
    return str(request.param)


@pytest.fixture(scope="session")
def sandbox_server() -> Iterator[Sandbox]:
    """One sandbox for the run; take `sandbox` for a tenant of your own."""
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox of the test's own, on a clock that stands still until it is advanced."""
    with Sandbox(clock=VirtualClock.frozen()) as sandbox:
        yield sandbox


@pytest.fixture
def watched() -> Iterator[WatchedSandbox]:
    """A sandbox of the test's own that keeps every request as it arrived, bodies included."""
    with WatchedSandbox() as sandbox:
        yield sandbox


@pytest_asyncio.fixture
async def connect(surface: str) -> AsyncIterator[Callable[..., Any]]:
    """Makes clients of the surface under test; all are closed afterwards.

    `connect(sandbox)` talks to a sandbox; `connect(transport=...)` to a scripted service.
    """
    clients: list[Any] = []

    def make(sandbox: Sandbox | None = None, **options: Any) -> Any:
        defaults: dict[str, Any] = {"api_key": KEY, "base_url": BASE_URL}
        if sandbox is not None:
            defaults = {"api_key": sandbox.api_key, "base_url": sandbox.base_url}
        client = make_client(surface, **{**defaults, **options})
        clients.append(client)
        return client

    yield make
    for made in clients:
        await made.aclose()
