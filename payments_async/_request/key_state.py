"""State of a secret key in this process: its rate limits and retry budget, shared by all its clients."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import attrs

from .._rate_limit.key_limiter import KeyLimiter
from .._rate_limit.limits import RateLimits
from .._rate_limit.registry import LimiterRegistry
from .auth import SecretKey
from .retry import RetryBudget

_BUDGETS: WeakKeyDictionary[KeyLimiter, RetryBudget] = WeakKeyDictionary()


@attrs.frozen(eq=False, repr=False)
class KeyState:
    """The rate limits and retry budget of one key."""

    limiter: KeyLimiter
    budget: RetryBudget


class Keys:
    """The states of the keys that one client has used."""

    def __init__(self, limiters: LimiterRegistry, base_url: str, limits: RateLimits | None) -> None:
        self._limiters = limiters
        self._base_url = base_url
        self._limits = limits
        self._states: dict[str, KeyState] = {}

    def of(self, key: SecretKey) -> KeyState:
        """The state of a key."""
        return self._states.get(key.fingerprint) or self._join(key.fingerprint)

    def _join(self, fingerprint: str) -> KeyState:
        limiter = self._limiters.join(self._base_url, fingerprint, self._limits)
        state = KeyState(limiter, _BUDGETS.setdefault(limiter, RetryBudget()))
        if len(self._states) >= 16:  # keys that were rotated away
            self._states.clear()
        self._states[fingerprint] = state
        return state
