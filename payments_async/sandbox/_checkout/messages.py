"""The messages of each state. A running payment, or one of unknown outcome, is never called a failure."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from .language import Text
from .session_view import SessionView

_FAILURES: Mapping[str, Text] = {
    "CUSTOMER_DECLINED": Text("The payment was declined."),
    "INSUFFICIENT_FUNDS": Text("There is not enough money in the account."),
    "CARD_EXPIRED": Text("The card has expired."),
    "GATEWAY_UNAVAILABLE": Text("The provider could not be reached."),
    "INVALID_RECIPIENT": Text("The number or account was not recognised."),
}


@attrs.frozen
class Message:
    """A heading, what it means, and its tone: `good`, `bad`, `doubt`, `calm` or `busy`."""

    heading: Text
    tone: str
    lines: tuple[Text, ...]

    def said_to(self, view: SessionView) -> list[str]:
        """The lines in the payer's language."""
        active = view.payment.active_attempt
        failure = active.failure if active else None
        known = _FAILURES.get(failure.code) if failure else None
        why = view.say(known) if known else failure.message if failure else ""
        values = {"brand": view.appearance.brand_html, "amount": view.amount, "why": why}
        return [view.say(line, **values) for line in self.lines]


UNKNOWN = Message(
    Text("We do not know the outcome yet"),
    "doubt",
    (
        Text("The payment is taking longer than usual and may still go through. Please do not pay again."),
        Text("We will tell {brand} as soon as we know."),
    ),
)
_MESSAGES: Mapping[str, Message] = {
    "waiting": Message(
        Text("Your payment is on its way"),
        "busy",
        (Text("This usually takes a few seconds. You do not need to do anything."),),
    ),
    "unknown": UNKNOWN,
    "failed": Message(
        Text("The payment did not go through"),
        "bad",
        (Text("{why} You have not been charged. You can try again."),),
    ),
    "cancelled": Message(
        Text("You cancelled the payment"), "calm", (Text("You have not been charged. You can still pay."),)
    ),
    "paid": Message(Text("Payment complete"), "good", (Text("You paid {amount} to {brand}."),)),
    "expired": Message(
        Text("This checkout has expired"),
        "calm",
        (Text("You have not been charged. Go back to {brand} to start again."),),
    ),
}
"""By the state of the payment."""

EXPIRED_IN_DOUBT = Message(
    Text("This checkout has expired"),
    "doubt",
    (Text("If you approved the payment just before it expired, ask {brand} before you pay again."),),
)
NOT_PAID = Message(Text("You have not paid"), "calm", (Text("You have not been charged."),))
"""For a payer who turned back before any attempt."""

ALREADY_PAID = Message(
    Text("Already paid"),
    "good",
    (Text("This payment has already been made. You will not be charged again."),),
)
"""For a payer who opens, or submits, a payment that was already paid."""


def message_for(view: SessionView) -> Message:
    """The message of the payment's own page."""
    active = view.payment.active_attempt
    in_doubt = view.state == "expired" and active is not None and active.status == "expired"
    return EXPIRED_IN_DOUBT if in_doubt else _MESSAGES[view.state]
