"""The one limiter that a process keeps for each service address and secret key."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import attrs

from .._emitter import warn_caller
from .._http.addresses import normal
from .._http.types import Secret
from .._runtime import SYSTEM, Runtime, renewed_in_child
from ..errors import ConfigurationError
from .key_limiter import CLASSES, KeyLimiter
from .limits import RateLimits

if TYPE_CHECKING:
    from .store_client import LimitStoreClient

SWEEP_FROM: Final = 64
"""Number of keys from which idle ones are dropped; next at twice the number that stayed."""

NO_SHARE: Final = (
    "a limit store shares the whole limits among all processes: use no RateLimits.share() and no "
    "PAYMENTS_RATE_SHARE together with it"
)

_Place = tuple[str, str]  # a normalised address and a key's fingerprint


@attrs.frozen(kw_only=True, eq=False)
class StoreUse:
    address: Secret
    workers: int | None  # processes of the fleet, if known
    runtime: Runtime
    insecure_database: bool = False
    """True if a store on another host may be used without verified TLS."""


class LimiterRegistry:
    """One `KeyLimiter` for each service address and secret key, shared by all clients of a process.

    A limiter stays while a client holds it or anything in it still counts; after that a client gets a new
    one. A forked child starts with new limiters: processes that share a key need a store, or
    `RateLimits.share`.
    """

    def __init__(self, clock: Callable[[], float] = SYSTEM.monotonic) -> None:
        """`clock` gives the monotonic seconds of the runtime whose clients join."""
        self._clock = clock
        self._known: weakref.WeakValueDictionary[_Place, KeyLimiter] = weakref.WeakValueDictionary()
        self._kept: dict[_Place, KeyLimiter] = {}
        self._stores: weakref.WeakValueDictionary[str, LimitStoreClient] = weakref.WeakValueDictionary()
        self._sweep_at = SWEEP_FROM
        self._lock = threading.Lock()
        _registries.add(self)

    def join(
        self, address: str, fingerprint: str, limits: RateLimits | None = None, store: StoreUse | None = None
    ) -> KeyLimiter:
        """The key's limiter. Limits of None accept its own; different limits give the lower and a warning.

        The one RuntimeWarning points at the code that called this package. With a store, the limiter takes
        permits from it, for all its clients. Raises ConfigurationError for two stores, and for one together
        with a share of the limits.
        """
        place = normal(address), fingerprint
        with self._lock:
            limiter = self._find(place)
            if limiter is None:
                self._sweep()
                limiter = self._known[place] = KeyLimiter(place=place)
            self._kept[place] = limiter
            self._share(limiter, limits, store)
        if limits is not None and limiter.agree(limits):
            warn_caller(
                "clients of one key ask for different rate limits; the lower figure of each class holds"
            )
        return limiter

    def forked(self) -> None:
        """Start a forked child with new limiters for every key."""
        self._lock = threading.Lock()
        for limiter in self._known.values():
            limiter.forked()

    def _share(self, limiter: KeyLimiter, limits: RateLimits | None, store: StoreUse | None) -> None:
        """Have a limiter use a client's store."""
        wished = limits or limiter.limits
        if store is not None or limiter.store is not None:
            _check_shared(wished)
        if store is not None:
            limiter.share(self._client(store), store.workers, self._clock())

    def _client(self, store: StoreUse) -> LimitStoreClient:
        """The process's one client of a store, for as long as a limiter holds it."""
        from .store_client import LimitStoreClient  # most programs use no store

        client = self._stores.get(store.address)
        if client is None:
            client = LimitStoreClient(store.address, store.runtime, insecure_database=store.insecure_database)
            self._stores[store.address] = client
        return client

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


def _check_shared(limits: RateLimits) -> None:
    if limits.is_share:
        raise ConfigurationError(NO_SHARE)
    from .store import LEAST

    for kind in CLASSES:
        if (limit := limits.of(kind)) < LEAST:
            raise ConfigurationError(
                f"a limit store shares limits from {LEAST} requests a minute up, not {limit} ({kind})"
            )


_registries: weakref.WeakSet[LimiterRegistry] = weakref.WeakSet()

PROCESS: Final = LimiterRegistry()
"""The limiters of every client on the system's clock."""


@renewed_in_child
def _after_fork() -> None:
    for registry in _registries:
        registry.forked()
