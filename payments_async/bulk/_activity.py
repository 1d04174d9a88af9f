"""The present activity of work on a batch, reported every five seconds even if nothing is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal

import attrs

from .._runtime import Runtime, Timer

EVERY: Final = 5.0  # seconds between two reports of progress, at most
Doing = Literal["paying", "waiting", "reading", "following", "reconciling"]


@attrs.frozen(kw_only=True)
class Activity:
    """The present activity of a batch."""

    doing: Doing
    """`paying`, `waiting` (every other row is decided), `reading` (the list, for these rows), `following` or
    `reconciling`."""
    why: str | None = None
    """What rows wait for, in words; None when none waits."""
    next_look: float | None = None
    """Seconds until the next post of a waiting row, or the next reading of the list; None while undecided."""
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
