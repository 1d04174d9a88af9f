"""Plugins and fixtures of every test run."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import pytest_asyncio

from payments_async import client as _opening
from payments_async._rate_limit.registry import LimiterRegistry
from payments_async.sandbox import Sandbox, VirtualClock
from tests.support.canary import CANARY_KEY
from tests.support.rawserver import RawServer
from tests.support.servers import PostgresServer, ValkeyServer, postgres_server, valkey_server
from tests.support.snapshots import Snapshots
from tests.support.surfaces import make_client
from tests.support.watched import WatchedSandbox

if TYPE_CHECKING:
    from tests.support.desks import Desk

pytest_plugins = ["pytester", "tests.canary_plugin", "tests.facts_plugin"]

# `benchmarks` and `tools` come from the checkout, last on the path: what is tested is the installed package
sys.path.append(str(Path(__file__).parents[1]))

# a busy machine is no finding: what takes too long altogether, pytest's timeout ends
hypothesis.settings.register_profile(
    "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("patient")

# collecting makes a million objects that stay: looking through them again and again takes half of its time
gc.disable()

KEY = CANARY_KEY
BASE_URL = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True, scope="session")
def _state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests note in the user's state directory goes elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _limits_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A 429 that one test was given closes no gate for the next, though both use the same key."""
    monkeypatch.setattr(_opening, "PROCESS", LimiterRegistry())


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server, one for the session."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    """The address of an empty database of the test's own."""
    with postgres.database() as name:
        yield postgres.url(name)


@pytest.fixture(scope="session")
def valkey() -> Iterator[ValkeyServer]:
    """A Valkey server, one for the session."""
    with valkey_server() as server:
        yield server


@pytest.fixture(params=["async", "sync"])
def surface(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--gap-profile=hostile` runs the client's tests against a sandbox that fills every gap otherwise."""
    parser.addoption("--gap-profile", default="observed", help="observed, strict, alternate or hostile")


@pytest.fixture
def gap_profile(request: pytest.FixtureRequest) -> str:
    """How the sandbox of this run fills the interface's gaps; as observed for tests of just that."""
    if request.node.get_closest_marker("observed"):
        return "observed"
    return str(request.config.getoption("--gap-profile"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A slow test may take ten minutes. Another profile than the usual runs only what uses its sandbox."""
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(600))
    if config.getoption("--gap-profile") == "observed":
        return
    meant = [item for item in items if "gap_profile" in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(meant)])
    items[:] = meant


def pytest_collection_finish() -> None:
    """Leave the tests themselves out of every `gc.collect()`: a quarter of a second each time."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def assert_snapshot(request: pytest.FixtureRequest) -> Snapshots:
    """Compares a shown text with the one that is kept (`tests/support/snapshots.py`)."""
    return Snapshots(request.path, request.node.name)


@pytest.fixture
def server() -> Iterator[RawServer]:
    """A server that sends exactly the bytes it is given."""
    with RawServer() as running:
        yield running


@pytest.fixture
def sandbox(gap_profile: str) -> Iterator[Sandbox]:
    """A sandbox of the test's own, on a clock that stands still until it is advanced."""
    with Sandbox(clock=VirtualClock.frozen(), profile=gap_profile) as sandbox:
        yield sandbox


@pytest.fixture
def watched(gap_profile: str) -> Iterator[WatchedSandbox]:
    """A sandbox of the test's own that keeps every request as it arrived, bodies included."""
    with WatchedSandbox(profile=gap_profile) as sandbox:
        yield sandbox


@pytest.fixture
def desk(surface: str) -> Desk:
    """Where batches of the surface under test are worked on."""
    from tests.support.desks import Desk  # imports the engine, which takes a while

    return Desk(surface)


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


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """A job that a shell runs in the background starts with SIGINT ignored, and would wait for ever."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
