"""The service's whole state, its timers and its pending effects."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable
from typing import Any

import attrs

from .._common.clock import Chance
from .._common.profiles import Profile
from .._common.rate_limits import KeyLimits, SandboxLimits
from .._common.values import Effect
from .tenants import KeyStatus, Tenant, fingerprint_of, read_allowlist

_KEY = re.compile("sk_sandbox_[A-Za-z0-9_-]{8,200}")

Step = Callable[..., None]
"""What happens to records at a set time; gets the world and the records."""
Timer = tuple[float, int, Step, *tuple[Any, ...]]
"""The time of a step, a number that keeps the order, the step and what it is about."""


def is_key(text: object) -> bool:
    """True for a key that a sandbox takes. It raises nothing, as a traceback would show another one."""
    return isinstance(text, str) and _KEY.fullmatch(text) is not None


@attrs.define(eq=False)
class World:
    """Tenants, timers and pending effects. `now` never goes back; `origin` is the service's address.

    `pages` is what the addresses of payers' pages begin with: `origin`, and whatever opens them.
    """

    profile: Profile
    limits: SandboxLimits
    chance: Chance
    now: float = 0.0
    origin: str = "http://sandbox.test"
    pages: str = attrs.field(default=origin, repr=False)
    tenants: dict[str, Tenant] = attrs.field(factory=dict, repr=False)
    has_receivers: bool = False
    """True if any record has a `webhook_url`, so that webhooks may fall due as time passes."""
    _timers: list[Timer] = attrs.field(factory=list, repr=False)
    _serial: int = 0
    _effects: list[Effect] = attrs.field(factory=list, repr=False)

    def add_tenant(self, status: KeyStatus, allowlist: tuple[str, ...] | None, key: str | None = None) -> str:
        """A tenant of its own for a sandbox key (`is_key`), a new one unless given; gives the key.

        `ValueError` for an unreadable allowlist.
        """
        key = f"sk_sandbox_{self.chance.token(32)}" if key is None else key
        networks = read_allowlist(allowlist)
        self.tenants[key] = Tenant(fingerprint_of(key), status, networks, KeyLimits(self.limits))
        return key

    def reset(self) -> None:
        """Forget every record, answer, timer and count; keys and the time stay."""
        self.tenants = {
            key: Tenant(
                tenant.fingerprint, tenant.status, tenant.allowlist, KeyLimits(self.limits), tenant.revoked
            )
            for key, tenant in self.tenants.items()
        }
        self._timers.clear()
        self._effects.clear()

    def at(self, moment: float, step: Step, *about: object) -> None:
        """Run `step` once the time is `moment`; steps of one moment run in the order they were set."""
        self._serial += 1
        timer: Timer = (moment, self._serial, step, *about)
        heapq.heappush(self._timers, timer)

    def run_due(self, now: float) -> None:
        """Move the time to `now`, running what falls due on the way at its own time."""
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)
            self.now = max(self.now, timer[0])
            timer[2](self, *timer[3:])
        self.now = max(self.now, now)

    def add_effect(self, effect: Effect) -> None:
        self._effects.append(effect)

    @property
    def next_at(self) -> float | None:
        return self._timers[0][0] if self._timers else None

    def take_effects(self) -> list[Effect]:
        """The effects since the last call, in order."""
        effects, self._effects = self._effects, []
        return effects
