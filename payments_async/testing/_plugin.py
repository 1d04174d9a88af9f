"""The pytest plugin: a simulated service, clients for it, and a ledger that must balance.

This module imports pytest and nothing else: what a fixture needs is imported when a test asks for it, so
that a project without them loads nothing, and coverage that starts later misses nothing.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from payments_sync import Payments

    from .. import AsyncPayments
    from ..sandbox import Sandbox
    from ._skipping_clock import SkippingRuntime
    from ._tenant import SandboxClock, SandboxTenant

_TENANT = pytest.StashKey[Any]()
_FAILED = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers", "payments_allow(*rules): the test breaks these rules of the money ledger on purpose"
    )


def pytest_collection_finish() -> None:
    """Adapt aioresponses where a module or conftest has imported it."""
    if "aioresponses" in sys.modules:
        from ._aioresponses import adapt_aioresponses

        adapt_aioresponses()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show a failing test's own lines and its own requests, and note that it failed."""
    tenant = item.stash.get(_TENANT, None)
    error = None if call.excinfo is None else call.excinfo.value
    # with all frames hidden pytest would add a remark to a failure without a traceback
    has_no_traceback = isinstance(error, pytest.fail.Exception) and not error.pytrace
    if tenant is None or error is None or has_no_traceback:
        report = yield
    else:
        from ._verdicts import own_frames_hidden

        with own_frames_hidden():
            report = yield
    if report.failed:
        item.stash[_FAILED] = True
        if tenant is not None and (log := tenant.request_log()):
            report.sections.append(("payments sandbox: requests", log))
    return report


@pytest.fixture(scope="session")
def payments_sandbox_options() -> Mapping[str, Any]:
    """The options of the session's sandbox, such as `{"profile": "hostile"}`: override it in conftest.py."""
    return {}


@pytest.fixture(scope="session")
def payments_sandbox(payments_sandbox_options: Mapping[str, Any]) -> Iterator[Sandbox]:
    """The session's simulated service, in a thread, on a free port; one for each worker of pytest-xdist."""
    from ..sandbox import Sandbox

    with Sandbox(**payments_sandbox_options) as service:
        yield service


@pytest.fixture
def sandbox(request: pytest.FixtureRequest, payments_sandbox: Sandbox) -> Iterator[SandboxTenant]:
    """A fresh tenant of the session's simulated service, in the environment variables, too.

    At the end of the test its money ledger must balance, its fault rules must have been used up, and its key
    is revoked.
    """
    from ._tenant import SandboxTenant
    from ._verdicts import MARK, marker_problem, revoked, verdict

    marks = list(request.node.iter_markers(MARK))
    if (wrong := marker_problem(marks)) is not None:
        pytest.fail(wrong, pytrace=False)
    allowed = frozenset(name for mark in marks for name in mark.args)
    tenant = request.node.stash[_TENANT] = SandboxTenant(payments_sandbox)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAYMENTS_BASE_URL", tenant.base_url)
        patch.setenv("PAYMENTS_API_KEY", tenant.api_key)
        yield tenant
    wrong = verdict(tenant, allowed, passed=not request.node.stash.get(_FAILED, False))
    tenant.close(revoked(request.node.nodeid))
    if wrong is not None:
        pytest.fail(wrong, pytrace=False)


@pytest.fixture
def sandbox_clock(sandbox: SandboxTenant) -> SandboxClock:
    """The sandbox's clock: `advance(seconds)` skips ahead."""
    from ._tenant import SandboxClock

    return SandboxClock(sandbox.service)


@pytest.fixture
def payments_client_options() -> Mapping[str, Any]:
    """Options of both clients, such as `{"max_retries": 0}`: override it where you need others."""
    return {}


@pytest.fixture
def _payments_runtime(sandbox: SandboxTenant) -> SkippingRuntime:
    from ._skipping_clock import SkippingRuntime

    return SkippingRuntime(sandbox)


@pytest.fixture
def payments_client(
    sandbox: SandboxTenant, _payments_runtime: SkippingRuntime, payments_client_options: Mapping[str, Any]
) -> AsyncPayments:
    """An `AsyncPayments` of the test's tenant. Its waits move the sandbox's clock instead of taking time.

    Not a coroutine, so that it works with every plugin that runs coroutines, and without one: its
    connections are closed with the event loop that used them.
    """
    from .. import AsyncPayments
    from ._verdicts import client_options

    return AsyncPayments(**client_options(sandbox, _payments_runtime, payments_client_options))


@pytest.fixture
def sync_payments_client(
    sandbox: SandboxTenant, _payments_runtime: SkippingRuntime, payments_client_options: Mapping[str, Any]
) -> Iterator[Payments]:
    """A `Payments` of the test's tenant. Its waits move the sandbox's clock instead of taking time."""
    from payments_sync import Payments

    from ._verdicts import client_options

    with Payments(**client_options(sandbox, _payments_runtime, payments_client_options)) as client:
        yield client
