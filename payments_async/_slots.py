"""How many may be under way at a time: the others wait their turn, first come first served."""

from __future__ import annotations

import asyncio
from collections import deque


class Slots:
    """Slots of one event loop: an `asyncio.Semaphore` that costs next to nothing while one is free."""

    __slots__ = ("_free", "_line")

    def __init__(self, number: int) -> None:
        self._free = number
        self._line: deque[asyncio.Future[None]] = deque()

    def take(self) -> bool:
        """Take a free slot. False: there is none, wait for one."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def wait(self) -> None:
        """Stand in line for a slot. A freed one is handed to who came first, so no newcomer takes it."""
        turn = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            await turn
        except BaseException:
            if turn in self._line:
                self._line.remove(turn)
            elif not turn.cancelled():  # it was handed over, in vain
                self.give_back()
            raise

    def give_back(self) -> None:
        """End the use of a slot."""
        while self._line:
            turn = self._line.popleft()
            if not turn.done():  # its task was not cancelled meanwhile
                turn.set_result(None)
                return
        self._free += 1
