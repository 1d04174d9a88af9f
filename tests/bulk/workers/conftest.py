"""Fixtures of the tests of workers: brisk ones, small chunks, a database of its own for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from payments_async.sandbox import Sandbox, SandboxLimits
from tests.support.fleet import BRIEF, BRISK, Fleet, shorten
from tests.support.one_surface import surface as surface


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch.setattr, BRISK)


@pytest.fixture
def brief_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases that end while the test waits."""
    shorten(monkeypatch.setattr, BRIEF)


@pytest.fixture
def service() -> Sandbox:
    """A sandbox without limits, on the machine's clock."""
    return Sandbox(limits=SandboxLimits.off())


@pytest_asyncio.fixture
async def fleet(database: str, service: Sandbox) -> AsyncIterator[Fleet]:
    """Workers of one database, in this process."""
    async with Fleet(database, service) as fleet:
        yield fleet
