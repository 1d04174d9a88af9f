"""The service on your own machine: an embedded, stateful, deterministic simulation for tests and first steps.

    with Sandbox() as sandbox:
        client = Payments(sandbox.api_key, base_url=sandbox.base_url)

Written from `docs/interface.md` with its gaps (the last section there) filled in; it shares no code with the
client, so that the two cannot share a mistake. It conforms to the specification, which is all it claims.
"""

from ._books import Books, PaymentEntry, PayoutEntry
from ._clock import Clock, VirtualClock
from ._limits import SandboxLimits
from ._operations import INTERFACE_VERSION
from ._profiles import ALTERNATE, HOSTILE, OBSERVED, STRICT, Profile
from ._rule import Rule
from ._sandbox import Sandbox
from ._scenarios import UnknownWord
from ._state_error import StateError
from ._values import Answer, Change, Cut, Delivery, Drop, Hang, LineFault, LoggedRequest, Reset, Slow
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
