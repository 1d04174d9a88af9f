"""The service on your own machine: an embedded, stateful, deterministic simulation for tests and first steps.

    with Sandbox() as sandbox:
        client = Payments(sandbox.api_key, base_url=sandbox.base_url)

Written from `docs/interface.md` with its gaps (the last section there) filled in; it shares no code with the
client, so that the two cannot share a mistake. It conforms to the specification, which is all it claims.
"""

from ._sandbox import Sandbox
from .api.rule import Rule
from .common.clock import Clock, VirtualClock
from .common.operations import INTERFACE_VERSION
from .common.profiles import ALTERNATE, HOSTILE, OBSERVED, STRICT, Profile
from .common.rate_limits import SandboxLimits
from .common.scenario_words import UnknownWord
from .common.values import (
    Answer,
    Change,
    Cut,
    Delivery,
    Drop,
    Hang,
    LineFault,
    LoggedRequest,
    Reset,
    Slow,
    StateError,
)
from .records.books import Books, PaymentEntry, PayoutEntry
from .webhooks import Webhook, WebhookTry

__all__ = [
    "ALTERNATE",
    "HOSTILE",
    "INTERFACE_VERSION",
    "OBSERVED",
    "STRICT",
    "Answer",
    "Books",
    "Change",
    "Clock",
    "Cut",
    "Delivery",
    "Drop",
    "Hang",
    "LineFault",
    "LoggedRequest",
    "PaymentEntry",
    "PayoutEntry",
    "Profile",
    "Reset",
    "Rule",
    "Sandbox",
    "SandboxLimits",
    "Slow",
    "StateError",
    "UnknownWord",
    "VirtualClock",
    "Webhook",
    "WebhookTry",
]
