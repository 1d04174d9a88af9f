"""State of a secret key in this process: its rate limits and retry budget, shared by all its clients."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from .._rate_limit.key_limiter import KeyLimiter
from .._rate_limit.limits import Outage, RateLimits
from .._rate_limit.registry import LimiterRegistry, StoreUse
from .._runtime import Runtime
from .auth import SecretKey
from .settings import Settings


class RetryBudget:
    """A key's budget of retries, so that a failing service is not flooded.

    500 tokens; a retry takes 5, one after a timeout 10; a success gives 1 back. A 429 costs nothing: the
    limiter it closes lets out one request at a time.
    """

    FULL = 500

    def __init__(self) -> None:
        self.tokens: int = self.FULL

    def spend(self, reason: str) -> bool:
        """Take the tokens of a retry after a failure of this kind; False when there are not enough."""
        price = 10 if reason == "timeout" else 5
        if self.tokens < price:
            return False
        self.tokens -= price
        return True

    def earn(self) -> None:
        """Give back a token after a successful call."""
        if self.tokens < self.FULL:
            self.tokens += 1


_BUDGETS: WeakKeyDictionary[KeyLimiter, RetryBudget] = WeakKeyDictionary()


class KeyState:
    """The rate limits and retry budget of one key."""

    __slots__ = ("budget", "limiter")

    def __init__(self, limiter: KeyLimiter, budget: RetryBudget) -> None:
        self.limiter: KeyLimiter = limiter
        self.budget: RetryBudget = budget


def store_use(settings: Settings, runtime: Runtime, *, is_default: bool = False) -> StoreUse | None:
    """How a client uses its limit store, if it has one. `is_default`: unless its key has another."""
    if settings.limit_store is None:
        return None
    return StoreUse(
        address=settings.limit_store,
        workers=settings.expected_workers,
        timeout=settings.timeout,
        runtime=runtime,
        insecure_database=settings.insecure_database,
        is_default=is_default,
    )


class Keys:
    """The states of the keys that one client has used."""

    def __init__(
        self, limiters: LimiterRegistry, base_url: str, limits: RateLimits | None, store: StoreUse | None
    ) -> None:
        self._limiters = limiters
        self._base_url = base_url
        self._limits = limits
        self._store = store
        self._states: dict[str, KeyState] = {}
        self.known_outage: Outage | None = None
        """The outage of the limit store that this client's hook was told of."""

    def of(self, key: SecretKey) -> KeyState:
        """The state of a key."""
        return self._states.get(key.fingerprint) or self._join(key.fingerprint)

    def of_another(self, settings: Settings, runtime: Runtime) -> Keys:
        """The states of the keys of another client on the same clock."""
        return Keys(self._limiters, settings.base_url, settings.limits, store_use(settings, runtime))

    def use_store(self, store: StoreUse | None) -> None:
        """Share the limits through a store from now on, unless the client has one."""
        if self._store is None:
            self._store = store
            self._states.clear()

    def close(self) -> None:
        """End the thread that asks for permits, as soon as nobody waits for them; a later call starts one."""
        for state in self._states.values():
            if state.limiter.fleet is not None:
                state.limiter.fleet.store.end()

    def _join(self, fingerprint: str) -> KeyState:
        limiter = self._limiters.join(self._base_url, fingerprint, self._limits, self._store)
        state = KeyState(limiter, _BUDGETS.setdefault(limiter, RetryBudget()))
        if len(self._states) >= 16:  # keys that were rotated away
            self._states.clear()
        self._states[fingerprint] = state
        return state
