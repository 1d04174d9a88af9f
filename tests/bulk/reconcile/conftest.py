"""One surface here; `tests/bulk/*.py` and `tests/sync/` show that the blocking batch does the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.one_surface import surface as surface


@pytest.fixture
def service() -> Iterator[Sandbox]:
    """A sandbox on a socket, without limits, on a clock that is moved along."""
    with Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off()) as sandbox:
        yield sandbox
