"""One token bucket as a state machine: takes the time, returns a grant or the seconds to wait.

A grant passes three checks, cheapest first:

* closed?  after a 429 nothing is sent until the time it named; then one probe, whose answer opens the bucket.
* pacer    a token bucket (kept as the single time at which it will be full again) smooths the sending.
* window   a grant counts from its sending until a minute after its ANSWER.

The window makes the bucket safe. The service counts a request somewhere between its sending and its answer.
A request beyond the limit is granted only when an earlier one was answered, so counted, over a minute ago:
no minute that the service counts, aligned or sliding, has more than `limit`, whatever the jitter.

Grants are small integers, so that a grant allocates no object: 0 is none, 1 an ordinary one, a higher number
a probe of the closing with that number. So answers of older requests cannot end a later closing.
"""

from __future__ import annotations

from typing import Final

from .limits import LimitSnapshot, Priority

WINDOW: Final = 60.0
"""Seconds over which the service counts (`docs/interface.md`, Rate limits)."""
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
        """The state as values."""
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
