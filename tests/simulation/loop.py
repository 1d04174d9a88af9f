"""A deterministic event loop: virtual time, a seeded order, and hosts that can die.

Coroutines and futures are asyncio's own, so that real code runs on it as well. It opens no selector: what is
ready runs in a seeded order, and when nothing is ready, time jumps to the next timer. A host is whatever runs
in a context with its name; when it dies, its callbacks are dropped where they stand, as in a power cut: no
`finally`, no `except`. One that is stopped runs them once it goes on. Everything else lives on.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import random
from asyncio import events
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_UNWINDINGS = 50
_HOST: contextvars.ContextVar[str] = contextvars.ContextVar("simulated host", default="")


def host_context(name: str) -> contextvars.Context:
    """A context whose callbacks belong to that host."""
    context = contextvars.copy_context()
    context.run(_HOST.set, name)
    return context


def current_host() -> str:
    """The host that runs this."""
    return _HOST.get()


def settle(future: asyncio.Future[T], result: T) -> None:
    """Give a future its result, unless it has one."""
    if not future.done():
        future.set_result(result)


class Deadlock(Exception):
    """Everybody waits for somebody."""


class SimulatedLoop(asyncio.AbstractEventLoop):
    """Runs one world."""

    def __init__(self, seed: object) -> None:
        self._random = random.Random(f"{seed}:schedule").random
        self._ready: list[asyncio.Handle] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._count = 0
        self._now = 0.0
        self._dead: set[str] = set()
        self._stopped: dict[str, list[asyncio.Handle]] = {}
        self._idle: set[str] = set()
        """Both: nothing of these hosts runs."""
        self._tasks: list[asyncio.Task[Any]] = []
        self._alarms: dict[int, Callable[[], object]] = {}
        self.steps = 0
        self.failures: list[dict[str, Any]] = []
        """What asyncio could tell nobody: exceptions of tasks that were not awaited."""

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def get_debug(self) -> bool:
        """Never."""
        return False

    def is_running(self) -> bool:
        """Only asked by asyncio while it is."""
        return True

    def is_closed(self) -> bool:
        """Only asked by asyncio while it is not."""
        return False

    def create_future(self) -> asyncio.Future[Any]:
        """asyncio's own."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> asyncio.Task[Any]:
        """asyncio's own, quiet about being left behind."""
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        task._log_destroy_pending = False  # type: ignore[attr-defined] # a power cut is no bug
        self._tasks.append(task)
        return task

    def call_soon(  # type: ignore[override] # untyped arguments
        self, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.Handle:
        """Run it before time goes on."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override] # untyped arguments
        self, delay: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Run it so many virtual seconds from now."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override] # untyped arguments
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Run it at a virtual time."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Nothing to count: cancelled timers are skipped when they are due."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep it for the judge."""
        self.failures.append(context)

    def start(self, host: str, coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task of that host."""
        context = host_context(host)
        return context.run(lambda: self.create_task(coro, context=context))

    def crash(self, *hosts: str) -> None:
        """A power cut: from now on nothing of these hosts runs."""
        self._dead.update(hosts)
        self._idle.update(hosts)

    def stop(self, host: str) -> None:
        """Let nothing of that host run until it goes on."""
        self._stopped.setdefault(host, [])
        self._idle.add(host)

    def go_on(self, host: str) -> None:
        """Run, in any order, what a stopped host has missed."""
        self._ready += self._stopped.pop(host, ())
        self._idle = self._dead | self._stopped.keys()

    def alarm(self, step: int, callback: Callable[[], object]) -> None:
        """Call it before that many more callbacks have run."""
        self._alarms[self.steps + step] = callback

    def clear_alarms(self) -> None:
        """Forget those that have not gone off."""
        self._alarms.clear()

    def advance(self, seconds: float) -> None:
        """Let so much time pass, with all that happens in it."""
        reached = self.create_future()
        self.call_later(seconds, reached.set_result, None)
        self.run(reached)

    def run(self, future: asyncio.Future[T]) -> T:
        """Its result, after running everything that comes before it. Raises Deadlock."""
        events._set_running_loop(self)
        try:
            while not future.done():
                self._step()
            return future.result()
        finally:
            events._set_running_loop(None)

    def _step(self) -> None:
        ready = self._ready
        if not ready:
            self._next_timers()
        if len(ready) > 1:
            place = int(self._random() * len(ready))
            handle = ready[place]
            ready[place] = ready[-1]
            ready.pop()
        else:
            handle = ready.pop()
        if handle._cancelled:
            return
        self.steps += 1
        if self._alarms and (alarm := self._alarms.pop(self.steps, None)):
            alarm()
        # The private parts of a handle are what asyncio's own loops use.
        context: contextvars.Context = handle._context  # type: ignore[attr-defined] # not in typeshed
        if self._idle and (host := context.get(_HOST, "")) in self._idle:
            self._stopped.get(host, []).append(handle)
            return
        context.run(handle._callback, *handle._args)  # type: ignore[attr-defined] # not in typeshed

    def _next_timers(self) -> None:
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not timers:
            raise Deadlock
        self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            self._ready.append(heapq.heappop(timers)[2])

    def close(self) -> None:
        """Bury what was left behind, after the verdict: this is where dead coroutines are unwound."""
        events._set_running_loop(self)
        try:
            for task in self._tasks:  # it may grow: real code starts tasks while it is unwound
                if not task.done():
                    _unwind(task)
        finally:
            events._set_running_loop(None)


def _unwind(task: asyncio.Task[Any]) -> None:
    """Close its coroutine; one that wants to wait while it cleans up is closed once more."""
    coro = task.get_coro()
    assert coro is not None
    for _ in range(_UNWINDINGS):
        try:
            coro.close()
        except Exception:  # the dead have nothing to say
            continue
        return
