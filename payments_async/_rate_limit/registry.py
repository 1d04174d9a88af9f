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
"""Idle keys are dropped from this number on; then from twice as many as stayed."""

_Place = tuple[str, str]
"""An address in its normal form and a key's fingerprint."""

_OURS: Final = frozenset({"payments_async", "payments_sync"})


class LimiterRegistry:
    """One `KeyLimiter` for each service address and secret key, shared by all clients of a process.

    It stays while a client holds it or anything in it still counts; who joins later finds a new one. A forked
    child begins with fresh limiters: for processes that share a key there is `RateLimits.share`.
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
        """The key's limiter. `None` takes it as it is; differing wishes get the lower figures and a warning.

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
        """How many keys have a limiter."""
        return len(self._known)

    def forked(self) -> None:
        """In a forked child: fresh limiters for every key."""
        self._lock = threading.Lock()
        for limiter in self._known.values():
            limiter.forked()

    def _find(self, place: _Place) -> KeyLimiter | None:
        """The place's limiter. An idle one without a client is dropped: its figures are a gone client's."""
        kept = self._kept.pop(place, None)
        if kept is not None and not kept.idle(self._clock()):
            return kept
        del kept  # so that only a client's reference keeps it known
        return self._known.get(place)

    def _sweep(self) -> None:
        """Let go of idle limiters, and take back those that a client holds."""
        if len(self._kept) < self._sweep_at:
            return
        now = self._clock()
        self._kept = {key: limiter for key, limiter in self._kept.items() if not limiter.idle(now)}
        self._kept = dict(self._known.items())
        self._sweep_at = max(SWEEP_FROM, 2 * len(self._kept))


def _outside() -> int:
    """The stack level, from who calls this, of the first frame outside our packages."""
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
