"""The queue of callers at a rate limiter, and their event loops.

Interactive calls go before bulk calls, otherwise first come, first served. Waiters whose event loop stands
still are passed over until it runs, those of a closed loop are dropped. `limiter` holds the lock and gives
the grants.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from .._runtime import Runtime, Timer, event_loop
from .limits import Priority

NEVER: Final = float("inf")
ASKED: Final = float("-inf")


class LoopWaiters:
    """The waiters of one event loop, and their one timer."""

    __slots__ = ("deadline", "due", "loop", "runtime", "timer", "waiters")

    def __init__(self, loop: asyncio.AbstractEventLoop, runtime: Runtime) -> None:
        self.loop = loop
        self.runtime = runtime
        self.waiters: set[Waiter] = set()
        self.timer: Timer | None = None
        self.due = NEVER
        """Time of this loop's next check: `NEVER` without a timer, `ASKED` when it was called to check."""
        self.deadline = NEVER
        """Earliest time at which a waiter's time may run out."""

    def start_timer(self, now: float, due: float, check: Callable[[], object]) -> None:
        """Check at `due` instead of later; on the group's own loop only."""
        self.stop_timer()
        self.due = due
        self.timer = self.runtime.call_later(max(due - now, 0.0), check)

    def stop_timer(self) -> None:
        """Stop checking; on the group's own loop only."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None
        self.due = NEVER

    def overdue(self, now: float) -> list[Waiter]:
        """The waiters whose time has run out; searches only when there may be one."""
        if now < self.deadline:
            return []
        late = [waiter for waiter in self.waiters if waiter.until <= now]
        self.deadline = min((waiter.until for waiter in self.waiters if waiter.until > now), default=NEVER)
        return late


class Waiter:
    """One waiting caller. `grant` is set before `wake`; it is 0 when the caller's time ran out."""

    __slots__ = ("grant", "group", "priority", "until", "woken")

    def __init__(self, group: LoopWaiters, priority: Priority, until: float) -> None:
        self.group = group
        self.priority = priority
        self.until = until
        self.grant = 0
        self.woken: asyncio.Future[None] = group.loop.create_future()

    def wake(self) -> None:
        """Resume the caller; on its own loop only."""
        if not self.woken.done():
            self.woken.set_result(None)


class WaitQueue:
    """Interactive callers before bulk, first come first served within each."""

    __slots__ = ("bulk", "groups", "interactive")

    def __init__(self) -> None:
        # Ordered sets: a cancelled caller leaves from the middle in one step.
        self.interactive: OrderedDict[Waiter, None] = OrderedDict()
        self.bulk: OrderedDict[Waiter, None] = OrderedDict()
        self.groups: dict[asyncio.AbstractEventLoop, LoopWaiters] = {}

    def join(self, runtime: Runtime, priority: Priority, until: float) -> Waiter:
        """Add a caller on the running loop at the end of the queue."""
        group = self._group(runtime)
        waiter = Waiter(group, priority, until)
        group.waiters.add(waiter)
        group.deadline = min(group.deadline, until)
        self._queue(waiter)[waiter] = None
        return waiter

    def first(self) -> Waiter | None:
        """The next waiter whose loop runs."""
        for queue in (self.interactive, self.bulk):
            for waiter in queue:
                if waiter.group.loop.is_running():
                    return waiter
        return None

    def leave(self, waiter: Waiter) -> None:
        """Remove a waiter, granted or not. On its own loop, a group is dropped with its last waiter."""
        self._queue(waiter).pop(waiter, None)
        waiter.group.waiters.discard(waiter)
        self.end(waiter.group)

    def end(self, group: LoopWaiters) -> None:
        """Drop a group without waiters; from another loop, which cannot stop its timer, it stays."""
        if group.waiters or group.loop is not running_loop():
            return
        group.stop_timer()
        if self.groups.get(group.loop) is group:
            del self.groups[group.loop]

    def has_waiters(self) -> bool:
        """True if a caller waits whose loop is not closed."""
        return any(group.waiters and not loop.is_closed() for loop, group in self.groups.items())

    def _queue(self, waiter: Waiter) -> OrderedDict[Waiter, None]:
        return self.interactive if waiter.priority == "interactive" else self.bulk

    def _group(self, runtime: Runtime) -> LoopWaiters:
        """The running loop's group. Groups of closed loops are dropped."""
        loop = event_loop()
        group = self.groups.get(loop)
        if group is None:
            for closed in [known for known in self.groups if known.is_closed()]:
                for waiter in self.groups.pop(closed).waiters:
                    self._queue(waiter).pop(waiter, None)
            group = self.groups[loop] = LoopWaiters(loop, runtime)
        return group


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The running loop of this thread; None when there is none (in a finaliser)."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
