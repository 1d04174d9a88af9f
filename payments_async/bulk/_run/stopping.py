"""Ends a run before the batch is complete, and interrupts its waits; when rejected rows pause a batch."""

from __future__ import annotations

import asyncio
from typing import Final

from ..._runtime import Runtime
from .._protocol.exit_codes import Stop


class Stopping:
    """Whether a run ends early, and why. Draining, it begins no request, and finishes what has left."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._resting: dict[asyncio.Future[None], bool] = {}
        """{one that rests: whether news ends its rest}."""
        self.reason: str | None = None  # the reason in words; the first one stays
        self.kind: Stop = Stop.TEMPORARY
        """The change that is needed before the work can continue, by the first reason."""
        self.draining: bool = False

    def drain(self, reason: str, kind: Stop = Stop.TEMPORARY) -> None:
        """Take no more rows, and give back those that were not begun."""
        if self.reason is None:
            self.reason, self.kind = reason, kind
        self.draining = True
        self.wake()

    def wake(self, *, news: bool = False) -> None:
        """End the pauses; `news`: of those only that end with news."""
        for rested, until_news in self._resting.items():
            if until_news or not news:
                _wake(rested)

    async def rest(self, seconds: float, *, until_news: bool = False) -> None:
        """Pause for so many seconds; draining ends the pause, and news where it is waited for."""
        if self.draining:
            return
        rested = asyncio.get_running_loop().create_future()
        self._resting[rested] = until_news
        timer = self._runtime.call_later(max(seconds, 0.0), lambda: _wake(rested))
        try:
            await rested
        finally:
            timer.cancel()
            del self._resting[rested]


def _wake(resting: asyncio.Future[None]) -> None:
    if not resting.done():
        resting.set_result(None)


_ENOUGH: Final = 20


def too_many_failures(rate: float | None, decided: int, failed: int) -> str | None:
    """Give the reason why a batch is paused, by what this process has seen; None while it may go on.

    `rate`: the largest share of rows that may be rejected; applied from twenty rows on.
    """
    if rate is None or decided < _ENOUGH or failed <= decided * rate:
        return None
    return f"{failed} of {decided} rows rejected, more than --max-failure-rate allows"
