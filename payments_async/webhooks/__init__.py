"""Webhooks: deliveries are unsigned, so each is only a reason to look. What the look finds is handed over.

    receiver = WebhookReceiver(
        client, secrets=[secret], base_url="https://shop.example/hooks", on_payout=paid
    )
    await client.payouts.create(..., reference="inv-7", webhook_url=receiver.url_for_payout("inv-7"))
    app.add_routes(routes(receiver))  # payments_async.webhooks.aiohttp

From nouns to face, a module imports only from those before it:

    _values    what is handed over, what is answered
    _token     what a URL says, and the proof that we made it
    _hint      what a body claims
    _seen      which states a handler has seen
    _body      reading a body: so much, and for so long
    _places    where a record is, or a look goes on
    _looks     who waits for which page
    _lookup    one walk of a list for everybody who waits for a record
    _rounds    one look and one hand-over for many deliveries
    _intake    admission and all of the above; the blocking receiver stands on it, too
    _minting   the URLs
    receiver   WebhookReceiver
    aiohttp    routes for aiohttp's web server
"""

from __future__ import annotations

from ._deduplication import MemoryStore, SeenStore
from ._values import TrustedDelivery, WebhookResponse
from .receiver import WebhookReceiver

__all__ = ["MemoryStore", "SeenStore", "TrustedDelivery", "WebhookReceiver", "WebhookResponse"]
