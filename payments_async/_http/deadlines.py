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

TICK: Final = 0.01
"""Least seconds between two checks of the attempts: thousands of deadlines cost 100 checks a second."""

Verdict = Literal["undisturbed", "overdue", "closed", "cancelled"]
"""The end of an attempt: by itself, by its deadline, by closing connections, by cancelling the task."""


class Deadlines:
    """The deadlines of one loop and their one timer. Times are seconds of `runtime.monotonic()`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._running: dict[asyncio.Task[object], tuple[float, int, Verdict, object]] = {}
        """For each attempt's task: deadline, how often it was cancelled before, how it ended, transport."""
        self._timer: Timer | None = None
        self._due = math.inf

    def start(
        self, seconds: float, loop: asyncio.AbstractEventLoop | None = None, transport: object = None
    ) -> asyncio.Task[object]:
        """Start a deadline for the running task, until `stop`. Finding the loop is a system call."""
        task = asyncio.current_task(loop)
        assert task is not None, "a transport is used from a task"
        at = self._runtime.monotonic() + seconds
        self._running[task] = (at, task.cancelling(), "undisturbed", transport)
        if at < self._due:
            self._set_timer(at, max(seconds, 0.0))
        return task

    def stop(self, task: asyncio.Task[object]) -> Verdict:
        """End a deadline; call once. Another cancellation wins, also one from before the attempt."""
        _, cancelling, verdict, _ = self._running.pop(task)
        if verdict != "undisturbed" and task.uncancel() <= cancelling:
            return verdict
        return "cancelled" if task.cancelling() else "undisturbed"

    def close(self, transport: object = None) -> None:
        """End the attempts under way, of one transport or all: their answers may never come now."""
        self._expire("closed", math.inf, transport)

    def _set_timer(self, due: float, delay: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._runtime.call_later(delay, self._check)

    def _check(self) -> None:
        """End overdue attempts and set the timer for the next deadline, if there is one."""
        now = max(self._runtime.monotonic(), self._due)  # a loop may run a timer a clock tick early
        self._timer, self._due = None, math.inf
        self._expire("overdue", now)
        due = min(
            (at for at, _, verdict, _ in self._running.values() if verdict == "undisturbed"), default=None
        )
        if due is not None:
            due = max(due, now + TICK)
            self._set_timer(due, due - now)

    def _expire(self, verdict: Verdict, until: float, transport: object = None) -> None:
        """Cancel the attempts with deadlines until then, of one transport or all, each once."""
        for task, (at, cancelling, ended, sender) in list(self._running.items()):
            if ended == "undisturbed" and at <= until and transport in (None, sender):
                self._running[task] = (at, cancelling, verdict, sender)
                task.cancel()
