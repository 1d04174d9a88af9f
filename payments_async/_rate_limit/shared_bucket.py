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

from .bucket import NONE, TokenBucket
from .limits import LimitSnapshot, Priority
from .store import AHEAD, AHEAD_IN_BULK, VALID, BlockRequest, Reservation, Terms
from .waiters import ASKED, NEVER

LAG: Final = 0.25
"""Seconds in which a store usually answers."""
RETRY: Final = 1.0
"""Seconds between tries of a store that cannot be reached."""


@attrs.define(eq=False)
class Block:
    """Permits of one reservation. Times are those of a clock that also counts suspension."""

    starts: float
    ends: float
    size: int
    left: int


@attrs.frozen
class Need:
    """The permits that callers need now or soon, and who asks first."""

    permits: int
    is_interactive: bool


class SharedBucket(TokenBucket):
    """Grants the permits of one class. Calls `call` when the store client is needed before it planned."""

    __slots__ = (
        "_blocks",
        "_call",
        "_clock",
        "_next",
        "_pause_until",
        "_size",
        "_usual_capacity",
        "is_lost",
        "planned",
        "terms",
        "workers",
    )

    def __init__(
        self, limit: int, capacity: int, call: Callable[[], object], clock: Callable[[], float]
    ) -> None:
        """`clock`: seconds, also while the machine is suspended."""
        self._call, self._clock = call, clock
        self.is_lost = False
        self.workers: int | None = None
        """Processes that share the limit, if known."""
        super().__init__(limit, capacity)
        self._blocks: list[Block] = []  # the oldest first
        self._size = 1  # permits of the next block, if fewer callers wait
        self._pause_until = ASKED  # the end of a closing of which the store has not been told
        self._next = {True: ASKED, False: ASKED}  # earliest times to ask, for interactive calls and for bulk
        self.planned: float = NEVER
        """When the store client will look again; `ASKED` while it is at it."""

    def resize(self, limit: int, capacity: int) -> None:
        """Change the limits; requests that count already still count."""
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
            self._want(ASKED)
            return super().take(now) if self.workers is not None and priority == "interactive" else NONE
        block = next((block for block in self._valid() if block.starts <= self._clock()), None)
        if block is None:
            if priority is not None:
                self._want(self._next[priority == "interactive"])
            return NONE
        grant = super().take(now)
        if grant:
            block.left -= 1
            if not block.left:
                self._blocks.remove(block)
                self._size = min(2 * block.size, self.terms.block)
            if self._is_low():
                self._want(self._next[True])
        return grant

    def refuse(self, grant: int, now: float, seconds: float, *, mistaken: bool = False) -> float:
        """End a grant after a 429: close for `seconds`, in which the store grants nobody anything."""
        seconds = super().refuse(grant, now, seconds, mistaken=mistaken)
        self._blocks.clear()
        self._pause_until = max(self._pause_until, self._clock() + seconds)
        self._want(ASKED)
        return seconds

    def wait(self, now: float, priority: Priority = "interactive") -> float:
        """Seconds until `take` may grant."""
        is_interactive = priority == "interactive"
        if self.is_lost:
            return super().wait(now) if self.workers is not None and is_interactive else RETRY
        delay, moment = super().wait(now), self._clock()
        if blocks := self._valid():
            return max(delay, min(block.starts for block in blocks) - moment)
        return max(delay, self._next[is_interactive] - moment, LAG)

    def snapshot(self, now: float) -> LimitSnapshot:
        """The state as values: of this process, and the limit that it keeps to at present."""
        own = super().snapshot(now)
        if self.is_lost:
            available = 0 if self.workers is None else own.available
            return attrs.evolve(own, limit=self.part or self.limit, available=available)
        ready = sum(block.left for block in self._valid() if block.starts <= self._clock())
        return attrs.evolve(own, available=min(own.available, ready))

    # What the store client uses

    def need(self, interactive: int, bulk: int) -> Need:
        """What so many waiting callers need, or those that are to be expected."""
        ready = sum(block.left for block in self._valid())
        waiting = interactive + bulk - ready
        if waiting > 0:
            return Need(max(waiting, self._size), is_interactive=interactive > ready)
        return Need(self._size if self._is_low() else 0, is_interactive=True)

    def due(self, need: Need) -> float:
        """When the store is to be asked next."""
        if self._pause_until != ASKED:
            return ASKED
        return self._next[need.is_interactive] if need.permits else NEVER

    def request(self, need: Need) -> BlockRequest:
        """Ask for what is needed, and tell of a 429."""
        moment = self._clock()
        pause, self._pause_until = max(self._pause_until - moment, 0.0), ASKED
        return BlockRequest(
            wanted=min(need.permits, self.terms.block) if self._next[need.is_interactive] <= moment else 0,
            pause=pause,
            step=self.terms.step,
            saved=self.terms.block * self.terms.step,
            ahead=AHEAD if need.is_interactive else AHEAD_IN_BULK,
        )

    def take_answer(self, answer: Reservation, need: Need, asked: float) -> None:
        """Take the store's answer to what it was asked at `asked`, by the clock."""
        if self.is_lost:
            self.is_lost = False
            self.pace(self.limit, self._usual_capacity)
        starts = self._clock() + answer.wait
        if answer.granted and self._pause_until == ASKED:  # else a 429 came meanwhile
            self._blocks.append(Block(starts, asked + VALID, answer.granted, answer.granted))
        if need.permits:
            self._next[need.is_interactive] = ASKED if answer.granted else starts

    def lose(self, now: float) -> None:
        """The store cannot be reached. This process's part begins with nothing saved up."""
        self.is_lost = True
        self._blocks.clear()
        self._next = {True: ASKED, False: ASKED}
        self._pace_alone()
        self.empty(now)

    # Parts

    def _pace_alone(self) -> None:
        if self.is_lost and (part := self.part) is not None:
            self.pace(part, max(part // 240, 1))

    def _valid(self) -> list[Block]:
        """The blocks that are not void."""
        while self._blocks and self._blocks[0].ends <= self._clock():
            void = self._blocks.pop(0)
            self._size = max(void.size - void.left, 1)
        return self._blocks

    def _is_low(self) -> bool:
        """Whether permits are asked for before callers wait: less than a third of a block is left."""
        return sum(block.left for block in self._blocks) < self._size // 3

    def _want(self, due: float) -> None:
        """Have the store client look at `due`, if it would not by itself."""
        if due < self.planned:
            self.planned = due
            self._call()
