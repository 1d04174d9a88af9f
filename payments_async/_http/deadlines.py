"""Deadlines of attempts: one timer for all attempts of an event loop, instead of one for each.

An attempt that is still under way at its deadline, or when the connections are closed, has its task
cancelled, the way `asyncio.timeout` does it: the deadline recognises its own cancellation and takes it back.
Another cancellation stays in place.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final, Literal

from .._runtime import Runtime, Timer
from .types import FailureKind

TICK: Final = 0.01
"""Least seconds between two checks of the attempts: thousands of deadlines cost 100 checks a second."""

Verdict = Literal["undisturbed", "overdue", "closed", "cancelled"]
"""The end of an attempt: by itself, by its deadline, by closing connections, by cancelling the task."""


class Deadline:
    """The deadline of one attempt, in the task that makes it."""

    __slots__ = ("_cancelling", "_running", "_task", "_verdict", "at", "kind")

    def __init__(self, task: asyncio.Task[object], at: float, running: set[Deadline]) -> None:
        self.at = at
        self.kind: FailureKind = "pool"
        """The failure to report when the deadline passes; waiting for a connection comes first."""
        self._task = task
        self._cancelling = task.cancelling()
        self._verdict: Verdict = "undisturbed"
        self._running = running

    def expire(self, verdict: Verdict) -> None:
        """Cancel the attempt; call once."""
        self._running.discard(self)
        self._verdict = verdict
        self._task.cancel()

    def stop(self) -> Verdict:
        """End the deadline; call once. Another cancellation wins, also one from before the attempt."""
        self._running.discard(self)
        if self._verdict != "undisturbed" and self._task.uncancel() <= self._cancelling:
            return self._verdict
        return "cancelled" if self._task.cancelling() else "undisturbed"


class Deadlines:
    """The deadlines of one loop and their one timer. Times are seconds of `runtime.monotonic()`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._running: set[Deadline] = set()
        self._timer: Timer | None = None
        self._due = math.inf

    def start(self, seconds: float, loop: asyncio.AbstractEventLoop | None = None) -> Deadline:
        """Start a deadline for the running task, until `Deadline.stop`. Finding the loop is a system call."""
        task = asyncio.current_task(loop)
        assert task is not None, "a transport is used from a task"
        deadline = Deadline(task, self._runtime.monotonic() + seconds, self._running)
        self._running.add(deadline)
        if deadline.at < self._due:
            self._set_timer(deadline.at, max(seconds, 0.0))
        return deadline

    def close(self) -> None:
        """Drop the timer and end the attempts under way: their answers may never come now."""
        self._drop_timer()
        for deadline in list(self._running):
            deadline.expire("closed")

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._due = math.inf

    def _set_timer(self, due: float, delay: float) -> None:
        self._drop_timer()
        self._due = due
        self._timer = self._runtime.call_later(delay, self._check)

    def _check(self) -> None:
        """End overdue attempts and set the timer for the next deadline, if there is one."""
        now = max(self._runtime.monotonic(), self._due)  # a loop may run a timer a clock tick early
        self._timer, self._due = None, math.inf
        for deadline in [deadline for deadline in self._running if deadline.at <= now]:
            deadline.expire("overdue")
        if self._running:
            due = max(min(deadline.at for deadline in self._running), now + TICK)
            self._set_timer(due, due - now)
