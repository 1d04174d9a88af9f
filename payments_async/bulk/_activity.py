"""The present activity of work on a batch, reported every five seconds even if nothing is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal

import attrs

from .._runtime import Runtime, Timer

EVERY: Final = 5.0
"""Seconds between two reports of progress, at most."""
Doing = Literal["paying", "waiting", "reading", "following", "reconciling"]


@attrs.frozen
class Waits:
    """What a run does, and the rows in doubt that wait meanwhile, counted by what they wait for."""

    doing: Doing = "paying"
    """`waiting` while only rows in doubt are left, or new ones have no room; `reading` while the list is read
    for rows in doubt."""
    again: int = 0
    """Rows to be posted again after a back-off."""
    looked_for: int = 0
    """Rows to be searched for in the service's list."""
    next_post: float | None = None
    """The time of the next post of a waiting row, on the runtime's monotonic clock; None without one."""
    room: str | None = None
    """Why new rows wait for room in a guard's sums; None while they do not."""

    @property
    def why(self) -> str | None:
        """Describe what the rows wait for; None when none waits."""
        reasons = [] if self.room is None else [self.room]
        if self.again:
            reasons.append(f"{self.again:,} had no clear answer and will be posted again, unchanged")
        if self.looked_for:
            reasons.append(f"{self.looked_for:,} will be looked for in the service's list")
        return "; ".join(reasons) or None


@attrs.frozen(kw_only=True)
class Activity:
    """The present activity of a batch."""

    doing: Doing
    """`paying`, `waiting` (every other row is decided), `reading` (the list, for these rows), `following` or
    `reconciling`."""
    waiting: int = 0
    """Rows in doubt that wait for their next post or for a scan of the service's list."""
    why: str | None = None
    """The reason why these rows wait, in words; None when none waits."""
    next_look: float | None = None
    """Seconds until the next post of a waiting row, or the next scan of the list; None while undecided."""
    listed: int = 0
    """Payouts that this work has read from the service's list."""


@contextmanager
def repeated(runtime: Runtime, report: Callable[[], object]) -> Iterator[None]:
    """Call `report` every five seconds of the runtime's time."""
    timer: Timer

    def beat() -> None:
        nonlocal timer
        timer = runtime.call_later(EVERY, beat, background=True)
        report()

    timer = runtime.call_later(EVERY, beat, background=True)
    try:
        yield
    finally:
        timer.cancel()
