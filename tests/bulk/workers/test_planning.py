"""What follows a run under leases, decided from values."""

from __future__ import annotations

import pytest

from payments_async.bulk._engine.sender import LEASE_LOST
from payments_async.bulk.workers import RunEnd
from payments_async.bulk.workers._planning import LOST, Halt, end_of


@pytest.mark.parametrize(
    ("stopped", "halt", "end"),
    [
        (None, None, RunEnd.DONE),
        ("stopped", None, RunEnd.STOPPED),
        (LEASE_LOST, None, RunEnd.LOST),
        ("stopped", LOST, RunEnd.LOST),
        (None, Halt(RunEnd.PAUSED, "paused"), RunEnd.PAUSED),
    ],
)
def test_how_a_run_ended(stopped: str | None, halt: Halt | None, end: RunEnd) -> None:
    assert end_of(stopped, halt, []) is end
