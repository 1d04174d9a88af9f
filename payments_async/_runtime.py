"""Clock, randomness and forks: the only module that reads the time, sleeps or draws random bytes.

Everything else takes a `Runtime`, so that a test can run a day of back-off in milliseconds.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Final, Protocol

from .errors import ConfigurationError


class Timer(Protocol):
    """A scheduled callback that can be cancelled."""

    def cancel(self) -> None:
        """Cancel the callback."""


class Runtime(Protocol):
    """The client's source of time and randomness. All durations are seconds."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""

    def boottime(self) -> float | None:
        """Seconds on a clock that also counts while the machine is suspended; None where there is none."""

    def now(self) -> datetime:
        """The wall clock, aware, UTC."""

    async def sleep(self, seconds: float) -> None:
        """Wait this long; other tasks run meanwhile."""

    def call_later(self, delay: float, callback: Callable[[], object], *, background: bool = False) -> Timer:
        """Run `callback` on the running loop after `delay` seconds.

        Nothing waits for a `background` timer: a clock that skips waiting times does not move for it alone.
        """

    def random(self) -> float:
        """A number in [0, 1), for jitter."""

    def token(self, size: int) -> bytes:
        """`size` unpredictable bytes."""


class SystemRuntime:
    """The real clock and the system's randomness."""

    def __init__(self) -> None:
        self.now = partial(datetime.now, UTC)
        self.monotonic = time.monotonic
        self.boottime = clock_with_suspension(sys.platform)
        self.random = random.SystemRandom().random  # without a state that forked children would share

    async def sleep(self, seconds: float) -> None:
        """Wait this long; other tasks run meanwhile."""
        await asyncio.sleep(seconds)

    def call_later(self, delay: float, callback: Callable[[], object], *, background: bool = False) -> Timer:
        """Run `callback` on the running loop after `delay` seconds."""
        return event_loop().call_later(delay, callback)

    def token(self, size: int) -> bytes:
        """`size` unpredictable bytes."""
        return os.urandom(size)


def event_loop() -> asyncio.AbstractEventLoop:
    """The running event loop. Raises ConfigurationError when no asyncio loop runs."""
    with suppress(RuntimeError):
        return asyncio.get_running_loop()
    raise ConfigurationError(
        "no event loop of asyncio runs here: await AsyncPayments under asyncio.run() or an asyncio server, "
        "not under trio; elsewhere, such as in a thread of trio's, use payments_sync.Payments"
    )


def after_fork_in_child(renew: Callable[[], None]) -> None:
    """Have a function called in each forked child, to renew what belongs to its parent's threads."""
    if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has no fork
        os.register_at_fork(after_in_child=renew)


def held_during_fork() -> threading.RLock:
    """Make a lock for which each fork waits: no child begins in the midst of what is done under it."""
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has no fork
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


def clock_with_suspension(platform: str) -> Callable[[], float | None]:
    """Find a platform's clock that counts suspension; Windows has none that Python can read."""
    names = {"linux": "CLOCK_BOOTTIME", "darwin": "CLOCK_MONOTONIC"}
    clock = getattr(time, names.get(platform, ""), None)
    return partial(time.clock_gettime, clock) if clock is not None else lambda: None


SYSTEM = SystemRuntime()
SESSION: Final = os.urandom(8).hex()
"""Identifies this process: monotonic times of different processes cannot be compared."""
