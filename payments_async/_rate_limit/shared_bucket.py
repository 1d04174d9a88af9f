"""Token bucket of one limit class whose permits come from a store, a block at a time.

A grant needs a permit of a block and what every token bucket needs: that bucket's window still counts each
request until a minute after its answer. A block that is used up makes the next one twice as large; one that
is void makes it as large as what was used.

Without the store, interactive calls go at this process's part of the limit, if the number of processes is
known; bulk calls wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from .limiter import NONE, TokenBucket
from .limits import LimitSnapshot, Priority
from .store import AHEAD, AHEAD_IN_BULK, VALID, BlockRequest, Reservation, Terms
from .waiters import ASKED

LAG: Final = 0.25  # seconds in which a store usually answers
RETRY: Final = 1.0  # seconds between tries of a store that cannot be reached
_AHEAD: Final[dict[Priority, float]] = {"interactive": AHEAD, "bulk": AHEAD_IN_BULK}


@attrs.define(eq=False)
class Block:
    """Permits of one reservation. Times are those of a clock that also counts suspension."""

    starts: float
    ends: float
    size: int
    left: int


class SharedBucket(TokenBucket):
    """Grants the permits of one class. Calls `call` when the store is to be asked."""

    __slots__ = (
        "_blocks",
        "_call",
        "_clock",
        "_next",
        "_pause_until",
        "_size",
        "_usual_capacity",
        "is_called",
        "is_lost",
        "terms",
        "workers",
    )

    def __init__(
        self, limit: int, capacity: int, call: Callable[[], object], clock: Callable[[], float]
    ) -> None:
        """`clock`: seconds, also while the machine is suspended."""
        self._call, self._clock = call, clock
        self.is_lost = False
        self.workers: int | None = None  # processes that share the limit, if known
        super().__init__(limit, capacity)
        self._blocks: list[Block] = []  # the oldest first
        self._size = 1  # permits of the next block, if fewer callers wait
        self._pause_until = ASKED  # the end of a closing after a 429
        self._next = {AHEAD: ASKED, AHEAD_IN_BULK: ASKED}  # earliest times to ask, by `BlockRequest.ahead`
        self.is_called = False  # True from a call until the store is asked

    def resize(self, limit: int, capacity: int) -> None:
        self.terms: Terms = Terms(limit)
        self._usual_capacity = capacity
        super().resize(limit, capacity)
        self._pace_alone()

    @property
    def part(self) -> int | None:
        """This process's part of the limit without the store; None without a number of processes."""
        return None if self.workers is None else max(int(self.terms.rate / self.workers), 1)

    # What callers use

    def take(self, now: float, priority: Priority | None = None) -> int:
        """Take a grant, or `NONE`. Without a priority the caller will try again with one, in the queue."""
        if self.is_lost:
            self._ask()
            return super().take(now) if self.workers is not None and priority == "interactive" else NONE
        moment = self._clock()
        block = next((block for block in self._valid() if block.starts <= moment), None)
        if block is None:
            if priority is not None and self._next[_AHEAD[priority]] <= moment:
                self._ask()
            return NONE
        grant = super().take(now)
        if grant:
            block.left -= 1
            if not block.left:
                self._blocks.remove(block)
                self._size = min(2 * block.size, self.terms.block)
            if self._is_low() and self._next[AHEAD] <= moment:
                self._ask()
        return grant

    def refuse(self, grant: int, now: float, seconds: float) -> None:
        """End a grant after a 429: close for `seconds`, in which the store grants nobody anything."""
        super().refuse(grant, now, seconds)
        self._blocks.clear()
        self._pause_until = max(self._pause_until, self._clock() + seconds)
        self._ask()

    def wait(self, now: float, priority: Priority = "interactive") -> float:
        """Seconds until `take` may grant."""
        if self.is_lost:
            goes_on = self.workers is not None and priority == "interactive"
            return super().wait(now) if goes_on else RETRY
        delay, moment = super().wait(now), self._clock()
        if blocks := self._valid():
            return max(delay, min(block.starts for block in blocks) - moment)
        return max(delay, self._next[_AHEAD[priority]] - moment, LAG)

    def snapshot(self, now: float) -> LimitSnapshot:
        """The state as values: of this process, and the limit that it keeps to at present."""
        own = super().snapshot(now)
        if self.is_lost:
            available = 0 if self.workers is None else own.available
            return attrs.evolve(own, limit=self.part or self.limit, available=available)
        ready = sum(block.left for block in self._valid() if block.starts <= self._clock())
        return attrs.evolve(own, available=min(own.available, ready))

    # What the store client uses

    def request(self, interactive: int, bulk: int) -> BlockRequest | None:
        """What so many waiting callers need, or those that are to be expected; None if that is nothing."""
        moment, self.is_called = self._clock(), False
        ready = sum(block.left for block in self._valid())
        waiting = interactive + bulk - ready
        ahead = AHEAD_IN_BULK if waiting > 0 and interactive <= ready else AHEAD
        wanted = max(waiting, self._size) if waiting > 0 or self._is_low() else 0
        if self._next[ahead] > moment:
            wanted = 0
        pause = max(self._pause_until - moment, 0.0)
        if not (wanted or pause or self.is_lost):
            return None
        return BlockRequest(
            wanted=min(wanted, self.terms.block),
            pause=pause,
            step=self.terms.step,
            saved=self.terms.block * self.terms.step,
            ahead=ahead,
        )

    def take_answer(self, answer: Reservation, request: BlockRequest, asked: float) -> None:
        """Take the store's answer to what it was asked at `asked`, by the clock."""
        if self.is_lost:
            self.is_lost = False
            self.pace(self.limit, self._usual_capacity)
        moment = self._clock()
        starts = moment + answer.wait
        if answer.granted and self._pause_until <= moment:  # else a 429 came meanwhile
            self._blocks.append(Block(starts, asked + VALID, answer.granted, answer.granted))
        if request.wanted:
            self._next[request.ahead] = ASKED if answer.granted else starts

    def lose(self, now: float) -> None:
        """The store cannot be reached. This process's part begins with nothing saved up."""
        self.is_lost = True
        self._blocks.clear()
        self._next = {AHEAD: ASKED, AHEAD_IN_BULK: ASKED}
        self._pace_alone()
        self.empty(now)

    # Parts

    def _pace_alone(self) -> None:
        if self.is_lost and (part := self.part) is not None:
            self.pace(part, max(part // 240, 1))

    def _valid(self) -> list[Block]:
        while self._blocks and self._blocks[0].ends <= self._clock():
            void = self._blocks.pop(0)
            self._size = max(void.size - void.left, 1)
        return self._blocks

    def _is_low(self) -> bool:
        """Whether permits are asked for before callers wait: less than a third of a block is left."""
        return sum(block.left for block in self._blocks) < self._size // 3

    def _ask(self) -> None:
        if not self.is_called:
            self.is_called = True
            self._call()
