"""Webhooks, blocking: for Flask, Django and the like. The handler runs in the thread that received.

    receiver = WebhookReceiver(
        client, secrets=[secret], base_url="https://shop.example/hooks", on_payout=paid
    )
    client.payouts.create(..., reference="inv-7", webhook_url=receiver.url_for_payout("inv-7"))

The same names as `payments_async.webhooks`; all but the receiver are the same objects.
"""

from __future__ import annotations

from payments_async.webhooks import MemoryStore, SeenStore, TrustedDelivery, WebhookResponse

from ._receiver import WebhookReceiver

__all__ = ["MemoryStore", "SeenStore", "TrustedDelivery", "WebhookReceiver", "WebhookResponse"]
