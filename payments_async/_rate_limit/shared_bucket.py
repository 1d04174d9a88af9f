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
RENEW_BEFORE: Final = 1.0
"""Seconds before the end of a block at which what is still under way takes other permits."""
RETRY: Final = 1.0
"""Seconds between tries of a store that cannot be reached."""
OWN_BITS: Final = 32
"""Bits of a grant that are the token bucket's; those above are the number of its block."""
_OWN: Final = (1 << OWN_BITS) - 1


@attrs.define(eq=False)
class Block:
    """Permits of one reservation. Times are those of a clock that also counts suspension."""

    starts: float
    ends: float
    size: int
    left: int
    under_way: int = 0


@attrs.frozen
class Need:
    """The permits that callers need now or soon, and who asks first."""

    permits: int
    is_interactive: bool


class SharedBucket(TokenBucket):
    """Grants the permits of one class. Calls `call` when the store client is needed before it planned."""

    __slots__ = (
        "_at_hand",
        "_blocks",
        "_call",
        "_clock",
        "_given_up",
        "_made",
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
        self._blocks: dict[int, Block] = {}
        self._made = 0
        self._at_hand = 0  # permits in all blocks
        self._size = 1  # permits of the next block, if fewer callers wait
        self._given_up = 0  # requests that the service may still count, and not where they were charged
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
        moment = self._clock()
        usable = (
            (number, block)
            for number, block in self._blocks.items()
            if block.left and block.starts <= moment < block.ends
        )
        number, block = next(usable, (0, None))
        if block is None:
            if priority is not None:
                self._want(self._next[priority == "interactive"])
            return NONE
        grant = super().take(now)
        if not grant:
            return NONE
        block.left -= 1
        block.under_way += 1
        self._at_hand -= 1
        if not block.left:
            self._size = min(2 * block.size, self.terms.block)
        if self._at_hand < self._low:
            self._want(self._next[True])
        return number << OWN_BITS | grant

    def settle(self, grant: int, now: float, *, answered: bool = True) -> None:
        """End a grant: the request was answered, or given up (`answered` false): it may be counted later."""
        self._ended(grant)
        self._given_up += not answered
        super().settle(grant & _OWN, now, answered=answered)

    def refuse(self, grant: int, now: float, seconds: float, *, mistaken: bool = False) -> float:
        """End a grant after a 429: close for `seconds`, and have the store close for every process."""
        self._ended(grant)
        seconds = super().refuse(grant & _OWN, now, seconds, mistaken=mistaken)
        self._pause_until = max(self._pause_until, self._clock() + seconds)
        self._want(ASKED)
        return seconds

    def put_back(self, grant: int) -> None:
        """Return the grant of a request that was never sent."""
        super().put_back(grant & _OWN)
        if (block := self._ended(grant)) is not None:
            block.left += 1
            self._at_hand += 1

    def close(self, now: float, seconds: float) -> None:
        """Grant nothing for `seconds`, and drop the permits at hand."""
        self._drop()
        super().close(now, seconds)

    def is_probe(self, grant: int) -> bool:
        """Return whether a grant is a closing's probe."""
        return super().is_probe(grant & _OWN)

    def wait(self, now: float, priority: Priority = "interactive") -> float:
        """Seconds until `take` may grant."""
        is_interactive = priority == "interactive"
        if self.is_lost:
            return super().wait(now) if self.workers is not None and is_interactive else RETRY
        delay, moment = super().wait(now), self._clock()
        starts = [block.starts for block in self._live(moment) if block.left]
        if starts:
            return max(delay, min(starts) - moment)
        return max(delay, self._next[is_interactive] - moment, LAG)

    def snapshot(self, now: float) -> LimitSnapshot:
        """The state as values: of this process, and the limit that it keeps to at present."""
        own, moment = super().snapshot(now), self._clock()
        if self.is_lost:
            available = 0 if self.workers is None else own.available
            return attrs.evolve(own, limit=self.part or self.limit, available=available)
        ready = sum(block.left for block in self._live(moment) if block.starts <= moment)
        return attrs.evolve(own, available=min(own.available, ready))

    # What the store client uses

    def need(self, interactive: int, bulk: int) -> Need:
        """What so many waiting callers need, or those that are to be expected."""
        ready = sum(block.left for block in self._live(self._clock()))
        waiting = interactive + bulk - ready
        if waiting > 0:
            return Need(max(waiting, self._size), is_interactive=interactive > ready)
        return Need(self._size if self._at_hand < self._low else 0, is_interactive=True)

    def due(self, need: Need) -> float:
        """When the store is to be asked next."""
        if self._given_up or self._pause_until != ASKED:
            return ASKED
        renewals = [block.ends - RENEW_BEFORE for block in self._blocks.values() if block.under_way]
        return min(self._next[need.is_interactive] if need.permits else NEVER, *renewals, NEVER)

    def request(self, need: Need) -> BlockRequest:
        """Ask for what is needed, and other permits for what will be under way when its block ends."""
        moment = self._clock()
        charged, self._given_up = self._given_up, 0
        pause, self._pause_until = max(self._pause_until - moment, 0.0), ASKED
        for number, block in tuple(self._blocks.items()):
            if block.ends <= moment + RENEW_BEFORE:
                charged += block.under_way
                if block.left:
                    self._size = max(block.size - block.left, 1)
                    self._at_hand -= block.left
                block.left, block.ends = 0, moment + VALID
            if not block.left and not block.under_way:
                del self._blocks[number]
        return BlockRequest(
            wanted=min(need.permits, self.terms.block) if self._next[need.is_interactive] <= moment else 0,
            charged=charged,
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
        if need.permits:
            self._next[need.is_interactive] = ASKED if answer.granted else starts
        if answer.granted:
            self._made += 1
            self._blocks[self._made] = Block(starts, asked + VALID, answer.granted, answer.granted)
            self._at_hand += answer.granted

    def lose(self, now: float) -> None:
        """The store cannot be reached. This process's part begins with nothing saved up."""
        self.is_lost = True
        self._drop()
        self._pause_until = ASKED  # the end of a closing of which the store has not been told
        self._next = {True: ASKED, False: ASKED}
        self._pace_alone()
        self.empty(now)

    # Parts

    @property
    def _low(self) -> int:
        """Permits at hand below which others are asked for, before callers wait."""
        return self._size // 3

    def _pace_alone(self) -> None:
        if self.is_lost and (part := self.part) is not None:
            self.pace(part, max(part // 240, 1))

    def _live(self, moment: float) -> list[Block]:
        return [block for block in self._blocks.values() if moment < block.ends]

    def _ended(self, grant: int) -> Block | None:
        """The block of a grant that ends."""
        block = self._blocks.get(grant >> OWN_BITS)
        if block is not None:
            block.under_way -= 1
        return block

    def _drop(self) -> None:
        for block in self._blocks.values():
            block.left = 0
        self._at_hand = 0

    def _want(self, due: float) -> None:
        """Have the store client look at `due`, if it would not by itself."""
        if due < self.planned:
            self.planned = due
            self._call()
