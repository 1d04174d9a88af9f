"""Rate limiter: a token bucket, and the callers who wait for it.

Callers of one secret key may live on several event loops and threads. A caller passes without awaiting when
no other waits and the bucket has room; the others wait in a queue. Grants are handed out to the whole queue
when there may be room: when a caller joins it, when an answer comes back, and by the timer of each loop with
waiters (one for a loop, not one for a waiter).

The lock is re-entrant because the garbage collector may close a forgotten coroutine at any moment, and its
`finally` comes back here. Nothing is awaited while the lock is held.
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
"""Seconds by which another loop's own timer may be late before it is called to check at once."""


class LimiterTimeout(Exception):
    """The caller's time ran out before its turn. It holds no place and no grant."""


class RateLimiter:
    """Lets requests through at the pace of one bucket. Thread-safe, and shared by every event loop.

    Each grant ends in exactly one of `release`, `close_after_429` and `put_back`. Times are the runtime's
    monotonic seconds.
    """

    __slots__ = ("_bucket", "_lock", "_queue")

    def __init__(self, bucket: TokenBucket) -> None:
        self._bucket = bucket
        self._queue = WaitQueue()
        self._lock = threading.RLock()

    def try_acquire(self, now: float) -> int:
        """A grant, or 0 when the caller would have to wait, or others wait already."""
        lock = self._lock
        lock.acquire()
        try:
            queue = self._queue
            if queue.interactive or queue.bulk:
                return NONE
            return self._bucket.take(now)
        finally:
            lock.release()

    async def acquire(
        self, runtime: Runtime, *, priority: Priority = "interactive", until: float | None = None
    ) -> int:
        """A grant, after waiting for it; `LimiterTimeout` when `until` comes first."""
        now = runtime.monotonic()
        if until is not None and until <= now:
            raise LimiterTimeout
        with self._lock:
            waiter = self._queue.join(runtime, priority, NEVER if until is None else until)
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

    def release(self, grant: int, now: float, *, answered: bool = True) -> None:
        """The request was answered, or given up without an answer."""
        lock = self._lock
        lock.acquire()
        try:
            self._bucket.settle(grant, now, answered=answered)
            queue = self._queue
            if queue.interactive or queue.bulk:
                self._hand_out(now)
        finally:
            lock.release()

    def close_after_429(self, grant: int, now: float, seconds: float, *, mistaken: bool = False) -> float:
        """The answer was a 429: the limiter closes for so long, then lets one probe through (Errors, rule 1).

        Returns the seconds it closes for, which are more after repeated mistakes (`TokenBucket.refuse`).
        """
        with self._lock:
            return self._bucket.refuse(grant, now, seconds, mistaken=mistaken)

    def put_back(self, grant: int) -> None:
        """The request was never sent: the next in the queue may go instead."""
        with self._lock:
            self._bucket.put_back(grant)
            self._call_all()

    def resize(self, limit: int, capacity: int) -> None:
        """Other figures from now on: requests a minute, requests at once."""
        with self._lock:
            self._bucket.resize(limit, capacity)
            self._call_all()

    def wait(self, now: float) -> float:
        """Seconds before which a newcomer cannot be granted, leaving the queue aside."""
        with self._lock:
            return self._bucket.wait(now)

    def idle(self, now: float) -> bool:
        """Nobody waits, nothing counts, nothing is closed: a new limiter would behave the same."""
        with self._lock:
            return not self._queue.has_waiters() and self._bucket.idle(now)

    def snapshot(self, now: float) -> LimitSnapshot:
        """The bucket's state as values."""
        with self._lock:
            return self._bucket.snapshot(now)

    def forked(self) -> None:
        """In a forked child: drop the parent's waiters, and the lock that one of its threads may hold."""
        self._lock = threading.RLock()
        self._queue = WaitQueue()

    def _hand_out(self, now: float) -> None:
        """Grant what can be granted, in order; schedule a check for the rest."""
        running = running_loop()
        while (waiter := self._queue.first()) is not None:
            waiter.grant = self._bucket.take(now)
            if not waiter.grant:
                self._schedule_check(now, running)
                return
            self._queue.leave(waiter)
            if waiter.group.loop is running:
                waiter.wake()
            else:
                self._wake_elsewhere(waiter)

    def _wake_elsewhere(self, waiter: Waiter) -> None:
        try:
            waiter.group.loop.call_soon_threadsafe(waiter.wake)
        except RuntimeError:  # the loop was closed a moment ago
            self._bucket.put_back(waiter.grant)
            waiter.grant = NONE

    def _withdraw(self, waiter: Waiter) -> None:
        """The caller was cancelled: a grant it has not seen yet goes to the next."""
        with self._lock:
            self._queue.leave(waiter)
            if waiter.grant:
                self._bucket.put_back(waiter.grant)
                self._call_all()

    def _schedule_check(self, now: float, running: asyncio.AbstractEventLoop | None) -> None:
        """Every loop with waiters checks again when the next grant is due or a waiter's time runs out."""
        due = now + max(self._bucket.wait(now), TICK)
        for group in tuple(self._queue.groups.values()):
            when = min(due, group.deadline)
            if group.loop is not running:
                if group.due > when + SLACK:
                    self._call(group)
            elif group.due > when:
                group.start_timer(now, when, partial(self._check, group))

    def _call_all(self) -> None:
        """Something changed where the time is not known: each loop with waiters checks for itself."""
        for group in tuple(self._queue.groups.values()):
            self._call(group)

    def _call(self, group: LoopWaiters) -> None:
        """Have a loop check as soon as it can; a closed one has no waiters left."""
        if group.due != ASKED:
            group.due = ASKED
            with suppress(RuntimeError):
                group.loop.call_soon_threadsafe(self._check, group)

    def _check(self, group: LoopWaiters) -> None:
        """On the group's own loop: end what is overdue, bring back who was passed over, hand out the rest."""
        now = group.runtime.monotonic()
        with self._lock:
            group.stop_timer()
            for waiter in group.overdue(now):
                self._queue.leave(waiter)
                waiter.wake()
            self._queue.come_back(group)
            self._hand_out(now)
            self._queue.end(group)
