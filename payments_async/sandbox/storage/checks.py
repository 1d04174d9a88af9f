"""What a stored record has to be besides its types, so that no file makes the service fail or hang later."""

from __future__ import annotations

from decimal import Decimal

from ..api.field_checks import LARGEST
from ..common.scenario_words import ACTION_TYPES, MOST_COPIES, MOST_FAILOVERS, HookWords
from ..records.records import Plan
from .parts import StatePart, StoredAttempt, StoredPayment, StoredPayout

_DECIMALS = 1_000_000
"""More than a request body can hold."""


def check(stored: StatePart) -> None:
    """`ValueError` for a record that the service could not have made."""
    if isinstance(stored, StoredPayout):
        _check_amount(stored.amount)
        _check_plan(stored.plan)
        _check_hooks(stored.hooks)
    elif isinstance(stored, StoredPayment):
        for amount in (stored.amount, *(refund.amount for refund in stored.refunds)):
            _check_amount(amount)
        _check_plan(stored.plan)
        _check_hooks(stored.hooks)
    elif isinstance(stored, StoredAttempt):
        _check_plan(stored.plan)
        if stored.failovers_left > MOST_FAILOVERS:
            raise ValueError("too many failovers")


def _check_amount(amount: Decimal) -> None:
    """One digit with a large exponent would be printed as a gigabyte."""
    if not (amount.is_finite() and 0 < amount <= LARGEST and int(amount.as_tuple().exponent) > -_DECIMALS):
        raise ValueError("an amount out of range")


def _check_plan(plan: Plan | None) -> None:
    if plan is None:
        return
    if plan.outcome.kind == "action" and plan.outcome.action not in ACTION_TYPES:
        raise ValueError("an unknown action")
    if plan.outcome.count > MOST_FAILOVERS:
        raise ValueError("too many failovers")


def _check_hooks(hooks: HookWords) -> None:
    if any(word.count > MOST_COPIES for word in hooks):
        raise ValueError("too many copies of a webhook")
