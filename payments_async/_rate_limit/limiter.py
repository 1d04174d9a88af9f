"""Rate limiter: a token bucket, and the callers who wait for it.

The bucket is a state machine that takes the time; a grant passes three checks, cheapest first:

* closed?  after a 429 nothing is sent until the time it named; then one probe, whose answer opens the bucket.
* pacer    a token bucket (kept as the single time at which it will be full again) smooths the sending.
* window   a grant counts from its sending until a minute after its ANSWER.

The window makes the bucket safe. The service counts a request somewhere between its sending and its answer.
A request beyond the limit is granted only when an earlier one was answered, so counted, over a minute ago:
no minute that the service counts, aligned or sliding, has more than `limit`, whatever the jitter.

Grants are small integers, so that a grant allocates no object: 0 is none, 1 an ordinary one, a higher number
a probe of the closing with that number. So answers of older requests cannot end a later closing.

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
from .limits import WINDOW, LimitSnapshot, Outage, Priority
from .waiters import ASKED, NEVER, LoopWaiters, WaitQueue, running_loop

TICK: Final = 0.002
"""Least seconds of a timer: a finer one would lose rate to its own overhead; bursts make up for it."""
SLACK: Final = 5 * TICK
"""Seconds by which another loop's timer may be late before that loop is called to check at once."""
SLOTS_PER_SECOND: Final = 32
"""Answers are remembered by slots of this size: a power of two, so that the slot arithmetic is exact."""
PROBE_PATIENCE: Final = 120.0
"""Seconds after which a probe that never ended (its event loop was closed) is replaced by another."""
PROBE_HINT: Final = 1.0
"""The most seconds to the next check while a probe is under way: only its answer opens the bucket."""

NONE: Final = 0
ORDINARY: Final = 1


class TokenBucket:
    """Counts and paces the requests of one class. Times are seconds on one clock that never goes back.

    `take` grants; exactly one of `settle`, `refuse` and `put_back` ends each grant. Not thread-safe.
    """

    __slots__ = (
        "_answered",
        "_capacity",
        "_closings",
        "_counted",
        "_full_at",
        "_opens",
        "_probe_until",
        "_shut",
        "_slot_end",
        "_slots",
        "_step",
        "_tolerance",
        "limit",
    )

    def __init__(self, limit: int, capacity: int) -> None:
        """`limit` requests a minute, up to `capacity` of them at once after a pause."""
        self._counted = 0
        self._answered = 0  # answers in the slot that ends at `_slot_end`
        self._slot_end = 0.0
        # (when they stop counting, how many). A list: an empty deque is as big as all the rest of a bucket.
        self._slots: list[tuple[float, int]] = []
        self._full_at = float("-inf")
        self._shut = NONE  # the number of the closing in force
        self._closings = ORDINARY
        self._opens = 0.0
        self._probe_until = 0.0
        self.resize(limit, capacity)

    def resize(self, limit: int, capacity: int) -> None:
        """Change the limits; requests that count already still count."""
        self.limit: int = limit
        self.pace(limit, capacity)

    def pace(self, rate: int, capacity: int) -> None:
        """Change how requests are spaced out: so many a minute, so many at once."""
        self._capacity = capacity
        self._step = WINDOW / rate
        self._tolerance = (capacity - 0.99) * self._step  # the hundredth absorbs rounding only

    def count(self, now: float, sent: int) -> None:
        """Count requests that another bucket let through in the last minute."""
        self._counted += sent
        self._slots.append((now + WINDOW, sent))

    def empty(self, now: float) -> None:
        """Forget what is saved up."""
        self._full_at = now + self._capacity * self._step

    def take(self, now: float, priority: Priority | None = None) -> int:
        """Take a grant for one request that is sent now, or `NONE`: see `wait`. Priorities are equal."""
        shut = self._shut
        if shut and (now < self._opens or now < self._probe_until):
            return NONE
        full_at = self._full_at
        if full_at - now > self._tolerance:
            return NONE
        if self._counted >= self.limit and not self._has_room(now):
            return NONE
        self._counted += 1
        self._full_at = (full_at if full_at > now else now) + self._step
        if shut:
            self._probe_until = now + PROBE_PATIENCE
            return shut
        return ORDINARY

    def settle(self, grant: int, now: float, *, answered: bool = True) -> None:
        """End a grant: the request was answered, or given up (`answered` false), which counts like an answer.

        An answered probe opens the bucket; after one that was given up, the next caller's request is the
        probe.
        """
        if now >= self._slot_end:
            self._release(now)
        self._answered += 1
        if grant > ORDINARY and grant == self._shut:
            self._probe_until = 0.0
            if answered:
                self._shut = NONE

    def refuse(self, grant: int, now: float, seconds: float) -> None:
        """End a grant after a 429: close for `seconds`, then allow one probe (Errors, rule 1)."""
        self.settle(grant, now, answered=False)
        self.close(now, seconds)

    def put_back(self, grant: int) -> None:
        """Return the grant of a request that was never sent: it does not count."""
        self._counted -= 1
        self._full_at -= self._step
        if grant == self._shut:
            self._probe_until = 0.0

    def close(self, now: float, seconds: float) -> None:
        """Grant nothing for `seconds`; a closing in force is extended, never shortened."""
        self._closings += 1
        self._shut = self._closings
        self._opens = max(self._opens, now + seconds)
        self._probe_until = 0.0

    def wait(self, now: float, priority: Priority = "interactive") -> float:
        """Seconds until `take` can grant; 0.0 when it would grant now."""
        delay = max(self._full_at - now - self._tolerance, 0.0)
        if not self._has_room(now):
            delay = max(delay, self._next_release(now) - now)
        if self._shut:
            delay = max(delay, self._opens - now, min(self._probe_until - now, PROBE_HINT))
        return delay

    def idle(self, now: float) -> bool:
        """Return whether nothing counts and nothing is closed, so that a new bucket would behave the same."""
        self._release(now)
        return not self._counted and not (self._shut and now < self._opens)

    def snapshot(self, now: float) -> LimitSnapshot:
        self._release(now)
        ahead = max(self._full_at - now, 0.0)
        available = min(int(self._capacity + 0.01 - ahead / self._step), self.limit - self._counted)
        if self._shut:
            available = 0 if self.wait(now) else 1
        closed_for = max(self._opens - now, 0.0) if self._shut else 0.0
        return LimitSnapshot(self.limit, self._counted, max(available, 0), closed_for)

    def _has_room(self, now: float) -> bool:
        self._release(now)
        return self._counted < self.limit

    def _next_release(self, now: float) -> float:
        """Earliest time at which the first counted request stops counting."""
        if self._slots:
            return self._slots[0][0]
        return (self._slot_end if self._answered else now) + WINDOW

    def _release(self, now: float) -> None:
        """Begin a new slot when it is due, and drop the slots that are over a minute old."""
        if now >= self._slot_end:
            if self._answered:
                self._slots.append((self._slot_end + WINDOW, self._answered))
                self._answered = 0
            self._slot_end = (int(now * SLOTS_PER_SECOND) + 1) / SLOTS_PER_SECOND
        slots = self._slots
        while slots and slots[0][0] <= now:
            self._counted -= slots.pop(0)[1]


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
            with self._lock:
                self._queue.leave(waiter)
                if waiter.grant:  # it was not seen yet, and goes to the next one
                    self._bucket.put_back(waiter.grant)
                    self._call_all()
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
                continue
            try:
                waiter.group.loop.call_soon_threadsafe(waiter.wake)
            except RuntimeError:  # the loop was closed meanwhile
                self._bucket.put_back(waiter.grant)
                waiter.grant = NONE

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
