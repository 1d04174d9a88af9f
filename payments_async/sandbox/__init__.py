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
    from ._api.fault_rules import Rule as Rule
    from ._common.clock import Clock as Clock
    from ._common.clock import VirtualClock as VirtualClock
    from ._common.operations import INTERFACE_VERSION as INTERFACE_VERSION
    from ._common.profiles import ALTERNATE as ALTERNATE
    from ._common.profiles import HOSTILE as HOSTILE
    from ._common.profiles import OBSERVED as OBSERVED
    from ._common.profiles import STRICT as STRICT
    from ._common.profiles import Profile as Profile
    from ._common.rate_limits import SandboxLimits as SandboxLimits
    from ._common.scenario_words import UnknownWord as UnknownWord
    from ._common.values import Answer as Answer
    from ._common.values import Change as Change
    from ._common.values import Cut as Cut
    from ._common.values import Delivery as Delivery
    from ._common.values import Drop as Drop
    from ._common.values import Hang as Hang
    from ._common.values import LineFault as LineFault
    from ._common.values import LoggedRequest as LoggedRequest
    from ._common.values import Reset as Reset
    from ._common.values import Slow as Slow
    from ._records.books import Books as Books
    from ._records.books import PaymentEntry as PaymentEntry
    from ._records.books import PayoutEntry as PayoutEntry
    from ._sandbox import Sandbox as Sandbox
    from ._webhooks import Webhook as Webhook
    from ._webhooks import WebhookTry as WebhookTry

_HOMES = {
    "_api.fault_rules": ("Rule",),
    "_common.clock": ("Clock", "VirtualClock"),
    "_common.operations": ("INTERFACE_VERSION",),
    "_common.profiles": ("ALTERNATE", "HOSTILE", "OBSERVED", "STRICT", "Profile"),
    "_common.rate_limits": ("SandboxLimits",),
    "_common.scenario_words": ("UnknownWord",),
    "_common.values": (
        "Answer",
        "Change",
        "Cut",
        "Delivery",
        "Drop",
        "Hang",
        "LineFault",
        "LoggedRequest",
        "Reset",
        "Slow",
    ),
    "_records.books": ("Books", "PaymentEntry", "PayoutEntry"),
    "_sandbox": ("Sandbox",),
    "_webhooks": ("Webhook", "WebhookTry"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll] # from a table


def __getattr__(name: str) -> Any:
    """A public name, loaded now and kept."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
