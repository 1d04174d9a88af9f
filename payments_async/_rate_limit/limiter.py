"""The gate in front of one meter: lets requests through, and wakes who waits.

Callers of one secret key may live on several event loops and threads. A caller that finds nobody waiting and
room in the meter passes without awaiting anything; the others stand in line. Whoever learns that there may be
room hands it out to the whole line: a caller that joins it, an answer that came back, or the timer that each
loop with waiters keeps (one a loop, not one a waiter).

The lock is re-entrant because the garbage collector may close a forgotten coroutine in the middle of
anything, and its `finally` comes back here. Nothing is awaited while the lock is held.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from functools import partial
from typing import Final

from .._runtime import Runtime
from .bucket import NONE, TokenBucket
from .limits import LimitSnapshot
from .waiters import ASKED, NEVER, LoopWaiters, Priority, Waiter, WaitQueue, running_loop

TICK: Final = 0.002
"""Seconds a timer sleeps at least: a finer one loses rate to its own overhead, bursts make up for it."""
SLACK: Final = 5 * TICK
"""Seconds by which another loop's own timer may be late before it is called to look at once."""


class LimiterTimeout(Exception):
    """The caller's time ran out before its turn came. It holds no place and no grant."""


class RateLimiter:
    """Lets requests through at the pace of one meter. Thread-safe, and shared by every event loop.

    Each grant ends in exactly one of `leave`, `refused` and `put_back`. Times are the runtime's monotonic
    seconds.
    """

    __slots__ = ("_line", "_lock", "_meter")

    def __init__(self, meter: TokenBucket) -> None:
        self._meter = meter
        self._line = WaitQueue()
        self._lock = threading.RLock()

    def try_enter(self, now: float) -> int:
        """A grant, or 0 when the caller would have to wait, or others wait already."""
        lock = self._lock
        lock.acquire()
        try:
            line = self._line
            if line.interactive or line.bulk:
                return NONE
            return self._meter.take(now)
        finally:
            lock.release()

    async def enter(
        self, runtime: Runtime, *, priority: Priority = "interactive", until: float | None = None
    ) -> int:
        """A grant, after standing in line for it; `LimiterTimeout` when `until` comes first."""
        now = runtime.monotonic()
        if until is not None and until <= now:
            raise LimiterTimeout
        with self._lock:
            waiter = self._line.join(runtime, priority, NEVER if until is None else until)
            self._hand_out(now)
        try:
            if not waiter.grant:
                await waiter.woken
        except BaseException:
            self._withdraw(waiter)
            raise
        if not waiter.grant:
            raise LimiterTimeout
        return waiter.grant

    def leave(self, grant: int, now: float, *, answered: bool = True) -> None:
        """The request was answered, or given up without an answer."""
        lock = self._lock
        lock.acquire()
        try:
            self._meter.settle(grant, now, answered=answered)
            line = self._line
            if line.interactive or line.bulk:
                self._hand_out(now)
        finally:
            lock.release()

    def refused(self, grant: int, now: float, seconds: float, *, mistaken: bool = False) -> float:
        """The answer was a 429: the gate closes for so long, then lets one probe through (Errors, rule 1).

        Returns the seconds it closes for, which are more after repeated mistakes (`TokenBucket.refuse`).
        """
        with self._lock:
            return self._meter.refuse(grant, now, seconds, mistaken=mistaken)

    def put_back(self, grant: int) -> None:
        """The request was never sent: the next in line may go instead."""
        with self._lock:
            self._meter.put_back(grant)
            self._call_everybody()

    def resize(self, limit: int, capacity: int) -> None:
        """Other figures from now on: requests a minute, requests at once."""
        with self._lock:
            self._meter.resize(limit, capacity)
            self._call_everybody()

    def wait(self, now: float) -> float:
        """Seconds before which a newcomer cannot be granted, leaving those in line out of account."""
        with self._lock:
            return self._meter.wait(now)

    def idle(self, now: float) -> bool:
        """Nobody waits, nothing counts, nothing is closed: a new gate would behave the same."""
        with self._lock:
            return not self._line.has_waiters() and self._meter.idle(now)

    def snapshot(self, now: float) -> LimitSnapshot:
        """The meter's state as values."""
        with self._lock:
            return self._meter.snapshot(now)

    def forked(self) -> None:
        """In a forked child: drop the parent's waiters, and the lock that one of its threads may hold."""
        self._lock = threading.RLock()
        self._line = WaitQueue()

    def _hand_out(self, now: float) -> None:
        """Grant what can be granted, in order; for the rest, see that somebody looks again."""
        running = running_loop()
        while (waiter := self._line.first()) is not None:
            waiter.grant = self._meter.take(now)
            if not waiter.grant:
                self._look_later(now, running)
                return
            self._line.leave(waiter)
            if waiter.party.loop is running:
                waiter.wake()
            else:
                self._wake_elsewhere(waiter)

    def _wake_elsewhere(self, waiter: Waiter) -> None:
        try:
            waiter.party.loop.call_soon_threadsafe(waiter.wake)
        except RuntimeError:  # the loop was closed a moment ago
            self._meter.put_back(waiter.grant)
            waiter.grant = NONE

    def _withdraw(self, waiter: Waiter) -> None:
        """The caller was cancelled: a grant it has not seen yet goes to the next."""
        with self._lock:
            self._line.leave(waiter)
            if waiter.grant:
                self._meter.put_back(waiter.grant)
                self._call_everybody()

    def _look_later(self, now: float, running: asyncio.AbstractEventLoop | None) -> None:
        """Every loop with waiters looks again when the next grant is due or a waiter's time runs out."""
        due = now + max(self._meter.wait(now), TICK)
        for party in tuple(self._line.parties.values()):
            when = min(due, party.deadline)
            if party.loop is not running:
                if party.due > when + SLACK:
                    self._call(party)
            elif party.due > when:
                party.start_timer(now, when, partial(self._look, party))

    def _call_everybody(self) -> None:
        """Something changed where the time is not known: each loop with waiters looks for itself."""
        for party in tuple(self._line.parties.values()):
            self._call(party)

    def _call(self, party: LoopWaiters) -> None:
        """Have a loop look as soon as it can; a closed one has nobody left to care for."""
        if party.due != ASKED:
            party.due = ASKED
            with suppress(RuntimeError):
                party.loop.call_soon_threadsafe(self._look, party)

    def _look(self, party: LoopWaiters) -> None:
        """On the party's own loop: end what is overdue, bring back who was passed over, hand out the rest."""
        now = party.runtime.monotonic()
        with self._lock:
            party.stop_timer()
            for waiter in party.overdue(now):
                self._line.leave(waiter)
                waiter.wake()
            self._line.come_back(party)
            self._hand_out(now)
            self._line.end(party)
