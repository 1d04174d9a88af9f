"""Fixtures of the tests of batches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.batches import steady_ledgers

if TYPE_CHECKING:
    from tests.support.desks import Desk


@pytest.fixture(autouse=True)
def _steady() -> Iterator[None]:
    """What ledgers do takes no time on a jumping clock."""
    with steady_ledgers():
        yield


@pytest.fixture
def service() -> Sandbox:
    """A sandbox without limits, on a clock that is moved along."""
    return Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())


@pytest_asyncio.fixture
async def batch(desk: Desk, service: Sandbox, tmp_path: Path) -> AsyncIterator[Any]:
    """An open batch at `tmp_path / "l"` whose client pays at the `service`."""
    async with desk.client(service) as client, desk.open(tmp_path / "l", client) as batch:
        yield batch
