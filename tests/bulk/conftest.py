"""Fixtures of the tests of batches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.batches import steady_ledgers


@pytest.fixture(autouse=True)
def _steady() -> Iterator[None]:
    """What ledgers do takes no time on a jumping clock."""
    with steady_ledgers():
        yield


@pytest.fixture
def service() -> Sandbox:
    """A sandbox without limits, on a clock that is moved along."""
    return Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())
