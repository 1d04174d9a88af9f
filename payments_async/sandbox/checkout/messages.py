"""What the page says in each state. A payment under way, or of unknown outcome, is never called a failure."""

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
    lines: tuple[str, ...]
    tone: str


def message_for(view: SessionView) -> Message:
    """What the payment's own page says."""
    return _MESSAGES[view.state](view)


def not_paid(_: SessionView) -> Message:
    """The payer turned back before any attempt."""
    return Message("You have not paid", ("Nothing was taken from your account.",), "calm")


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


def _waiting(_: SessionView) -> Message:
    return Message(
        "Your payment is on its way",
        ("This usually takes a few seconds. You do not need to do anything.",),
        "busy",
    )


def _unknown(view: SessionView) -> Message:
    lines = (
        "The payment takes longer than usual, and it may still go through. Please do not pay again.",
        f"{view.appearance.brand} will learn the outcome as soon as it is known.",
    )
    return Message("We do not know the outcome yet", lines, "calm")


def _failed(view: SessionView) -> Message:
    failure = view.attempt.failure
    assert failure is not None
    why = _FAILURES.get(failure.code, failure.message)
    return Message("The payment did not go through", (f"{why} Nothing was taken. You can try again.",), "bad")


def _cancelled(_: SessionView) -> Message:
    return Message("You cancelled the payment", ("Nothing was taken. You can still pay.",), "calm")


def _paid(view: SessionView) -> Message:
    return Message("Payment complete", (f"You paid {view.amount} to {view.appearance.brand}.",), "good")


def already_paid(view: SessionView) -> Message:
    """The payer opens, or submits, what has been paid."""
    lines = ("This payment has been made, once. You will not be charged again.",)
    return Message("Already paid", lines, "good")


def _expired(view: SessionView) -> Message:
    brand = view.appearance.brand
    active = view.payment.active_attempt
    if active is not None and active.status == "expired":
        doubt = f"If you approved the payment just before the end, ask {brand} before you pay again."
        return Message("This checkout has expired", (doubt,), "calm")
    return Message(
        "This checkout has expired", (f"Nothing was taken. Go back to {brand} to start again.",), "calm"
    )


_MESSAGES = {
    "waiting": _waiting,
    "unknown": _unknown,
    "failed": _failed,
    "cancelled": _cancelled,
    "paid": _paid,
    "expired": _expired,
}
