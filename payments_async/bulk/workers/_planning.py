"""Decides what follows a renewal and a run under leases. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs

from .._engine.sender import LEASE_LOST
from .._protocol.exit_codes import Exit, Stop
from ._reports import RunEnd

if TYPE_CHECKING:
    from .._ledger.postgresql.leases import Lease
    from .._ledger.postgresql.renewing import Renewal

POLL: Final = 1.0
"""Seconds between two questions for work while there is none."""
LOOK_AGAIN: Final = 900.0
"""Seconds until rows that stayed in doubt are due again: by then their last requests have surely ended."""
_LONGEST: Final = 60.0


@attrs.frozen
class Halt:
    """An order to begin no further request."""

    end: RunEnd
    reason: str


LOST: Final = Halt(RunEnd.LOST, LEASE_LOST)


def halt_of(leases: Sequence[Lease], renewal: Renewal) -> Halt | None:
    """The order for the work under some leases after a renewal; None to go on."""
    if any(lease.is_lost for lease in leases):
        return LOST
    for lease in leases:
        if why := renewal.hold_reasons.get(lease.batch.batch):
            return Halt(RunEnd.PAUSED, f"the batch is {why}")
    return None


def end_of(stopped: str | None, halt: Halt | None, leases: Sequence[Lease]) -> RunEnd:
    """How a run ended. `stopped`: why its engine ended early; None if it did not."""
    if halt is not None:
        return halt.end
    if any(lease.is_lost for lease in leases) or stopped == LEASE_LOST:
        return RunEnd.LOST
    return RunEnd.DONE if stopped is None else RunEnd.STOPPED


def connections(slots: int) -> int:
    """The connections that a worker opens: for renewals, each slot, rows in doubt, and the rate limit."""
    return slots + 3


def rest_after(failures: int, stop: Stop) -> float:
    """Seconds to rest after so many failures in a row to reach the service; long where another answers."""
    if stop is Stop.NOT_THE_SERVICE:
        return _LONGEST
    return min(_LONGEST, POLL * 2.0 ** min(failures - 1, 10))


def worker_code(stop: Stop | None, *, failed: bool) -> int:
    """The exit code of a worker. `failed`: it lost the database or the service."""
    if stop is Stop.NO_ACCESS:
        return int(Exit.USAGE)
    return int(Exit.RESUMABLE if failed else Exit.DONE)
