"""Clock, limits and keys over the control API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from .._common.clock import VirtualClock
from .._common.json import JsonObject
from .._common.scenario_words import LONGEST_DURATION, duration
from .._common.timestamps import stamp
from .arguments import ControlCall, Refusal, invalid
from .json_views import key_view

if TYPE_CHECKING:
    from .._controls import SandboxControls

_FASTEST = 1_000_000
_SHOWN = 500


def clock_view(sandbox: SandboxControls) -> JsonObject:
    """The sandbox's time as text and in seconds since 1970; `speed` is None for a clock without one."""
    clock = sandbox.clock
    speed = clock.speed if isinstance(clock, VirtualClock) else None
    now = clock.now()
    return {"now": stamp(now), "seconds": round(now, 6), "speed": speed, "frozen": speed == 0}


def clock(sandbox: SandboxControls, _: ControlCall) -> object:
    """Show the time and the speed."""
    return clock_view(sandbox)


def advance(sandbox: SandboxControls, call: ControlCall) -> object:
    """Skip sandbox time; says what fell due. Records end and webhooks leave on the way."""
    by = call.body.get("by")
    seconds = duration(by.strip()) if isinstance(by, str) else float(call.number("by"))
    if seconds > LONGEST_DURATION:
        raise invalid("by", "ten years at most")
    changes = sandbox.advance(seconds)
    return {
        **clock_view(sandbox),
        "changed": len(changes),
        "changes": [
            {"at": stamp(one.at), "record": one.kind, "id": one.id, "after": one.after}
            for one in changes[:_SHOWN]
        ],
    }


def speed(sandbox: SandboxControls, call: ControlCall) -> object:
    """Run the clock at another speed: sandbox seconds per real second, 0 freezes."""
    wanted = float(call.number("speed"))
    if wanted > _FASTEST:
        raise invalid("speed", f"{_FASTEST:,} at most")
    return _set_speed(sandbox, wanted)


def freeze(sandbox: SandboxControls, call: ControlCall) -> object:
    """Stop the clock until it is advanced."""
    return _set_speed(sandbox, 0.0)


def _set_speed(sandbox: SandboxControls, wanted: float) -> JsonObject:
    if not isinstance(sandbox.clock, VirtualClock):
        raise Refusal(409, "This sandbox was given a clock of its own, whose speed cannot be changed.")
    sandbox.clock.set_speed(wanted)
    sandbox.journal.wake()
    return clock_view(sandbox)


@attrs.frozen
class KeyGauge:
    """A window of a key: `used` of `limit` requests, and the admitted and refused ones of the last minutes.

    The window of a single record has no minutes: they are counted by class.
    """

    key: str
    scope: str
    used: int
    limit: int
    minutes: list[int] | None
    refused: list[int] | None


def gauges(sandbox: SandboxControls) -> list[KeyGauge]:
    """The usage of each window of each active key, the fullest first."""
    with sandbox.reading() as world:
        windows = [
            KeyGauge(
                tenant.fingerprint,
                one.scope,
                one.used,
                one.limit,
                *(
                    (None, None)
                    if one.scope.startswith("record ")
                    else tenant.limits.minutes(one.scope, world.now)
                ),
            )
            for tenant in world.tenants.values()
            for one in tenant.limits.gauges(world.now)
        ]
    return sorted(windows, key=lambda one: one.used / one.limit if one.limit else 1.0, reverse=True)


def limits(sandbox: SandboxControls, _: ControlCall) -> object:
    """Show the usage of each window of each key."""
    return {"limits": [attrs.asdict(gauge) for gauge in gauges(sandbox)]}


def keys(sandbox: SandboxControls, _: ControlCall) -> object:
    """List the keys by fingerprint."""
    with sandbox.reading() as world:
        return [key_view(key, tenant) for key, tenant in world.tenants.items()]
