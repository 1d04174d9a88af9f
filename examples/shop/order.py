"""One order, and what happened to it. Yours are rows of a database."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from payments_async import PaymentIntent

Worth = Literal["", "nothing", "hint", "proof"]
"""What an event says of the payment."""


@dataclass(frozen=True)
class Event:
    """Something that happened to an order, as the shop wrote it down."""

    after: float
    """Seconds after the order."""
    text: str
    worth: Worth = ""


@dataclass
class Order:
    """One cup for one payer. `number` cannot be guessed: it is the only thing that opens the order's page."""

    amount: Decimal
    currency: str
    placed: float
    """When, on the shop's clock."""
    number: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    paid: bool = False
    checkout_id: str | None = None
    checkout_url: str | None = None
    under_way: bool = False
    """Whether the payer may have paid."""
    looked: float | None = None
    """When its checkout was last read for its page."""
    payment: PaymentIntent | None = None
    """As it was last read from the service."""
    read: float = 0.0
    """When that was."""
    events: list[Event] = field(default_factory=list)

    def note(self, now: float, text: str, worth: Worth = "") -> None:
        """Write down what happened."""
        self.events.append(Event(now - self.placed, text, worth))

    def settle(self, now: float, payment: PaymentIntent) -> None:
        """Enter what its payment has come to, whoever brought the news. May be done twice."""
        before = self.payment and state_of(self.payment)
        self.payment, self.read = payment, now
        if state_of(payment) != before:
            self.note(now, f"Read through the API: {state_of(payment)}", "proof")
        if payment.is_successful and not self.paid and self.is_price_of(payment):
            self.paid = True
            self.note(now, "The order is paid, and the cup is packed")
        attempt = payment.active_attempt
        tried = attempt is not None and (attempt.is_successful or not attempt.is_final)
        self.under_way = payment.is_successful or tried

    def is_price_of(self, payment: PaymentIntent) -> bool:
        """Whether the payment is of what the order costs."""
        amount = payment.amount
        return amount is not None and (amount.value, amount.currency) == (self.amount, self.currency)


def state_of(payment: PaymentIntent) -> str:
    """A payment's state in a word. A single read has no status, only the moments at which things happened."""
    if payment.is_successful:
        return "completed"
    attempt = payment.active_attempt
    if payment.is_final or attempt is None:
        return "over, not paid" if payment.is_final else "open"
    return "open, an attempt failed" if attempt.is_final else "open, an attempt is under way"
