"""The split view below an order: what the shop knows, and what the service knows.

A shop needs none of this. It shows why the shop acts as it does: that a payer came back proves nothing, a
webhook is only a hint, and what was read from the service is what counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from order import Event, Order, state_of
from pages import money, word

WORTH: Final = {"nothing": "Proves nothing", "hint": "Only a hint"}
"""What an event says of the payment, in words."""


def split_view(order: Order) -> str:
    """The HTML of both sides."""
    return f"""<div class="split">
<section class="side" id="shop-side" data-live>
<h2>What the shop knows</h2>
<p class="about">Its own record of the order, and what happened to it.</p>
{_listed(_of_shop(order))}
{_happened(event for event in order.events if event.worth != "proof")}
</section>
<section class="side" id="service-side" data-live>
<h2>What the service knows</h2>
<p class="about">As the shop last read it through the API. Nothing else makes an order paid.</p>
{_listed(_of_service(order))}
{_happened(event for event in order.events if event.worth == "proof")}
</section>
</div>"""


def _of_shop(order: Order) -> dict[str, str]:
    return {
        "Order": f"<code>{escape(order.number)}</code>",
        "Price": money(order.amount, order.currency),
        "Checkout": f"<code>{escape(order.checkout_id or 'none')}</code>",
        "Paid": word("Yes", "proof") if order.paid else word("No"),
    }


def _of_service(order: Order) -> dict[str, str]:
    payment = order.payment
    if payment is None:
        return {"Payment": word("Not read yet")}
    facts = {"Payment": word(state_of(payment).capitalize(), "proof" if payment.is_successful else "hint")}
    amount, attempt = payment.amount, payment.active_attempt
    if amount is not None and amount.value is not None:
        facts["Amount"] = money(amount.value, amount.currency or "")
    if attempt is not None and attempt.method is not None:
        facts["Method"] = escape(attempt.method.label or attempt.method.value or "not shown")
    return {**facts, "Last read": f"{_minutes(order.read - order.placed)} after the order"}


def _happened(events: Iterable[Event]) -> str:
    items = "".join(map(_item, events))
    return f"<ol>{items}</ol>" if items else ""


def _item(event: Event) -> str:
    worth = word(WORTH[event.worth], event.worth) if event.worth in WORTH else ""
    when = f"<time>{_minutes(event.after)}</time>"
    return f'<li class="{event.worth}"><p>{when}{escape(event.text)}</p>{worth}</li>'


def _minutes(seconds: float) -> str:
    """`1:05`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _listed(facts: dict[str, str]) -> str:
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{value}</dd>' for name, value in facts.items())}</dl>"
