"""The messages of each state. A running payment, or one of unknown outcome, is never called a failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from .session_view import SessionView
from .texts import say

if TYPE_CHECKING:
    from markupsafe import Markup

_FAILURES: Mapping[str, str] = {
    "CUSTOMER_DECLINED": "The payment was declined.",
    "INSUFFICIENT_FUNDS": "There is not enough money in the account.",
    "CARD_EXPIRED": "The card has expired.",
    "GATEWAY_UNAVAILABLE": "The provider could not be reached.",
    "INVALID_RECIPIENT": "The number or account was not recognised.",
}


@attrs.frozen
class Message:
    """A heading, what it means, and its tone: `good`, `bad`, `doubt`, `calm` or `busy`."""

    heading: str
    tone: str
    lines: tuple[str, ...]

    def said_to(self, view: SessionView) -> list[Markup]:
        """The lines, as HTML."""
        active = view.payment.active_attempt
        failure = active.failure if active else None
        known = _FAILURES.get(failure.code) if failure else None
        why = known or failure.message if failure else ""
        values = {"brand": view.appearance.brand_html, "amount": view.amount, "why": why}
        return [say(line, **values) for line in self.lines]


UNKNOWN = Message(
    "We do not know the outcome yet",
    "doubt",
    (
        "The payment is taking longer than usual and may still go through. Please do not pay again.",
        "We will tell {brand} as soon as we know.",
    ),
)
_MESSAGES: Mapping[str, Message] = {
    "waiting": Message(
        "Your payment is on its way",
        "busy",
        ("This usually takes a few seconds. You do not need to do anything.",),
    ),
    "unknown": UNKNOWN,
    "failed": Message(
        "The payment did not go through",
        "bad",
        ("{why} You have not been charged. You can try again.",),
    ),
    "cancelled": Message(
        "You cancelled the payment", "calm", ("You have not been charged. You can still pay.",)
    ),
    "paid": Message("Payment complete", "good", ("You paid {amount} to {brand}.",)),
    "expired": Message(
        "This checkout has expired",
        "calm",
        ("You have not been charged. Go back to {brand} to start again.",),
    ),
}
"""By the state of the payment."""

EXPIRED_IN_DOUBT = Message(
    "This checkout has expired",
    "doubt",
    ("If you approved the payment just before it expired, ask {brand} before you pay again.",),
)
NOT_PAID = Message("You have not paid", "calm", ("You have not been charged.",))
"""For a payer who turned back before any attempt."""

ALREADY_PAID = Message(
    "Already paid",
    "good",
    ("This payment has already been made. You will not be charged again.",),
)
"""For a payer who opens, or submits, a payment that was already paid."""


def message_for(view: SessionView) -> Message:
    """The message of the payment's own page."""
    active = view.payment.active_attempt
    in_doubt = view.state == "expired" and active is not None and active.status == "expired"
    return EXPIRED_IN_DOUBT if in_doubt else _MESSAGES[view.state]
