"""What work on a batch is doing now, reported every five seconds, whether or not anything is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal

import attrs

from .._runtime import Runtime, Timer

EVERY: Final = 5.0
"""Seconds between two reports of progress, at most."""
Doing = Literal["paying", "waiting", "following", "reconciling", "certifying"]


@attrs.frozen
class Waits:
    """Rows in doubt that wait, by what for."""

    again: int = 0
    """To be posted again after a back-off."""
    looked_for: int = 0
    """To be looked for in the service's list."""

    @property
    def why(self) -> str | None:
        """Why they wait, in words; None when none does."""
        reasons = []
        if self.again:
            reasons.append(f"{self.again:,} had no clear answer and will be posted again, unchanged")
        if self.looked_for:
            reasons.append(f"{self.looked_for:,} will be looked for in the service's list")
        return "; ".join(reasons) or None


@attrs.frozen(kw_only=True)
class Activity:
    """What is being done, as of now."""

    doing: Doing
    """`paying`, `waiting` (every other row is decided), `following`, `reconciling` or `certifying`."""
    waiting: int = 0
    """Rows in doubt that wait for their next post or for a look at the service's list."""
    why: str | None = None
    """What these rows wait for, in words; None when none waits."""
    next_look: float | None = None
    """Seconds until the next post of one of them, or the next look at the list; None while that is open."""
    listed: int = 0
    """Payouts that this piece of work has read from the service's list."""


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
