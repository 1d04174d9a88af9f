"""The part of `Sandbox` that is about rules: what requests are answered instead of what they would be."""

from __future__ import annotations

from threading import RLock

from .api.core import Core
from .api.rule import Rule, check_operation
from .api.rule_fields import check_match
from .records.tenants import fingerprint_of


class RuleControls:
    """Sets rules and forgets them. Every method may be called from any thread."""

    _core: Core
    _lock: RLock
    _rules_made = 0

    @property
    def unused_rules(self) -> list[Rule]:
        """The rules set with `on` that have not been used up; one for every time is, once it has struck."""
        with self._lock:
            return [rule for rule in self._core.rules if not rule.is_used_up]

    def on(self, operation: str, *, api_key: str | None = None, **match: object) -> Rule:
        """A rule for the requests of `operation`: a name such as `payouts.create`, or a glob (`payouts.*`).

        `match` compares path, query and body values by name, `metadata__order="7"` for nested ones; `api_key`
        narrows the rule to one tenant. Earlier rules come first. `ValueError`, naming what is near, for an
        unknown operation, and for a name that is nearly one of its fields.
        """
        check_operation(operation)
        check_match(operation, match)
        with self._lock:
            self._rules_made += 1
            name = f"rule_{self._rules_made}"
            rule = Rule(operation, match, fingerprint_of(api_key) if api_key else None, name)
            self._core.rules.append(rule)
        return rule

    @property
    def rules(self) -> list[Rule]:
        """The rules set with `on`, used up or not, the one that counts first in front."""
        with self._lock:
            return list(self._core.rules)

    def remove_rule(self, rule: Rule | str) -> None:
        """Forget one rule, or the one with this `id`; `LookupError` when it is not set."""
        name = rule if isinstance(rule, str) else rule.id
        with self._lock:
            kept = [known for known in self._core.rules if known.id != name]
            if len(kept) == len(self._core.rules):
                raise LookupError(f"no rule {name!r}")
            self._core.rules[:] = kept

    def clear_rules(self) -> None:
        """Forget every rule set with `on`."""
        with self._lock:
            self._core.rules.clear()
