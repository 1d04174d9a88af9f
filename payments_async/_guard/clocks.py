"""The time of a guard's sums: clocks that are set, a restart or a copied process must not bring it forward.

An amount counts until its window has passed, so time that runs late only keeps it longer. Pure but for
`clocks_of` and `ticks`.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from .._runtime import Runtime

HOST_CLOCKS: Final = 300.0  # seconds by which the wall clocks of two hosts may differ
BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
"""Where Linux identifies the time since the machine was started."""


class Clocks(NamedTuple):
    """The clocks that a process reads at one moment, seconds."""

    boot: str
    """Identifies the machine since it was started; '' where that is not known."""
    ticks: float  # passes with the machine, and cannot be set
    clock: float  # that of the state: a database has its own, a file the wall clock
    wall: float

    def since(self, earlier: Clocks) -> float:
        """The seconds that have passed for certain since a process read its clocks, here or elsewhere."""
        if self.boot and self.boot == earlier.boot:
            return max(self.ticks - earlier.ticks, 0.0)
        passed, by_wall = self.clock - earlier.clock, self.wall - earlier.wall
        if passed > by_wall + HOST_CLOCKS:  # the database's clock was set forward
            passed = by_wall - HOST_CLOCKS
        return max(passed, 0.0)


def ticks(runtime: Runtime) -> float:
    """Seconds on a clock of this machine that nobody can set."""
    boottime = runtime.boottime()
    return runtime.monotonic() if boottime is None else boottime


def clocks_of(runtime: Runtime, clock: float | None = None) -> Clocks:
    """The clocks of this process now; `clock`: that of a database."""
    wall = runtime.now().timestamp()
    boot = "" if runtime.boottime() is None else _boot_id()
    return Clocks(boot, ticks(runtime), wall if clock is None else clock, wall)


@cache
def _boot_id() -> str:
    with suppress(OSError):
        return Path(BOOT_ID).read_text(encoding="ascii").strip()
    return ""
