"""The sandbox as a whole over the control API: its state, its time, its keys, what the Advisor found."""

from __future__ import annotations

from typing import Annotated, Final

import attrs
from msgspec import Meta

from .._common.clock import VirtualClock
from .._common.json import JsonObject
from .._common.scenario_words import duration
from .._common.timestamps import stamp
from .._controls import SandboxControls
from .._records.tenants import KeyStatus
from ..advisor import advise
from .json_views import key_view
from .values import Refusal

Duration = Annotated[float | str, Meta(description="such as 30s, 5m or 24h")]

_CHANGES: Final = 500
"""Changes that an answer lists at most."""


def clock_view(sandbox: SandboxControls) -> JsonObject:
    """The sandbox's time as text and in seconds since 1970; `speed` is None for a clock without one."""
    speed = sandbox.clock.speed if isinstance(sandbox.clock, VirtualClock) else None
    now = sandbox.clock.now()
    return {"now": stamp(now), "seconds": round(now, 6), "speed": speed, "frozen": speed == 0}


def state(sandbox: SandboxControls) -> JsonObject:
    """The sandbox's address, profile, clock and keys (by fingerprint), and how far its journal reaches."""
    with sandbox.reading() as world:
        return {
            "base_url": f"{sandbox.origin}/v1",
            "profile": sandbox.profile.name,
            "clock": clock_view(sandbox),
            "journal": {name: getattr(sandbox.journal, name) for name in ("first", "last", "changes")},
            "keys": [key_view(key, tenant) for key, tenant in world.tenants.items()],
        }


def new_key(
    sandbox: SandboxControls, status: KeyStatus = "active", allowlist: list[str] | None = None
) -> JsonObject:
    """Make a key; the only answer with a whole one."""
    return {"api_key": sandbox.new_key(status, allowlist)}


def advance(sandbox: SandboxControls, by: Duration) -> JsonObject:
    """Skip sandbox time; says what fell due. Records end and webhooks leave on the way."""
    changes = sandbox.advance(duration(str(by).strip()))
    shown = [
        {"at": stamp(one.at), "record": one.kind, "id": one.id, "after": one.after}
        for one in changes[:_CHANGES]
    ]
    return {**clock_view(sandbox), "changed": len(changes), "changes": shown}


def speed(sandbox: SandboxControls, speed: Annotated[float, Meta(ge=0, le=1_000_000)]) -> JsonObject:
    """Run the clock at another speed: sandbox seconds per real second, 0 freezes."""
    if not isinstance(sandbox.clock, VirtualClock):
        raise Refusal(409, "This sandbox was given a clock of its own, whose speed cannot be changed.")
    sandbox.clock.set_speed(speed)
    return clock_view(sandbox)


def advice(sandbox: SandboxControls) -> JsonObject:
    """Mistakes about money that the Advisor found in how the program uses the service: what is wrong, why it
    matters, how to correct it, and the ids of the requests and webhooks that show it.
    """
    found = advise(sandbox.entries(), sandbox.clock.now())
    return {"findings": [attrs.asdict(finding) for finding in found]}
