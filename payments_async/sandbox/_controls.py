"""The part of `Sandbox` that is about rules: what requests are answered instead of what they would be.

The part of `Sandbox` that is about records: what a payer, a bank or the merchant's desk would do.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from decimal import Decimal
from threading import RLock

from . import _record_actions
from .api.core import Core
from .api.rule import Rule, check_operation
from .api.rule_fields import check_match
from .common.money import read_amount
from .records.books import PaymentEntry, payment_entry
from .records.tenants import fingerprint_of
from .records.world import World


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


class RecordControls:
    """Ends and refunds records from behind the API. Every method may be called from any thread."""

    @abstractmethod
    def present(self) -> AbstractContextManager[World]:
        """The sandbox's insides as of now, under its lock."""

    def pay(
        self,
        payment_id: str,
        *,
        method: str = _record_actions.USUAL_METHOD,
        phone: str | None = None,
        country: str | None = None,
        outcome: str | None = None,
    ) -> PaymentEntry:
        """A simulated payer pays a payment, named by its own id or its checkout session's.

        Creates an attempt with `method` and ends it at once, or acts on the attempt that is waiting.
        `outcome` is scenario words such as `fail:CUSTOMER_DECLINED` or `action:collect_otp`; without it the
        creation's scenario decides, and else the payment completes. `LookupError` for an unknown id;
        `ValueError` when the payment is not open, or the session is locked to another country or phone.
        """
        with self.present() as world:
            payment = _record_actions.pay(
                world, payment_id, method=method, phone=phone, country=country, outcome=outcome
            )
            return payment_entry(payment)

    def settle(self, record_id: str, outcome: str = "complete") -> None:
        """End a payout, attempt, payment or pending refund now: `complete`, `fail:CODE` or `expire`.

        `LookupError` for an unknown id, `ValueError` for a record that is final or cannot end so.
        """
        with self.present() as world:
            _record_actions.settle(world, record_id, outcome)

    def hold(self, record_id: str) -> None:
        """A payout or attempt that is under way stays as it is until it is settled.

        `LookupError` for an unknown id, `ValueError` for a record that cannot end any more or has no attempt.
        """
        with self.present() as world:
            _record_actions.hold(world, record_id)

    def refund(
        self, payment_id: str, amount: Decimal | int | str | None = None, *, pending: bool = False
    ) -> str:
        """Refund a completed payment from behind the API and give the refund's id.

        `amount` is in major units, exact (`Decimal("29.99")`, `30`, `"29.99"`), all that is left when None;
        `pending` leaves it in flight until `settle`. `TypeError` for another type, such as a float, which is
        not exact; `ValueError` when the amount is no positive number or exceeds what is left.
        """
        wanted = None if amount is None else read_amount(amount)
        with self.present() as world:
            return _record_actions.refund(world, payment_id, wanted, pending=pending).id
