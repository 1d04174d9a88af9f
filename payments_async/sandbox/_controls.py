"""The controls of a `Sandbox`: rules, records, keys and the time.

The inspector, the control API and the Advisor work with this, and know nothing of the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import RLock

from ._api.core import Core
from ._api.fault_rules import Rule, check_operation
from ._common.clock import Clock
from ._common.profiles import Profile
from ._common.values import Change
from ._record_actions import RecordControls
from ._records.books import Books
from ._records.tenants import KeyStatus, fingerprint_of
from ._service import SandboxService
from ._webhooks.address_guard import read_allowed


class RuleControls:
    """Sets and removes rules. Every method may be called from any thread."""

    _core: Core
    _lock: RLock
    _rules_made = 0

    @property
    def unused_rules(self) -> list[Rule]:
        """The rules set with `on` that are not used up. A rule for every request is, after its first one."""
        with self._lock:
            return [rule for rule in self._core.rules if not rule.is_used_up]

    def on(self, operation: str, *, api_key: str | None = None, **match: object) -> Rule:
        """A rule for the requests of `operation`: a name such as `payouts.create`, or a glob (`payouts.*`).

        `match` compares path, query and body values by name, `metadata__order="7"` for nested ones; in a text
        `*` stands for any characters, `\\*` for a star. `api_key` narrows the rule to one tenant. Earlier
        rules come first. `ValueError`, naming what is near, for an unknown operation.
        """
        check_operation(operation)
        with self._lock:
            self._rules_made += 1
            name = f"rule_{self._rules_made}"
            rule = Rule(operation, match, fingerprint_of(api_key) if api_key else None, name)
            self._core.rules.append(rule)
        return rule

    @property
    def rules(self) -> list[Rule]:
        """The rules set with `on`, used up or not. The first that matches a request wins."""
        with self._lock:
            return list(self._core.rules)

    def remove_rule(self, rule: Rule | str) -> None:
        """Remove a rule, given itself or its `id`; `LookupError` when it is not set."""
        name = rule if isinstance(rule, str) else rule.id
        with self._lock:
            kept = [known for known in self._core.rules if known.id != name]
            if len(kept) == len(self._core.rules):
                raise LookupError(f"no rule {name!r}")
            self._core.rules[:] = kept

    def clear_rules(self) -> None:
        """Remove every rule set with `on`."""
        with self._lock:
            self._core.rules.clear()


class SandboxControls(SandboxService, RuleControls, RecordControls):
    """One simulated service with all its controls, served or not. Its own pages and routes use this."""

    row_key: Callable[[str], str | None]
    """Finds the key of the row that a payout's reference belongs to, for the inspector alone."""

    def __init__(self, core: Core, clock: Clock, profile: Profile, allow_webhooks_to: Iterable[str]) -> None:
        super().__init__(core, clock)
        self._profile = profile
        self._allowed = read_allowed(allow_webhooks_to)
        self.books: Books = Books(self.changing)

    @property
    def origin(self) -> str:
        """The address of the server, without a path; `http://sandbox.test` before it serves."""
        return self._core.world.origin

    @property
    def profile(self) -> Profile:
        """The profile that fills the gaps of the interface."""
        return self._profile

    def new_key(self, status: KeyStatus = "active", allowlist: Iterable[str] | None = None) -> str:
        """A new sandbox key with a tenant of its own.

        `status` is `active`, `inactive` or `expired`; `allowlist` holds addresses and networks
        (`10.0.0.0/8`), None for all. `ValueError` for one that cannot be read.
        """
        with self.changing() as world:
            return world.add_tenant(status, None if allowlist is None else tuple(allowlist))

    def revoke_key(self, api_key: str, reason: str = "The API key was revoked.") -> None:
        """Refuse a key from now on: 401, with `reason` as its message. Its records stay.

        `LookupError` for a key that is none of this sandbox's.
        """
        with self.changing() as world:
            if api_key not in world.tenants:
                raise LookupError("no such API key of this sandbox")
            world.tenants[api_key].revoked = reason

    def reset(self) -> None:
        """Start over: no records, rules, timers, counts or journal. Keys and the time stay as they are."""
        with self._lock:
            self._core.world.reset()
            self._core.rules.clear()
            self._outbox.clear()
            self._journal.clear()

    def advance(self, seconds: float) -> list[Change]:
        """Skip `seconds` of sandbox time ahead; gives what fell due on the way, in order.

        While it serves, the tries of webhooks that are due with it leave now.
        """
        with self._lock:  # so that no request in between takes what fell due out of the report
            self.clock.advance(seconds)
            effects = self._core.due(self.clock.now())
            self._keep(effects)
            self._poke()
        return [effect for effect in effects if isinstance(effect, Change)]
