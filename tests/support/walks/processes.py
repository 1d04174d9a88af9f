"""The processes of a walk, in one loop: each has a client, a clock and a ledger of its own.

A process passes a gate before each transaction and request, and before it looks at an answer. One that is
stopped there does nothing at all, its timers included, until it goes on; one that is killed never does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from tests.support.jumping import JumpingRuntime


class Clock(JumpingRuntime):
    """Jumps once nothing is ready, and no work outside the loop is under way; such work takes turns.

    So a walk is the same each time, however busy the machine is.
    """

    def __init__(self, seed: int, on_jump: Callable[[float], object]) -> None:
        super().__init__(seed, on_jump=on_jump)
        self._turn = asyncio.Lock()

    @contextmanager
    def standing(self) -> Iterator[None]:
        self.busy += 1
        try:
            yield
        finally:
            self.busy -= 1
            self._arm(asyncio.get_running_loop())

    @asynccontextmanager
    async def outside(self) -> AsyncIterator[None]:
        """Context of one piece of work outside the loop: a request, a transaction."""
        async with self._turn:
            with self.standing():
                yield

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop not in self._armed:
            self._armed.add(loop)
            loop.call_soon(self._look, loop)

    def _look(self, loop: Any) -> None:
        if self.busy or all(each.background or each.cancelled for _, _, each in self._timers):
            self._armed.discard(loop)
        elif loop._ready:
            loop.call_soon(self._look, loop)
        else:
            self._jump(loop, self.moves)


class Process:
    """One process: the `Runtime` of its client, what it has opened, and what it does."""

    client: Any
    batch: Any
    running: asyncio.Future[Any]

    def __init__(self, clock: Clock, lineage: int, key: str) -> None:
        self.clock, self.lineage, self.key = clock, lineage, key
        self.random, self.token, self.now = clock.random, clock.token, clock.now
        self.monotonic, self.boottime = clock.monotonic, clock.boottime
        self.stop_after, self.stop_before = 0, ""
        """At which of the next gates it stops, or before what."""
        self.is_dead = False
        self.stopped = asyncio.Event()
        self._going = asyncio.Event()
        self._going.set()
        self._parked: list[tuple[Any, Callable[[], object]]] = []

    async def gate(self, what: str) -> None:
        """Pass, or stop before a transaction, a request (by its method), or the look at an answer."""
        self.stop_after -= 1
        if self.stop_after == 0 or what == self.stop_before:
            self.stop_before = ""
            self._going.clear()
            self.stopped.set()
        await self._going.wait()
        if self.is_dead:
            raise asyncio.CancelledError

    def go_on(self) -> None:
        """Go on: timers that have come meanwhile run now."""
        self.stopped.clear()
        self._going.set()
        parked, self._parked = self._parked, []
        for timer, callback in parked:
            if not timer.cancelled:
                asyncio.get_running_loop().call_soon(callback)

    def call_later(self, delay: float, callback: Callable[[], object], *, background: bool = False) -> Any:
        def come() -> None:
            if self._going.is_set():
                callback()
            else:
                self._parked.append((timer, callback))

        timer = self.clock.call_later(delay, come, background=background)
        return timer

    sleep: Any = JumpingRuntime.sleep


def at_gates(attempt: Callable[..., Any], note: Callable[[str], object]) -> Callable[..., Any]:
    """A database's transaction, before which its process passes a gate; it is counted."""

    async def attempted(database: Any, work: Any, **options: Any) -> Any:
        process: Process = database._runtime
        await process.gate("transaction")
        note(work.__qualname__.partition(".<")[0])
        async with process.clock.outside():
            return await attempt(database, work, **options)

    return attempted
