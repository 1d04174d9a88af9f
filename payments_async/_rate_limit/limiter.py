"""Rate limiter: a token bucket, and the callers who wait for it.

Callers of one secret key may run on several event loops and threads. A caller passes without awaiting when
no other caller waits and the bucket has room; otherwise it waits in a queue. Grants are given to the whole
queue when there may be room: when a caller joins it, when an answer comes back, and by the timer of each loop
with waiters (one for a loop, not one for a waiter).

The lock is re-entrant because the garbage collector may close a forgotten coroutine at any moment, whose
`finally` calls this module. Nothing is awaited while the lock is held.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from functools import partial
from typing import Final

from .._runtime import Runtime
from .bucket import NONE, TokenBucket
from .limits import LimitSnapshot, Outage, Priority
from .waiters import ASKED, NEVER, LoopWaiters, Waiter, WaitQueue, running_loop

TICK: Final = 0.002
"""Least seconds of a timer: a finer one would lose rate to its own overhead; bursts make up for it."""
SLACK: Final = 5 * TICK
"""Seconds by which another loop's timer may be late before that loop is called to check at once."""


class LimiterTimeout(Exception):
    """The caller's time ran out before its turn. The caller has left the queue and has no grant."""


class RateLimiter:
    """Lets requests through at the pace of one bucket. Thread-safe, shared by every event loop.

    Each grant ends in exactly one of `release`, `close_after_429` and `put_back`. Times are the runtime's
    monotonic seconds.
    """

    __slots__ = ("_bucket", "_lock", "_queue")

    lag: float = 0.0
    """Seconds that a caller who does not want to wait waits all the same, for a store to answer."""

    def __init__(self, bucket: TokenBucket) -> None:
        self._bucket = bucket
        self._queue = WaitQueue()
        self._lock = threading.RLock()

    @property
    def outage(self) -> Outage | None:
        """Why the limiter's store cannot be reached; None while it can, and without one."""
        return None

    @property
    def part(self) -> int | None:
        """Requests a minute to which this process keeps in an outage; None when calls wait."""
        return None

    def try_acquire(self, now: float) -> int:
        """Take a grant; 0 when the caller would have to wait, or others wait already."""
        lock = self._lock
        lock.acquire()
        try:
            queue = self._queue
            if (queue.interactive or queue.bulk) and queue.first() is not None:
                return NONE
            return self._bucket.take(now)
        finally:
            lock.release()

    async def acquire(
        self, runtime: Runtime, *, priority: Priority = "interactive", until: float | None = None
    ) -> int:
        """Wait for a grant. Raises LimiterTimeout when `until` comes first."""
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
        """End the grant of a request that was answered, or given up without an answer."""
        lock = self._lock
        lock.acquire()
        try:
            self._bucket.settle(grant, now, answered=answered)
            queue = self._queue
            if queue.interactive or queue.bulk:
                self._hand_out(now)
        finally:
            lock.release()

    def close_after_429(self, grant: int, now: float, seconds: float) -> None:
        """End a grant after a 429: close for `seconds`, then let one probe through (Errors, rule 1)."""
        with self._lock:
            self._bucket.refuse(grant, now, seconds)

    def put_back(self, grant: int) -> None:
        """Return the grant of a request that was never sent, to the next in the queue."""
        with self._lock:
            self._bucket.put_back(grant)
            self._call_all()

    def resize(self, limit: int, capacity: int) -> None:
        """Change the limits: requests a minute, requests at once."""
        with self._lock:
            self._bucket.resize(limit, capacity)
            self._call_all()

    def count(self, now: float, sent: int) -> None:
        """Count requests that another limiter let through in the last minute."""
        with self._lock:
            self._bucket.count(now, sent)

    def wait(self, now: float) -> float:
        """Seconds until the bucket can grant, leaving the queue aside."""
        with self._lock:
            return self._bucket.wait(now)

    def idle(self, now: float) -> bool:
        """Return whether no caller waits and nothing counts or is closed, as in a new limiter."""
        with self._lock:
            return not self._queue.has_waiters() and self._bucket.idle(now)

    def snapshot(self, now: float) -> LimitSnapshot:
        """The bucket's state as values."""
        with self._lock:
            return self._bucket.snapshot(now)

    def forked(self) -> None:
        """Drop, in a forked child, the parent's waiters and the lock that one of its threads may hold."""
        self._lock = threading.RLock()
        self._queue = WaitQueue()

    def _hand_out(self, now: float) -> None:
        """Give grants in the order of the queue while there is room; schedule a check for the others."""
        running = running_loop()
        while (waiter := self._queue.first()) is not None:
            waiter.grant = self._bucket.take(now, waiter.priority)
            if not waiter.grant:
                self._schedule_check(now, running, waiter.priority)
                return
            self._queue.leave(waiter)
            if waiter.group.loop is running:
                waiter.wake()
            else:
                self._wake_elsewhere(waiter)

    def _wake_elsewhere(self, waiter: Waiter) -> None:
        try:
            waiter.group.loop.call_soon_threadsafe(waiter.wake)
        except RuntimeError:  # the loop was closed meanwhile
            self._bucket.put_back(waiter.grant)
            waiter.grant = NONE

    def _withdraw(self, waiter: Waiter) -> None:
        """Remove a cancelled caller; a grant that it has not seen yet goes to the next one."""
        with self._lock:
            self._queue.leave(waiter)
            if waiter.grant:
                self._bucket.put_back(waiter.grant)
                self._call_all()

    def _schedule_check(
        self, now: float, running: asyncio.AbstractEventLoop | None, priority: Priority
    ) -> None:
        """Set every loop with waiters to check when the next grant is due or a waiter's time runs out."""
        due = now + max(self._bucket.wait(now, priority), TICK)
        for group in tuple(self._queue.groups.values()):
            when = min(due, group.deadline)
            if group.loop is not running:
                if group.due > when + SLACK:
                    self._call(group)
            elif group.due > when:
                group.start_timer(now, when, partial(self._check, group))

    def _call_all(self) -> None:
        """Call each loop with waiters to check, when the caller does not know the time."""
        for group in tuple(self._queue.groups.values()):
            self._call(group)

    def _call(self, group: LoopWaiters) -> None:
        """Call a loop to check as soon as it can; the waiters of a closed loop are dropped."""
        if group.due != ASKED:
            group.due = ASKED
            with suppress(RuntimeError):
                group.loop.call_soon_threadsafe(self._check, group)

    def _check(self, group: LoopWaiters) -> None:
        """Run on the group's own loop: end overdue waits, give grants."""
        now = group.runtime.monotonic()
        with self._lock:
            group.stop_timer()
            for waiter in group.overdue(now):
                self._queue.leave(waiter)
                waiter.wake()
            self._hand_out(now)
            self._queue.end(group)
