"""The callers that wait at a rate limiter: on which event loop, and in which order.

Interactive calls go before bulk calls, otherwise first come, first served. A waiter whose event loop stands
still when its turn comes is passed over, and comes back when the loop moves. The waiters of a closed loop
are dropped. Bookkeeping only: `limiter` holds the lock and gives the grants.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Literal

from .._runtime import Runtime, Timer, event_loop

Priority = Literal["interactive", "bulk"]
NEVER: Final = float("inf")
ASKED: Final = float("-inf")


class LoopWaiters:
    """The waiters of one event loop, and their one timer."""

    __slots__ = ("deadline", "due", "loop", "passed_over", "runtime", "timer", "waiters")

    def __init__(self, loop: asyncio.AbstractEventLoop, runtime: Runtime) -> None:
        self.loop = loop
        self.runtime = runtime
        self.waiters: set[Waiter] = set()
        self.passed_over: list[Waiter] = []
        """Not in the queue, because their loop stood still when their turn came."""
        self.timer: Timer | None = None
        self.due = NEVER
        """When this loop checks again: `NEVER` without a timer, `ASKED` when it has been called to."""
        self.deadline = NEVER
        """No waiter's time runs out before this."""

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
        """The waiters whose time has run out; searched only when there may be one."""
        if now < self.deadline:
            return []
        late = [waiter for waiter in self.waiters if waiter.until <= now]
        self.deadline = min((waiter.until for waiter in self.waiters if waiter.until > now), default=NEVER)
        return late


class Waiter:
    """One caller. `grant` is set before it is woken; it is still 0 then when the caller's time ran out."""

    __slots__ = ("grant", "group", "priority", "until", "woken")

    def __init__(self, group: LoopWaiters, priority: Priority, until: float) -> None:
        self.group = group
        self.priority = priority
        self.until = until
        self.grant = 0
        self.woken: asyncio.Future[None] = group.loop.create_future()

    def wake(self) -> None:
        """Let it go on; on its own loop only."""
        if not self.woken.done():
            self.woken.set_result(None)


class WaitQueue:
    """Interactive callers before bulk, first come first served within each.

    A caller whose loop stands still when its turn comes steps aside, and comes back when the loop moves.
    """

    __slots__ = ("bulk", "groups", "interactive")

    def __init__(self) -> None:
        # Ordered sets: a cancelled caller leaves from the middle in one step.
        self.interactive: OrderedDict[Waiter, None] = OrderedDict()
        self.bulk: OrderedDict[Waiter, None] = OrderedDict()
        self.groups: dict[asyncio.AbstractEventLoop, LoopWaiters] = {}

    def join(self, runtime: Runtime, priority: Priority, until: float) -> Waiter:
        """A place at the end for a caller on the running loop."""
        group = self._group(runtime)
        waiter = Waiter(group, priority, until)
        group.waiters.add(waiter)
        group.deadline = min(group.deadline, until)
        self._queue(waiter)[waiter] = None
        return waiter

    def first(self) -> Waiter | None:
        """The next whose loop runs."""
        for queue in (self.interactive, self.bulk):
            while queue:
                waiter = next(iter(queue))
                if waiter.group.loop.is_running():
                    return waiter
                queue.pop(waiter)
                waiter.group.passed_over.append(waiter)
        return None

    def leave(self, waiter: Waiter) -> None:
        """Remove a waiter, granted or not. A group ends with its last waiter, if this is its loop."""
        self._queue(waiter).pop(waiter, None)
        waiter.group.waiters.discard(waiter)
        self.end(waiter.group)

    def end(self, group: LoopWaiters) -> None:
        """Forget a group without waiters; from another loop, where its timer is out of reach, it stays."""
        if group.waiters or group.loop is not running_loop():
            return
        group.stop_timer()
        if self.groups.get(group.loop) is group:
            del self.groups[group.loop]

    def come_back(self, group: LoopWaiters) -> None:
        """Put those who were passed over at the end of the queue again."""
        for waiter in group.passed_over:
            if waiter in group.waiters:
                self._queue(waiter)[waiter] = None
        group.passed_over.clear()

    def has_waiters(self) -> bool:
        """Whether a caller waits that can still be served."""
        return any(group.waiters and not loop.is_closed() for loop, group in self.groups.items())

    def _queue(self, waiter: Waiter) -> OrderedDict[Waiter, None]:
        return self.interactive if waiter.priority == "interactive" else self.bulk

    def _group(self, runtime: Runtime) -> LoopWaiters:
        """The running loop's group. Parties of loops closed meanwhile are forgotten on the way."""
        loop = event_loop()
        group = self.groups.get(loop)
        if group is None:
            self.groups = {known: group for known, group in self.groups.items() if not known.is_closed()}
            group = self.groups[loop] = LoopWaiters(loop, runtime)
        return group


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop of this thread, None outside of any (a finaliser may run there)."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
