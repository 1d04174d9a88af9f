"""Sandbox time and random identifiers: the only file here that reads a clock or draws a number.

The core takes the time as an argument; this is where its callers get one. Time is in seconds since 1970, UTC.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

_MONOTONIC: Final[tuple[Callable[[], float], ...]] = (getattr(threading, "_time", time.monotonic),)
"""Threading's own, in a place where freezegun does not replace it: other tests may use the sandbox."""
EPOCH = 1_767_225_600.0
"""The default start of a frozen clock: 2026-01-01T00:00:00Z."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Digits and letters without the four that are easily misread."""
_OF_BYTES = _ALPHABET.encode() * 8


def real_secret() -> str:
    """Make a secret that no seed foretells, of digits and small letters."""
    return os.urandom(32).hex()


def real_seconds() -> float:
    """Read the machine's monotonic clock, in seconds: only differences mean something."""
    return _MONOTONIC[0]()


class Clock(Protocol):
    """The sandbox's clock. Callable from any thread."""

    def now(self) -> float:
        """Seconds since 1970, UTC; never goes back."""

    def advance(self, seconds: float) -> None:
        """Skip ahead and wake the sleepers."""

    async def sleep(self, seconds: float) -> None:
        """Return once the clock has moved on by so many seconds."""


class VirtualClock:
    """A clock that runs at any speed and can skip ahead.

    `speed` is sandbox seconds per real second: 1 is real time, 60 makes an hour pass in a minute, 0 stands
    still until `advance`. `start` is in seconds since 1970; `None` means the machine's present time.
    """

    def __init__(self, start: float | None = None, *, speed: float = 1.0) -> None:
        if speed < 0:
            raise ValueError("speed must be 0 (frozen) or more")
        self._speed = speed
        self._origin = time.time() if start is None else start
        self._anchor = real_seconds()
        self._lock = threading.Lock()
        self._wakers: dict[object, Callable[[], object]] = {}

    @classmethod
    def real(cls) -> VirtualClock:
        """The machine's time; `advance` skips ahead of it."""
        return cls()

    @classmethod
    def frozen(cls, start: float = EPOCH) -> VirtualClock:
        """A clock that moves only by `advance`."""
        return cls(start, speed=0.0)

    def now(self) -> float:
        """Seconds since 1970, UTC; never goes back."""
        with self._lock:
            return self._origin + (real_seconds() - self._anchor) * self._speed

    def advance(self, seconds: float) -> None:
        """Skip `seconds` ahead and wake the sleepers; `ValueError` when negative."""
        if seconds < 0:
            raise ValueError("time does not go back")
        with self._lock:
            self._origin += seconds
            wakers = list(self._wakers.values())
        for wake in wakers:
            wake()

    @property
    def speed(self) -> float:
        """Sandbox seconds per real second; 0 while the clock is frozen."""
        return self._speed

    def set_speed(self, speed: float) -> None:
        """Go on from the present time at another speed, 0 to freeze; `ValueError` when negative."""
        if not 0 <= speed < math.inf:
            raise ValueError("speed must be 0 (frozen) or more")
        with self._lock:
            real = real_seconds()
            self._origin += (real - self._anchor) * self._speed
            self._anchor, self._speed = real, speed
            wakers = list(self._wakers.values())
        for wake in wakers:  # sleepers then compute their alarms again
            wake()

    async def sleep(self, seconds: float) -> None:
        """Return once this clock has moved on by `seconds`, by itself or through `advance`."""
        due = self.now() + seconds
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        ticket = object()
        with self._lock:
            self._wakers[ticket] = lambda: loop.call_soon_threadsafe(woken.set)
        try:
            while (left := due - self.now()) > 0:
                woken.clear()
                alarm = loop.call_later(left / self._speed, woken.set) if self._speed else None
                try:
                    await woken.wait()
                finally:
                    if alarm is not None:
                        alarm.cancel()
        finally:
            with self._lock:
                del self._wakers[ticket]


class Chance:
    """Identifiers from a seeded generator, so that two runs with one seed give the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - identifiers of a simulation, not secrets

    def token(self, length: int) -> str:
        """Make a token of so many digits and small letters."""
        return self._random.randbytes(length).translate(_OF_BYTES).decode()

    def id(self, prefix: str) -> str:
        """Make a record identifier such as `po_` and twenty characters."""
        return f"{prefix}_{self.token(20)}"
