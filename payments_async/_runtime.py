"""Clock, randomness and the process: the only module that reads the time, sleeps or draws random bytes.

Everything else takes a `Runtime`, so that a test can run a day of back-off in milliseconds.

C's `fork`, as uWSGI calls it, runs no hook of Python's. So each door to an event loop, a pool, a limiter or a
guard compares the pid (`check_process`). What must be unique is drawn when it is needed: the copy of a whole
machine keeps even the pid.
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
        # threading's own, which freezegun leaves alone: a clock that one test stops goes back in the next one
        self.monotonic: Callable[[], float] = getattr(threading, "_time", time.monotonic)
        self.boottime = clock_with_suspension(sys.platform)
        self.random = random.SystemRandom().random  # without a state that forked children would share

    def now(self) -> datetime:
        """The wall clock, aware, UTC: where a test has stopped it, as that test says."""
        return datetime.now(UTC)

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


def check_process() -> None:
    """Renew what belongs to a parent's threads, if this process was copied from it since the last check."""
    if os.getpid() != _pid:
        _renew()


def renewed_in_child(renew: Callable[[], None]) -> Callable[[], None]:
    """Have a function called by a child's first check, to renew what belongs to its parent's threads."""
    _renewals.append(renew)
    return renew


def _renew() -> None:
    global _pid
    pid = os.getpid()
    # a lock of this process: one of the parent's threads may hold any other for ever
    with _renewing.setdefault(pid, threading.RLock()):
        if pid != _pid:
            for renew in _renewals:
                renew()
            _pid = pid  # last: another thread that comes meanwhile waits for the end


def held_during_fork() -> threading.RLock:
    """Make a lock for which each fork waits: no child begins in the midst of what is done under it."""
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has no fork
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


def has_modes() -> bool:
    """Whether this system's files have an owner and a mode; those of Windows have neither."""
    return hasattr(os, "geteuid")


def clock_with_suspension(platform: str) -> Callable[[], float | None]:
    """Find a platform's clock that counts suspension; Windows has none that Python can read."""
    names = {"linux": "CLOCK_BOOTTIME", "darwin": "CLOCK_MONOTONIC"}
    clock = getattr(time, names.get(platform, ""), None)
    return partial(time.clock_gettime, clock) if clock is not None else lambda: None


_pid = os.getpid()
_renewals: Final[list[Callable[[], None]]] = []
_renewing: Final[dict[int, threading.RLock]] = {}
"""One lock for each generation of processes."""

SYSTEM = SystemRuntime()
SESSION: Final = os.urandom(8).hex()
"""Identifies this process: monotonic times of different processes cannot be compared."""
