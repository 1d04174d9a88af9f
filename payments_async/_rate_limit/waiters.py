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
    """The waiters of one event loop, and the one timer that looks after them."""

    __slots__ = ("deadline", "due", "loop", "passed_over", "runtime", "timer", "waiters")

    def __init__(self, loop: asyncio.AbstractEventLoop, runtime: Runtime) -> None:
        self.loop = loop
        self.runtime = runtime
        self.waiters: set[Waiter] = set()
        self.passed_over: list[Waiter] = []
        """Out of line, because their loop stood still when their turn came."""
        self.timer: Timer | None = None
        self.due = NEVER
        """When this loop looks again: `NEVER` without a timer, `ASKED` when it has been called to."""
        self.deadline = NEVER
        """No waiter's time runs out before this."""

    def start_timer(self, now: float, due: float, look: Callable[[], object]) -> None:
        """Look at `due` instead of later; on the party's own loop only."""
        self.stop_timer()
        self.due = due
        self.timer = self.runtime.call_later(max(due - now, 0.0), look)

    def stop_timer(self) -> None:
        """Look no more; on the party's own loop only."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None
        self.due = NEVER

    def overdue(self, now: float) -> list[Waiter]:
        """The waiters whose time has run out, looked for only when there may be one."""
        if now < self.deadline:
            return []
        late = [waiter for waiter in self.waiters if waiter.until <= now]
        self.deadline = min((waiter.until for waiter in self.waiters if waiter.until > now), default=NEVER)
        return late


class Waiter:
    """One caller. `grant` is set before it is woken; it is still 0 then when the caller's time ran out."""

    __slots__ = ("grant", "party", "priority", "until", "woken")

    def __init__(self, party: LoopWaiters, priority: Priority, until: float) -> None:
        self.party = party
        self.priority = priority
        self.until = until
        self.grant = 0
        self.woken: asyncio.Future[None] = party.loop.create_future()

    def wake(self) -> None:
        """Let it go on; on its own loop only."""
        if not self.woken.done():
            self.woken.set_result(None)


class WaitQueue:
    """Interactive callers before bulk, first come first served within each.

    A caller whose loop stands still when its turn comes steps aside, and comes back when the loop moves.
    """

    __slots__ = ("bulk", "interactive", "parties")

    def __init__(self) -> None:
        # Ordered sets: a cancelled caller leaves from the middle in one step.
        self.interactive: OrderedDict[Waiter, None] = OrderedDict()
        self.bulk: OrderedDict[Waiter, None] = OrderedDict()
        self.parties: dict[asyncio.AbstractEventLoop, LoopWaiters] = {}

    def join(self, runtime: Runtime, priority: Priority, until: float) -> Waiter:
        """A place at the end for a caller on the running loop."""
        party = self._party(runtime)
        waiter = Waiter(party, priority, until)
        party.waiters.add(waiter)
        party.deadline = min(party.deadline, until)
        self._queue(waiter)[waiter] = None
        return waiter

    def first(self) -> Waiter | None:
        """The next whose loop runs."""
        for queue in (self.interactive, self.bulk):
            while queue:
                waiter = next(iter(queue))
                if waiter.party.loop.is_running():
                    return waiter
                queue.pop(waiter)
                waiter.party.passed_over.append(waiter)
        return None

    def leave(self, waiter: Waiter) -> None:
        """Out of line, granted or not. A party ends with its last waiter, if this is its loop."""
        self._queue(waiter).pop(waiter, None)
        waiter.party.waiters.discard(waiter)
        self.end(waiter.party)

    def end(self, party: LoopWaiters) -> None:
        """Forget a party without waiters; from another loop, where its timer is out of reach, it stays."""
        if party.waiters or party.loop is not running_loop():
            return
        party.stop_timer()
        if self.parties.get(party.loop) is party:
            del self.parties[party.loop]

    def come_back(self, party: LoopWaiters) -> None:
        """Whoever was passed over stands at the end of the line again."""
        for waiter in party.passed_over:
            if waiter in party.waiters:
                self._queue(waiter)[waiter] = None
        party.passed_over.clear()

    def has_waiters(self) -> bool:
        """Whether anybody waits who can still be served."""
        return any(party.waiters and not loop.is_closed() for loop, party in self.parties.items())

    def _queue(self, waiter: Waiter) -> OrderedDict[Waiter, None]:
        return self.interactive if waiter.priority == "interactive" else self.bulk

    def _party(self, runtime: Runtime) -> LoopWaiters:
        """The running loop's party. Parties of loops closed meanwhile are forgotten on the way."""
        loop = event_loop()
        party = self.parties.get(loop)
        if party is None:
            self.parties = {known: party for known, party in self.parties.items() if not known.is_closed()}
            party = self.parties[loop] = LoopWaiters(loop, runtime)
        return party


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop of this thread, None outside of any (a finaliser may run there)."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
