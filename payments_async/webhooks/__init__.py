"""Webhooks: deliveries are unsigned, so each is only a reason to look up its record.

    receiver = WebhookReceiver(
        client, secrets=[secret], base_url="https://shop.example/hooks", on_payout=paid
    )
    await client.payouts.create(..., reference="inv-7", webhook_url=receiver.url_for_payout("inv-7"))
    app.add_routes(routes(receiver))  # payments_async.webhooks.aiohttp

The steps of a delivery: `_receiver` checks its URL (`_tokens`), `_payload` reads the body as a hint,
`_coalescing` joins it with other deliveries of the same URL, `_lookup` finds the record, `_deduplication`
checks whether its state is new, and then the handler is called. The other modules:

    _values       deliveries for handlers, and responses
    _page_queue   the queue of the list's pages to be read
    _urls         the URLs
    receiver      WebhookReceiver
    aiohttp       routes for aiohttp's web server
"""

from __future__ import annotations

from ._deduplication import MemoryStore, SeenStore
from ._values import TrustedDelivery, WebhookResponse
from .receiver import WebhookReceiver

__all__ = ["MemoryStore", "SeenStore", "TrustedDelivery", "WebhookReceiver", "WebhookResponse"]
