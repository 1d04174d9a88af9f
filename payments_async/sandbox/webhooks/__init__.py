"""Webhooks of the sandbox (`docs/interface.md`, Events; gaps W to Y): what is sent, when, to whom, how often.

    webhook         one delivery with its tries, as a value; when it is tried
    queue           the delivery machine: what to send now, and what to do after each try
    outbox          what is due, what is under way, what has no receiver
    address_guard   which addresses a simulated payment may deliver to
    sender          one POST for each try
    controls        the part of `Sandbox` that is about webhooks

Everything here is pure but for `controls`, which holds the sandbox's lock, and `sender`. What a delivery says
is in `records/webhook_json.py`.
"""

from .webhook import Webhook, WebhookTry

__all__ = ["Webhook", "WebhookTry"]
