"""Fixtures of the tests of batches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.batches import steady_ledgers

if TYPE_CHECKING:
    from tests.support.desks import Desk, Pay


@pytest.fixture(autouse=True)
def _steady() -> Iterator[None]:
    """What ledgers do takes no time on a jumping clock."""
    with steady_ledgers():
        yield


@pytest.fixture
def service() -> Sandbox:
    """A sandbox without limits, on a clock that is moved along."""
    return Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where the ledger of a batch is: the file `tmp_path / "l"`, or under `EITHER` a database too."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return tmp_path / "l"
    return str(request.getfixturevalue("database"))


@pytest_asyncio.fixture
async def client(desk: Desk, service: Sandbox) -> AsyncIterator[Any]:
    async with desk.client(service) as client:
        yield client


@pytest_asyncio.fixture
async def batch(desk: Desk, client: Any, place: Path | str) -> AsyncIterator[Any]:
    async with desk.open(place, client) as batch:
        yield batch


@pytest.fixture
def pay(desk: Desk, client: Any, place: Path | str) -> Pay:
    """Opens, loads and runs the batch at `place` once, with these rows and options."""
    return partial(desk.paid, place, client)
