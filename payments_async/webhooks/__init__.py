"""Webhooks: deliveries are unsigned, so each is only a reason to look up its record.

    receiver = WebhookReceiver(
        client, secrets=[secret], base_url="https://shop.example/hooks", on_payout=paid
    )
    await client.payouts.create(..., reference="inv-7", webhook_url=receiver.url_for_payout("inv-7"))
    app.add_routes(routes(receiver))  # payments_async.webhooks.aiohttp

The steps of a delivery: `receiver` checks its URL (`_tokens`), `_delivery` reads the body as a hint, and
`_lookup` finds the record, once for all deliveries of the URL that wait. If its state is new, the handler is
called. `aiohttp` has routes for aiohttp's web server.
"""

from __future__ import annotations

from ._delivery import TrustedDelivery, WebhookResponse
from ._lookup import MemoryStore, SeenStore
from .receiver import WebhookReceiver

__all__ = ["MemoryStore", "SeenStore", "TrustedDelivery", "WebhookReceiver", "WebhookResponse"]
