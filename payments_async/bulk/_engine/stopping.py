"""Ends a run before the batch is complete, and interrupts its waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..._runtime import Runtime
from .._protocol.exit_codes import Stop


class Stopping:
    """The state of a run that ends early, in three degrees.

    Closed, it takes no new rows and finishes the others. Draining, it does the same within a
    bounded time, and searches for none in doubt. Halted, it starts no further request at all.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._resting: dict[asyncio.Future[None], bool] = {}
        self.reason: str | None = None
        """The reason in words; the first one stays."""
        self.kind: Stop = Stop.TEMPORARY
        """The change that is needed before the work can continue, by the first reason."""
        self.closed: bool = False
        self.draining: bool = False
        self.halted: bool = False
        self.rests_until: float | None = None
        """The time until which all work pauses, on the runtime's monotonic clock; None while it does not."""
        self.room_in: float | None = None
        """Seconds after which a guard's sums may have room, where it ended for want of that."""
        self.on_drain: Callable[[], object] = bool
        """Called when draining begins."""

    def close(self, reason: str, kind: Stop = Stop.TEMPORARY) -> None:
        """Take no new rows."""
        self.closed = True
        if self.reason is None:
            self.reason, self.kind = reason, kind

    def drain(self, reason: str, kind: Stop = Stop.TEMPORARY) -> None:
        """Take no new rows, and finish those being sent."""
        self.close(reason, kind)
        if not self.draining:
            self.draining = True
            self.on_drain()
        self.wake(deep=False)

    def drain_for_room(self, reason: str, seconds: float) -> None:
        """Drain, because a guard's sums may have room in so many seconds only."""
        self.drain(reason)
        self.room_in = seconds

    def halt(self, reason: str, kind: Stop = Stop.TEMPORARY) -> None:
        """Start no further request; rows not answered yet stay in flight, for the next run."""
        self.halted = True
        self.drain(reason, kind)
        self.wake()

    async def rest(self, seconds: float, *, deep: bool) -> None:
        """Pause for so many seconds; a halt ends the pause, and draining too unless it is `deep`."""
        if self.halted or (self.draining and not deep):
            return
        rested = asyncio.get_running_loop().create_future()
        self._resting[rested] = deep
        if not deep:
            self.rests_until = self._runtime.monotonic() + seconds
        timer = self._runtime.call_later(max(seconds, 0.0), lambda: _wake(rested))
        try:
            await rested
        finally:
            timer.cancel()
            del self._resting[rested]
            if not deep:
                self.rests_until = None

    def wake(self, *, deep: bool = True) -> None:
        """End the pauses: all, or those that are not deep."""
        for resting, is_deep in self._resting.items():
            if deep or not is_deep:
                _wake(resting)


def _wake(resting: asyncio.Future[None]) -> None:
    if not resting.done():
        resting.set_result(None)
