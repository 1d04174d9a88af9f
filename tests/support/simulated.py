"""Simulated time: an event loop that jumps to its next timer instead of waiting for it."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, TypeVar

from payments_async._runtime import SYSTEM as SYSTEM
from payments_async._runtime import SystemRuntime as SystemRuntime
from payments_async._runtime import Timer

T = TypeVar("T")
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class _JumpingSelector(selectors.DefaultSelector):
    """Never blocks for a timer: what the loop would have slept is added to its clock."""

    elapsed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if events or timeout == 0:
            return events
        if timeout is None:
            return super().select(None)
        self.elapsed += timeout
        return []


class SimulatedLoop(asyncio.SelectorEventLoop):
    """A loop on simulated time. Only for code that stays inside the process."""

    def __init__(self) -> None:
        self._jumps = _JumpingSelector()
        super().__init__(self._jumps)

    def time(self) -> float:
        return self._jumps.elapsed


class SimulatedRuntime:
    """A `Runtime` on the clock of the running `SimulatedLoop`, with seeded chance."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = random.Random(seed)
        self.random = self._rng.random
        self.token = self._rng.randbytes
        self.timers = 0
        """How many were set."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def boottime(self) -> float:
        return self.monotonic()

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.monotonic())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, delay: float, callback: Callable[[], object], *, background: bool = False) -> Timer:
        self.timers += 1
        return asyncio.get_running_loop().call_later(delay, callback)


def run_simulated(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)


def simulated(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        run_simulated(test())

    return run
