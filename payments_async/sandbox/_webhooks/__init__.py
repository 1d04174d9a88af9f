"""Webhooks of the sandbox (`docs/interface.md`, Events; gaps W to Y): content, time, address and retries.

`retry_schedule.py` decides what is sent and when, `address_guard.py` to which addresses, and `sender.py`
sends it. All is pure but for `sender.py` and for `controls.py`, which holds the sandbox's lock. A delivery is
emitted, and its body written, in `records/emit_webhook.py`.
"""

from .webhook import Webhook, WebhookTry

__all__ = ["Webhook", "WebhookTry"]
