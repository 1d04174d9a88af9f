"""The clients of a process: each is made with its first use, so after any fork."""

from __future__ import annotations

import os
from functools import cache

from payments_async import AsyncPayments, PaymentIntent
from payments_async.webhooks import TrustedDelivery, WebhookReceiver
from payments_sync import Payments

from .models import Order

ADDRESS = os.environ.get("SHOP_ADDRESS", "http://127.0.0.1:8000")


@cache
def awaited() -> AsyncPayments:
    """The client of asynchronous views."""
    return AsyncPayments()


@cache
def blocking() -> Payments:
    """The client of other views and of commands. Both share the key's limits."""
    return Payments()


@cache
def receiver() -> WebhookReceiver:
    """Takes deliveries."""
    secret = os.environ["WEBHOOK_SECRET"]
    return WebhookReceiver(awaited(), secrets=[secret], base_url=f"{ADDRESS}/hooks", on_payment=on_payment)


async def on_payment(delivery: TrustedDelivery[PaymentIntent]) -> None:
    """A payment has a new state, as read through the API."""
    if delivery.record.is_successful:
        await Order.objects.filter(number=delivery.reference).aupdate(paid=True)
