"""A try of a webhook as the journal tells it."""

from __future__ import annotations

from ._journal import Tried
from .webhooks.address_guard import NotSent
from .webhooks.webhook import Webhook, WebhookTry


def tried(webhook: Webhook, result: WebhookTry | NotSent, now: float) -> Tried:
    """How one try went; an address that was refused was never asked."""
    status, told, at = (
        (None, str(result), now) if isinstance(result, NotSent) else (result.status, result.error, result.at)
    )
    return Tried(
        at,
        webhook.id,
        webhook.record_id,
        webhook.event,
        status,
        told,
        forged=webhook.origin == "forged",
        only_listened=isinstance(result, WebhookTry) and result.only_listened,
    )
