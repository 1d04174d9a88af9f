"""The way onto another thread's event loop: one wake-up for all the calls that came meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from ._blocking_call import Hop


class Line:
    """Takes hops to one event loop, from any thread. Made on that loop.

    Nothing here takes a lock, so that a garbage collector's finalizer may post in the middle of anything.
    What makes that safe is the order of steps: a poster appends a hop before it looks whether the line is
    closed, and the loop closes the line before it empties it.
    """

    __slots__ = ("_awake", "_hops", "_running", "closed", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.closed = False
        """Nothing is taken any more: the loop is ending, or it is a parent process's."""
        self._hops: deque[Hop[Any]] = deque()
        self._running: dict[Hop[Any], asyncio.Task[None]] = {}
        self._awake = False

    def post(self, hop: Hop[Any]) -> bool:
        """Have the hop run. False when the line is closed: it does not run."""
        if self.closed:
            return False
        self._hops.append(hop)
        if not self._awake:
            self._awake = True
            try:
                self.loop.call_soon_threadsafe(self._empty)
            except RuntimeError:  # the loop was closed a moment ago
                pass
            except BaseException:  # Ctrl-C just now: whoever came meanwhile counts on this wake-up
                self._awake = False
                self.tell(self._empty)
                raise
        return not self.closed or not self._withdrawn(hop)

    def leave(self, hop: Hop[Any]) -> None:
        """Have a hop run whose end nobody waits for. A closed line just keeps it, and what it holds."""
        if not self.post(hop):
            self._hops.append(hop)

    def cancel(self, hop: Hop[Any]) -> None:
        """End a hop, wherever it is; without a loop it runs nowhere."""
        if not self.tell(hop.cancel):
            hop.cancel()

    def tell(self, order: Callable[[], object]) -> bool:
        """Have the loop carry out a plain function, after whatever was posted before. False: it is gone."""
        try:
            self.loop.call_soon_threadsafe(order)
        except RuntimeError:
            return False
        return True

    async def cancel_others(self) -> None:
        """End every hop but the one that runs this."""
        current = asyncio.current_task()
        for hop in self._running:
            if hop.task is not current:
                hop.cancel()

    async def serve(self, until_stopped: Callable[[], Awaitable[None]]) -> None:
        """Take hops until told to stop; then let those under way come to their end."""
        threading.current_thread().name = "payments-sync"
        await until_stopped()
        self.closed = True
        self._empty()
        while self._running:
            await asyncio.wait(self._running.values())

    def _empty(self) -> None:
        self._awake = False
        hops = self._hops
        while hops:
            hop = hops.popleft()
            self._running[hop] = self.loop.create_task(hop.run(self._running), context=hop.context)

    def _withdrawn(self, hop: Hop[Any]) -> bool:
        """Take a hop back, unless the loop has taken it first."""
        try:
            self._hops.remove(hop)
        except ValueError:
            return False
        return True
