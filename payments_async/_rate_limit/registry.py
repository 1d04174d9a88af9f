"""The one limiter that a process keeps for each service address and secret key."""

from __future__ import annotations

import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Final

from .._http.addresses import normal
from .._runtime import SYSTEM
from .key_limiter import KeyLimiter
from .limits import RateLimits

SWEEP_FROM: Final = 64
"""Number of keys from which idle ones are dropped; next at twice the number that stayed."""

_Place = tuple[str, str]
"""A normalised address and a key's fingerprint."""

_OURS: Final = frozenset({"payments_async", "payments_sync"})


class LimiterRegistry:
    """One `KeyLimiter` for each service address and secret key, shared by all clients of a process.

    A limiter stays while a client holds it or anything in it still counts; after that a client gets a new
    one. A forked child starts with new limiters: use `RateLimits.share` for processes that share a key.
    """

    def __init__(self, clock: Callable[[], float] = SYSTEM.monotonic) -> None:
        """`clock` gives the monotonic seconds of the runtime whose clients join."""
        self._clock = clock
        self._known: weakref.WeakValueDictionary[_Place, KeyLimiter] = weakref.WeakValueDictionary()
        self._kept: dict[_Place, KeyLimiter] = {}
        self._sweep_at = SWEEP_FROM
        self._lock = threading.Lock()
        _registries.add(self)

    def join(self, address: str, fingerprint: str, limits: RateLimits | None = None) -> KeyLimiter:
        """The key's limiter. Limits of None accept its own; different limits give the lower and a warning.

        The one RuntimeWarning points at the code that called this package.
        """
        place = normal(address), fingerprint
        with self._lock:
            limiter = self._find(place)
            if limiter is None:
                self._sweep()
                limiter = self._known[place] = KeyLimiter()
            self._kept[place] = limiter
        if limits is not None and limiter.agree(limits):
            warnings.warn(
                "clients of one key ask for different rate limits; the lower figure of each class holds",
                RuntimeWarning,
                stacklevel=_outside(),
            )
        return limiter

    def __len__(self) -> int:
        """Number of keys with a limiter."""
        return len(self._known)

    def forked(self) -> None:
        """Start a forked child with new limiters for every key."""
        self._lock = threading.Lock()
        for limiter in self._known.values():
            limiter.forked()

    def _find(self, place: _Place) -> KeyLimiter | None:
        """Find a limiter. An idle one without a client is dropped, since its limits were that client's."""
        kept = self._kept.pop(place, None)
        if kept is not None and not kept.idle(self._clock()):
            return kept
        del kept  # so that only a client's reference keeps it
        return self._known.get(place)

    def _sweep(self) -> None:
        """Drop idle limiters, except those that a client holds."""
        if len(self._kept) < self._sweep_at:
            return
        now = self._clock()
        self._kept = {key: limiter for key, limiter in self._kept.items() if not limiter.idle(now)}
        self._kept = dict(self._known.items())
        self._sweep_at = max(SWEEP_FROM, 2 * len(self._kept))


def _outside() -> int:
    """The stack level, from the caller, of the first frame outside our packages."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    return level


_registries: weakref.WeakSet[LimiterRegistry] = weakref.WeakSet()

PROCESS: Final = LimiterRegistry()
"""The limiters of every client on the system's clock."""


def _after_fork() -> None:
    for registry in _registries:
        registry.forked()


if hasattr(os, "register_at_fork"):  # pragma: no branch  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)
