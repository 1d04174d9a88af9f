"""Webhooks: deliveries are unsigned, so each is only a reason to look up its record.

    receiver = WebhookReceiver(
        client, secrets=[secret], base_url="https://shop.example/hooks", on_payout=paid
    )
    await client.payouts.create(..., reference="inv-7", webhook_url=receiver.url_for_payout("inv-7"))
    app.add_routes(routes(receiver))  # payments_async.webhooks.aiohttp

A delivery's steps: `_receiver` admits it by its URL (`_tokens`), `_payload` reads the body as a hint,
`_coalescing` joins it with other deliveries of the same URL, `_lookup` finds the record, `_deduplication`
says whether its state is new, and then the handler is called. The other modules:

    _values       what is handed over, what is answered
    _page_queue   which page of the list is read next, and for whom
    _urls         the URLs
    receiver      WebhookReceiver
    aiohttp       routes for aiohttp's web server
"""

from __future__ import annotations

from ._deduplication import MemoryStore, SeenStore
from ._values import TrustedDelivery, WebhookResponse
from .receiver import WebhookReceiver

__all__ = ["MemoryStore", "SeenStore", "TrustedDelivery", "WebhookReceiver", "WebhookResponse"]
