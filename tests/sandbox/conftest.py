"""A sandbox on a frozen clock, and raw requests to it."""

from __future__ import annotations

import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from tests.sandbox.raw_requests import Api


@pytest.fixture
def sandbox() -> Sandbox:
    return Sandbox(clock=VirtualClock.frozen())


@pytest.fixture
def api(sandbox: Sandbox) -> Api:
    return Api(sandbox, sandbox.api_key)


@pytest.fixture
def stranger(sandbox: Sandbox) -> Api:
    """Another project's key."""
    return Api(sandbox, sandbox.new_key())
