"""Fixtures of the tests of workers: short leases, small chunks, a planned batch in a database of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from payments_async.sandbox import Sandbox, SandboxLimits
from tests.support.fleet import Fleet, shorten
from tests.support.one_surface import surface as surface


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch.setattr)


@pytest.fixture
def service() -> Sandbox:
    """A sandbox without limits, on the machine's clock."""
    return Sandbox(limits=SandboxLimits.off())


@pytest_asyncio.fixture
async def fleet(database: str, service: Sandbox) -> AsyncIterator[Fleet]:
    """Workers of one database, in this process."""
    async with Fleet(database, service) as fleet:
        yield fleet
