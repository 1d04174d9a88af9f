"""A runtime whose waits cost nothing: as soon as no request is under way, its clock jumps to the next timer.

For clients on real sockets, of either surface: back-off, pacing and polling run in no time and in order,
and a sandbox's clock can be moved along (`on_jump=sandbox.advance`).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from payments_async._http import shared
from payments_async._http.types import HTTPRequest, HTTPResponse, Transport
from payments_async.testing._skipping_clock import _Timer

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class JumpingRuntime:
    """A `Runtime` on a clock of its own. `slept` lists every jump in seconds."""

    def __init__(
        self, seed: int = 0, *, on_jump: Callable[[float], object] | None = None, start: datetime = EPOCH
    ) -> None:
        rng = random.Random(seed)
        self.random = rng.random
        self.token = rng.randbytes
        self.slept: list[float] = []
        self.busy = 0
        self.moves = 0
        self._start = start
        self._elapsed = 0.0
        self._on_jump = on_jump
        self._timers: list[tuple[float, int, _Timer]] = []
        self._order = itertools.count()
        self._armed: set[asyncio.AbstractEventLoop] = set()
        self._lock = threading.RLock()

    def monotonic(self) -> float:
        return self._elapsed

    def boottime(self) -> float:
        return self._elapsed

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def advance(self, seconds: float) -> None:
        """Let time pass without running timers."""
        self._elapsed += seconds

    def step(self, seconds: float) -> None:
        """Set the wall clock, forward or back; no time passes."""
        self._start += timedelta(seconds=seconds)

    @contextmanager
    def standing(self) -> Iterator[None]:
        self.busy += 1
        try:
            yield
        finally:
            self.busy -= 1
            self.moves += 1

    async def sleep(self, seconds: float) -> None:
        done = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not done.done():
                done.set_result(None)

        timer = self.call_later(seconds, wake)
        try:
            await done
        finally:
            timer.cancel()

    def call_later(self, delay: float, callback: Callable[[], object], *, background: bool = False) -> Any:
        loop = asyncio.get_running_loop()
        timer = _Timer(loop, callback, background)
        with self._lock:
            heapq.heappush(self._timers, (self._elapsed + delay, next(self._order), timer))
            self.moves += 1
        self._arm(loop)
        return timer

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look at the timers a millisecond from now, once, and in vain when something moved meanwhile.

        Whom a jump or an answer wakes has come to rest before the next jump.
        """
        with self._lock:
            if loop in self._armed:
                return
            self._armed.add(loop)
        loop.call_later(0.001, self._give_way, loop, self.moves, 3)

    def _give_way(self, loop: asyncio.AbstractEventLoop, moves: int, turns: int) -> None:
        """Let what is ready go first for so many turns: some loops run timers early and before it."""
        if turns:
            loop.call_soon(self._give_way, loop, moves, turns - 1)
        else:
            self._jump(loop, moves)

    def _jump(self, loop: asyncio.AbstractEventLoop, moves: int) -> None:
        with self._lock:
            self._armed.discard(loop)
            while self._timers and (self._timers[0][2].cancelled or self._timers[0][2].loop.is_closed()):
                heapq.heappop(self._timers)
            if not self._timers:
                return
            waits = any(not (each.background or each.cancelled) for _, _, each in self._timers)
            if self.busy or moves != self.moves or not waits or self._timers[0][2].loop is not loop:
                self._arm(loop)
                return
            when, _, timer = heapq.heappop(self._timers)
            step = max(0.0, when - self._elapsed)
            self._elapsed += step
            self.slept.append(step)
        if step and self._on_jump:
            self._on_jump(step)
        timer.callback()
        self._arm(loop)

    def wrap(self, transport: Transport) -> Transport:
        """A transport during whose requests this clock stands still."""
        return _Counting(self, transport)


class _Counting:
    def __init__(self, runtime: JumpingRuntime, transport: Transport) -> None:
        self._runtime = runtime
        self._transport = transport

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        with self._runtime.standing():
            return await self._transport.send(request)

    def share(self) -> _Counting:
        return _Counting(self._runtime, shared(self._transport))

    async def aclose(self) -> None:
        await self._transport.aclose()
