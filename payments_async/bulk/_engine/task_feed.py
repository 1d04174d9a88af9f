"""Sends a limited number of rows at a time, and claims the next ones ahead of need."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from .._protocol.clocks import Timestamps
from .._protocol.records import Claim, LedgerRow

Intended = tuple[LedgerRow, Timestamps]
"""A row whose intent is on the disk, and when it was recorded."""
Claiming = Callable[[], Awaitable[Claim | None]]
"""Records the next intents and gives their rows; None when there are no more."""


class TaskFeed:
    """Gives rows one by one from claims of many; the next claim is made while the last is being sent."""

    def __init__(self, claim: Claiming, low: int) -> None:
        """`low`: with so few rows left, the next claim is begun."""
        self._claim, self._low = claim, low
        self._rows: deque[Intended] = deque()
        self._coming: asyncio.Task[None] | None = None
        self._ended = False
        self._error: BaseException | None = None

    async def take(self) -> Intended | None:
        """Get the next row; None when there are no more."""
        while True:
            if len(self._rows) <= self._low and self._coming is None and not self._ended:
                self._coming = asyncio.ensure_future(self._refill())
            if self._rows:
                return self._rows.popleft()
            if self._coming is None:
                if self._error is not None:
                    raise self._error
                return None
            await asyncio.wait([self._coming])

    async def close(self) -> None:
        """Wait for a running claim: its rows are then in flight, and stay so."""
        if self._coming is not None:
            await asyncio.wait([self._coming])

    async def _refill(self) -> None:
        try:
            claim = await self._claim()
        except Exception as error:
            claim, self._error = None, error
        finally:
            self._coming = None
        self._ended = claim is None
        if claim is not None:
            self._rows.extend((row, claim.at) for row in claim.rows)


async def run_workers(
    claim: Claiming, work: Callable[[LedgerRow, Timestamps], Awaitable[None]], concurrency: int
) -> None:
    """Do `work` on every row that `claim` gives, on `concurrency` at a time; cancelled, it stops all of them.

    Raises the first exception of a piece of work or a claim.
    """
    supply = TaskFeed(claim, concurrency)

    async def lane() -> None:
        while (taken := await supply.take()) is not None:
            await work(*taken)

    lanes = [asyncio.ensure_future(lane()) for _ in range(concurrency)]
    try:
        done, _ = await asyncio.wait(lanes, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for each in lanes:
            each.cancel()
        await asyncio.gather(*lanes, return_exceptions=True)
        await supply.close()
    for each in done:
        each.result()
