"""Deadlines of attempts: one timer for all that are under way on a loop, instead of one timer for each.

An attempt that is still under way at its deadline, or when the connections are closed, has its task
cancelled, the way `asyncio.timeout` does it: the watch remembers that the cancellation was its own, takes it
back, and leaves anybody else's in place.

How many may be under way at a time: the others wait their turn, first come first served.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import Final, Literal

from payments_async._http.types import FailureKind
from payments_async._runtime import Runtime, Timer

TICK: Final = 0.01
"""Seconds between two looks at the attempts, at least: thousands of deadlines cost 100 looks a second."""

Verdict = Literal["undisturbed", "overdue", "closed", "cancelled"]
"""Who ended an attempt: nobody, its deadline, the closing of the connections, who cancelled the task."""


class Deadline:
    """One attempt under way, in the task that made it."""

    __slots__ = ("_cancelling", "_task", "_verdict", "_watches", "deadline", "kind")

    def __init__(self, task: asyncio.Task[object], deadline: float, watches: set[Deadline]) -> None:
        self.deadline = deadline
        self.kind: FailureKind = "pool"
        """What being late is called; waiting for a connection comes first."""
        self._task = task
        self._cancelling = task.cancelling()
        self._verdict: Verdict = "undisturbed"
        self._watches = watches

    def expire(self, verdict: Verdict) -> None:
        """Cancel the attempt; call once."""
        self._watches.discard(self)
        self._verdict = verdict
        self._task.cancel()

    def stop(self) -> Verdict:
        """End the watch; call once. Somebody else's cancellation wins, also one from before the attempt."""
        self._watches.discard(self)
        if self._verdict != "undisturbed" and self._task.uncancel() <= self._cancelling:
            return self._verdict
        return "cancelled" if self._task.cancelling() else "undisturbed"


class Deadlines:
    """The attempts of one loop and their one timer. Times are seconds of `runtime.monotonic()`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._watches: set[Deadline] = set()
        self._timer: Timer | None = None
        self._due = math.inf

    def watch(self, seconds: float, loop: asyncio.AbstractEventLoop | None = None) -> Deadline:
        """Watch the running task for so long, or until `Deadline.stop`. Finding the loop is a system call."""
        task = asyncio.current_task(loop)
        assert task is not None, "a transport is used from a task"
        now = self._runtime.monotonic()
        watch = Deadline(task, now + seconds, self._watches)
        self._watches.add(watch)
        if watch.deadline < self._due:
            self._arm(watch.deadline, max(seconds, 0.0))
        return watch

    def close(self) -> None:
        """Drop the timer and end the attempts under way: what they wait for may never come now."""
        self._disarm()
        for watch in list(self._watches):
            watch.expire("closed")

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._due = math.inf

    def _arm(self, due: float, delay: float) -> None:
        self._disarm()
        self._due = due
        self._timer = self._runtime.call_later(delay, self._look)

    def _look(self) -> None:
        """End what is overdue and set the timer for the next, if there is one."""
        now = max(self._runtime.monotonic(), self._due)  # a loop may run a timer a clock tick early
        self._timer, self._due = None, math.inf
        for watch in [watch for watch in self._watches if watch.deadline <= now]:
            watch.expire("overdue")
        if self._watches:
            due = max(min(watch.deadline for watch in self._watches), now + TICK)
            self._arm(due, due - now)


class Semaphore:
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
