"""Where a payment stands, as the payer should see it."""

from __future__ import annotations

from collections.abc import Mapping

from ..records.records import Attempt, Payment

PATIENCE = 60.0
"""Seconds of an attempt under way after which the page says that the outcome is not known."""

CANCELLED_CODE = "CUSTOMER_CANCELLED"
"""The failure of an attempt that the payer gave up."""

OPENINGS = frozenset({"open", "failed", "cancelled"})
"""The states in which an attempt may begin; in every other one it could be a second payment."""

MOVING = frozenset({"waiting", "unknown", "action"})
"""The states that change without the payer's doing on this page."""

_PAID = frozenset({"completed", "refunded", "partially_refunded"})
_BY_ATTEMPT: Mapping[str, str] = {"processing": "waiting", "action_required": "action", "failed": "failed"}


def state_of(payment: Payment, now: float) -> str:
    """`open`, `waiting`, `action`, `failed`, `cancelled`, `paid`, `expired` or `unknown`.

    An attempt that takes long, or has a status not known here, is `unknown` and never `failed`. One that
    failed over to another is not looked at: the newest attempt stands for the payment.
    """
    if payment.status in _PAID:
        return "paid"
    if not payment.is_open:
        return "expired" if payment.status == "expired" else "unknown"
    active = payment.active_attempt
    return _state_of_attempt(active, now) if active else "open"


def _state_of_attempt(attempt: Attempt, now: float) -> str:
    state = _BY_ATTEMPT.get(attempt.status, "unknown")
    if state == "waiting" and now - attempt.created_at >= PATIENCE:
        return "unknown"
    if state == "failed" and attempt.failure is not None and attempt.failure.code == CANCELLED_CODE:
        return "cancelled"
    return state


def doubt_at(payment: Payment, now: float) -> float | None:
    """When a payment under way becomes one of unknown outcome; None where time alone does not do that."""
    active = payment.active_attempt
    return active.created_at + PATIENCE if active and state_of(payment, now) == "waiting" else None


def step_of(payment: Payment, now: float) -> str:
    """What a form was made at; one made at another step has no effect, which ends double submissions."""
    return f"{len(payment.attempts)}-{state_of(payment, now)}"


def was_rerouted(payment: Payment) -> bool:
    """Whether the newest attempt took over from one that failed on the gateway's side."""
    return payment.active_attempt is not None and payment.active_attempt.is_failover
