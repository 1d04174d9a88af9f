"""A runtime whose waits take no time: they move the clock of a sandbox, which the client then shares.

As soon as no request of its clients is under way, the clock skips to their next timer. Back-off, pacing and a
day of polling pass in milliseconds and in order. Time also runs by itself.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import ssl
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from .._http import default_transport, shared
from .._http.types import HTTPRequest, HTTPResponse, Transport
from .._runtime import SYSTEM, Timer
from ..sandbox import Sandbox
from ._tenant import SandboxTenant, service_of

_CHECK_AFTER: Final = 0.001
"""Seconds until a loop checks whether its clients only wait."""

_ROUNDS: Final = 3
"""Rounds of the loop in which ready callbacks run first: some loops run timers before them."""


class _Timer:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, callback: Callable[[], object], background: bool
    ) -> None:
        self.loop = loop
        self.callback = callback
        self.background = background
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class SkippingRuntime:
    """The time of one sandbox for its clients on any loop. A client takes it with its `transport()` only."""

    def __init__(self, sandbox: Sandbox | SandboxTenant) -> None:
        """Args:
        sandbox: its clock is moved; all its clients should share this runtime.
        """
        self.random: Callable[[], float] = SYSTEM.random
        self.token: Callable[[int], bytes] = SYSTEM.token
        self._sandbox = service_of(sandbox)
        self._busy = 0
        self._moves = 0
        self._timers: list[tuple[float, int, _Timer]] = []
        self._order = itertools.count()
        self._armed: set[asyncio.AbstractEventLoop] = set()
        self._lock = threading.RLock()

    def monotonic(self) -> float:
        """The sandbox's time in seconds; it never goes back."""
        return self._sandbox.clock.now()

    def boottime(self) -> float | None:
        """The same: a sandbox is never suspended."""
        return self._sandbox.clock.now()

    def now(self) -> datetime:
        """The sandbox's time, UTC."""
        return datetime.fromtimestamp(self._sandbox.clock.now(), UTC)

    async def sleep(self, seconds: float) -> None:
        """Return once the sandbox's clock has advanced by so many seconds."""
        done = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not done.done():  # it is when its waiter was cancelled
                done.set_result(None)

        timer = self.call_later(seconds, wake)
        try:
            await done
        finally:
            timer.cancel()

    def call_later(self, delay: float, callback: Callable[[], object], *, background: bool = False) -> Timer:
        """Run `callback` on the running loop once the sandbox's clock has advanced by `delay` seconds.

        The clock does not skip to a `background` timer while no other one waits.
        """
        loop = asyncio.get_running_loop()
        timer = _Timer(loop, callback, background)
        with self._lock:
            heapq.heappush(self._timers, (self.monotonic() + delay, next(self._order), timer))
            self._moves += 1
        self._arm(loop)
        return timer

    def transport(
        self,
        *,
        connect_timeout: float = 10.0,
        max_connections: int = 256,
        proxy: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> Transport:
        """The default transport. During its requests nothing is skipped; its time-outs take real time."""
        return self.wrap(default_transport(SYSTEM, connect_timeout, max_connections, proxy, ssl_context))

    def wrap(self, transport: Transport) -> Transport:
        """A transport during whose requests nothing is skipped."""
        return _Counting(self, transport)

    def began(self) -> None:
        """A request is under way."""
        with self._lock:
            self._busy += 1

    def ended(self) -> None:
        """A request is over."""
        with self._lock:
            self._busy -= 1
            self._moves += 1

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            if loop in self._armed:
                return
            self._armed.add(loop)
            moves = self._moves
        loop.call_later(_CHECK_AFTER, self._wait_rounds, loop, moves, _ROUNDS)

    def _wait_rounds(self, loop: asyncio.AbstractEventLoop, moves: int, turns: int) -> None:
        if turns:
            loop.call_soon(self._wait_rounds, loop, moves, turns - 1)
        else:
            self._run_due_timer(loop, moves)

    def _run_due_timer(self, loop: asyncio.AbstractEventLoop, moves: int) -> None:
        """Run the next timer when it is this loop's and is due, or when the clock may skip to it."""
        with self._lock:
            self._armed.discard(loop)
            timer = self._take(loop, resting=not self._busy and moves == self._moves)
            more = bool(self._timers)
        if timer is not None:
            timer.callback()
        if more:
            self._arm(loop)

    def _take(self, loop: asyncio.AbstractEventLoop, *, resting: bool) -> _Timer | None:
        while self._timers and (self._timers[0][2].cancelled or self._timers[0][2].loop.is_closed()):
            heapq.heappop(self._timers)
        if not self._timers or self._timers[0][2].loop is not loop:
            return None
        due, _, timer = self._timers[0]
        early = due - self.monotonic()
        waits = any(not (each.background or each.cancelled) for _, _, each in self._timers)
        if early > 0 and not (resting and waits):
            return None
        heapq.heappop(self._timers)
        if early > 0:
            self._sandbox.advance(early)
        return timer


class _Counting:
    def __init__(self, runtime: SkippingRuntime, transport: Transport) -> None:
        self._runtime = runtime
        self._transport = transport

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        self._runtime.began()
        try:
            return await self._transport.send(request)
        finally:
            self._runtime.ended()

    def share(self) -> _Counting:
        return _Counting(self._runtime, shared(self._transport))

    async def aclose(self) -> None:
        await self._transport.aclose()
