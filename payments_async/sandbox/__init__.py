"""The service on your own machine: an embedded, stateful, deterministic simulation for tests and first steps.

    with Sandbox() as sandbox:
        client = Payments(sandbox.api_key, base_url=sandbox.base_url)

Written from `docs/interface.md` with its gaps (the last section there) filled in; it shares no code with the
client, so that the two cannot share a mistake. It conforms to the specification, which is all it claims.

Public names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._sandbox import Sandbox as Sandbox
    from .api.rule import Rule as Rule
    from .common.clock import Clock as Clock
    from .common.clock import VirtualClock as VirtualClock
    from .common.operations import INTERFACE_VERSION as INTERFACE_VERSION
    from .common.profiles import ALTERNATE as ALTERNATE
    from .common.profiles import HOSTILE as HOSTILE
    from .common.profiles import OBSERVED as OBSERVED
    from .common.profiles import STRICT as STRICT
    from .common.profiles import Profile as Profile
    from .common.rate_limits import SandboxLimits as SandboxLimits
    from .common.scenario_words import UnknownWord as UnknownWord
    from .common.values import Answer as Answer
    from .common.values import Change as Change
    from .common.values import Cut as Cut
    from .common.values import Delivery as Delivery
    from .common.values import Drop as Drop
    from .common.values import Hang as Hang
    from .common.values import LineFault as LineFault
    from .common.values import LoggedRequest as LoggedRequest
    from .common.values import Reset as Reset
    from .common.values import Slow as Slow
    from .common.values import StateError as StateError
    from .records.books import Books as Books
    from .records.books import PaymentEntry as PaymentEntry
    from .records.books import PayoutEntry as PayoutEntry
    from .webhooks import Webhook as Webhook
    from .webhooks import WebhookTry as WebhookTry

_HOMES = {
    "ALTERNATE": "common.profiles",
    "HOSTILE": "common.profiles",
    "INTERFACE_VERSION": "common.operations",
    "OBSERVED": "common.profiles",
    "STRICT": "common.profiles",
    "Answer": "common.values",
    "Books": "records.books",
    "Change": "common.values",
    "Clock": "common.clock",
    "Cut": "common.values",
    "Delivery": "common.values",
    "Drop": "common.values",
    "Hang": "common.values",
    "LineFault": "common.values",
    "LoggedRequest": "common.values",
    "PaymentEntry": "records.books",
    "PayoutEntry": "records.books",
    "Profile": "common.profiles",
    "Reset": "common.values",
    "Rule": "api.rule",
    "Sandbox": "_sandbox",
    "SandboxLimits": "common.rate_limits",
    "Slow": "common.values",
    "StateError": "common.values",
    "UnknownWord": "common.scenario_words",
    "VirtualClock": "common.clock",
    "Webhook": "webhooks",
    "WebhookTry": "webhooks",
}

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


def __getattr__(name: str) -> Any:
    """A public name, loaded now and kept."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
