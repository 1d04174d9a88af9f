"""Webhooks of the sandbox (`docs/interface.md`, Events; gaps W to Y): what is told, when, to whom, how often.

    _letters     what a delivery says; the truth, or a forged claim
    _schedule    when it is tried, and what the scenario's webhook words make of that
    _webhook     a delivery with its tries, as a value
    _courier     the machine: what to send now, and what to do after each try
    _guard       which addresses a simulated payment may be told to
    _controls    the part of `Sandbox` that is about webhooks

Everything here is pure but for `_controls`, which holds the sandbox's lock; `sandbox/_deliver.py` sends.
"""

from ..records.webhook_json import (
    CREATED,
    created_letter,
    forged_letter,
    is_forged,
    payment_letter,
    payout_letter,
)
from .webhook import Webhook, WebhookTry

__all__ = [
    "CREATED",
    "Webhook",
    "WebhookTry",
    "created_letter",
    "forged_letter",
    "is_forged",
    "payment_letter",
    "payout_letter",
]
