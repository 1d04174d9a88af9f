"""The messages of each state. A running payment, or one of unknown outcome, is never called a failure."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from .method_catalogue import find_method
from .session_view import UNFINISHED, SessionView

_FAILURES: Mapping[str, str] = {
    "CUSTOMER_DECLINED": "It was declined.",
    "INSUFFICIENT_FUNDS": "There was not enough money on the account.",
    "GATEWAY_UNAVAILABLE": "The provider could not be reached.",
    "INVALID_RECIPIENT": "The number or account is not known there.",
}


@attrs.frozen
class Message:
    """A heading, what it means, and its tone: `good`, `bad`, `calm` or `busy`."""

    heading: str
    tone: str
    lines: tuple[str, ...]


_MESSAGES: Mapping[str, Message] = {
    "waiting": Message(
        "Your payment is on its way",
        "busy",
        ("This usually takes a few seconds. You do not need to do anything.",),
    ),
    "unknown": Message(
        "We do not know the outcome yet",
        "calm",
        (
            "The payment takes longer than usual, and it may still go through. Please do not pay again.",
            "{brand} will learn the outcome as soon as it is known.",
        ),
    ),
    "failed": Message(
        "The payment did not go through", "bad", ("{why} Nothing was taken. You can try again.",)
    ),
    "cancelled": Message("You cancelled the payment", "calm", ("Nothing was taken. You can still pay.",)),
    "paid": Message("Payment complete", "good", ("You paid {amount} to {brand}.",)),
    "expired": Message(
        "This checkout has expired", "calm", ("Nothing was taken. Go back to {brand} to start again.",)
    ),
}
"""By the state of the payment."""

EXPIRED_IN_DOUBT = Message(
    "This checkout has expired",
    "calm",
    ("If you approved the payment just before the end, ask {brand} before you pay again.",),
)
NOT_PAID = Message("You have not paid", "calm", ("Nothing was taken from your account.",))
"""For a payer who turned back before any attempt."""

ALREADY_PAID = Message(
    "Already paid", "good", ("This payment has been made, once. You will not be charged again.",)
)
"""For a payer who opens, or submits, a payment that was already paid."""


def message_for(view: SessionView) -> Message:
    """The message of the payment's own page."""
    active = view.payment.active_attempt
    in_doubt = view.state == "expired" and active is not None and active.status == "expired"
    message = EXPIRED_IN_DOUBT if in_doubt else _MESSAGES[view.state]
    failure = active.failure if active else None
    why = _FAILURES.get(failure.code, failure.message) if failure else ""
    lines = (line.format(brand=view.appearance.brand, amount=view.amount, why=why) for line in message.lines)
    return attrs.evolve(message, lines=tuple(lines))


def under_way_instead(view: SessionView, method: str | None) -> str:
    """For a payer who wanted to use `method` while another payment was under way, as from a second tab.

    Empty for everybody else.
    """
    wanted, active = find_method(method), view.payment.active_attempt
    if wanted is None or active is None or view.state not in UNFINISHED or active.method == wanted.code:
        return ""
    used = find_method(active.method)
    name = f"A payment with {used.label}" if used else "Another payment"
    return f"{name} is under way, so no payment with {wanted.label} was started. You pay only once."
