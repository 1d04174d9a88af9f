"""The routes of the control API, and the function of each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from .._common.json import JsonObject
from .._common.profiles import PROFILES
from .._common.timestamps import stamp
from ..advisor._assumptions import assumptions
from ..advisor._findings import findings_of
from . import clock, records, requests, rules
from .arguments import ControlCall, Created, invalid, one_of
from .events import open_stream

if TYPE_CHECKING:
    from .._controls import SandboxControls

Run = Callable[["SandboxControls", ControlCall], object]

_ID = r"(?P<\1>[A-Za-z0-9_-]{1,128})"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@attrs.frozen
class Route:
    """One method and path below `/_sandbox/api/`."""

    method: str
    path: str
    run: Run
    """Answers it. The first paragraph of its docstring says what it does."""
    takes: tuple[str, ...] = attrs.field(default="", converter=_words)
    """Names of the query string, or members of the body."""
    needs: tuple[str, ...] = attrs.field(default="", converter=_words)
    """Those that a POST must have."""
    tool: str = ""
    """Its name among the tools for coding agents; empty for a route that is none."""
    pattern: re.Pattern[str] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "pattern", re.compile(re.sub(r"\{(\w+)\}", _ID, self.path), re.ASCII))

    @property
    def what(self) -> str:
        """What it does."""
        return " ".join((self.run.__doc__ or "").partition("\n\n")[0].split())

    @property
    def names(self) -> tuple[str, ...]:
        """All that it takes."""
        return self.needs + self.takes


def _index(_: SandboxControls, call: ControlCall) -> object:
    """This list."""
    return {
        "routes": [
            {"method": one.method, "path": one.path, "what": one.what, "takes": one.names} for one in ROUTES
        ]
    }


def _state(sandbox: SandboxControls, call: ControlCall) -> object:
    """The sandbox's address, profile, clock and keys (by fingerprint), and how far its journal reaches."""
    return {
        "base_url": f"{sandbox.origin}/v1",
        "profile": sandbox.profile.name,
        "profiles": sorted(PROFILES),
        "clock": clock.clock_view(sandbox),
        "journal": {name: getattr(sandbox.journal, name) for name in ("first", "last", "changes")},
        "keys": clock.keys(sandbox, call),
    }


def _new_key(sandbox: SandboxControls, call: ControlCall) -> object:
    """Make a key; the only answer with a whole one."""
    status = one_of("status", call.text("status", "active"), ("active", "inactive", "expired"))
    allowlist = call.texts_or_none("allowlist")
    try:
        key = sandbox.new_key(status, allowlist)  # type: ignore[arg-type] # `one_of` has checked it
    except ValueError as unreadable:
        raise invalid("allowlist", str(unreadable)) from unreadable
    return Created({"api_key": key, "status": status})


def _reset(sandbox: SandboxControls, call: ControlCall) -> object:
    """Start over; keys and the time stay."""
    sandbox.reset()
    return {"message": "Records, rules, counts and the journal are gone; keys and the time stay."}


def _advice(sandbox: SandboxControls, call: ControlCall) -> JsonObject:
    """Mistakes that the Advisor found in how the program uses the service: what is wrong, why it matters, how
    to correct it, and the ids of the requests and webhooks that show it. Those that endanger money come
    first. `watched` counts webhooks that may still be read back in time.
    """
    findings = findings_of(sandbox)
    shown = [
        {
            "id": kept.id,
            **attrs.asdict(kept.finding),
            "first_at": stamp(kept.first_at),
            "last_at": stamp(kept.last_at),
            "count": kept.count,
        }
        for kept in findings.update(sandbox)
    ]
    return {"findings": shown, "watched": findings.watched}


def _dismiss(sandbox: SandboxControls, call: ControlCall) -> JsonObject:
    """Leave a finding out until it happens again."""
    findings_of(sandbox).dismiss(call.path["id"])
    return {"message": "Dismissed, until it happens again."}


def _assumptions(sandbox: SandboxControls, call: ControlCall) -> JsonObject:
    """The gaps, and how this profile fills them."""
    return {
        "profile": sandbox.profile.name,
        "gaps": [attrs.asdict(one) for one in assumptions(sandbox.profile)],
    }


ROUTES: tuple[Route, ...] = (
    Route("GET", "", _index),
    Route("GET", "state", _state, tool="state"),
    Route("GET", "journal", requests.journal, "after limit"),
    Route("GET", "stream", open_stream, "after pulse"),
    Route("GET", "requests", requests.log, "operation limit", tool="requests"),
    Route("GET", "requests/{id}", requests.one, "reveal", tool="request"),
    Route("GET", "requests/{id}/code", requests.code, "as reveal"),
    Route("POST", "requests/{id}/replay", requests.replay),
    Route("GET", "advice", _advice, tool="advice"),
    Route("POST", "advice/{id}/dismiss", _dismiss),
    Route("GET", "payouts", records.payouts, "status limit reveal", tool="payouts"),
    Route("GET", "payouts/{id}", records.payout, "reveal", tool="payout"),
    Route("GET", "payments", records.payments, "status limit reveal", tool="payments"),
    Route("GET", "payments/{id}", records.payment, "reveal", tool="payment"),
    Route("POST", "payments/{id}/pay", records.pay, "method phone country outcome", tool="pay"),
    Route("POST", "payments/{id}/refund", records.refund, "amount pending"),
    Route("POST", "records/{id}/settle", records.settle, "outcome"),
    Route("POST", "records/{id}/hold", records.hold),
    Route("GET", "webhooks", records.webhooks, "limit", tool="webhooks"),
    Route("GET", "webhooks/{id}", records.webhook),
    Route("POST", "webhooks/{id}/resend", records.resend),
    Route("POST", "webhooks/forge", records.forge, "event url", needs="record"),
    Route("GET", "books", records.books, tool="books"),
    Route("GET", "rules", rules.list_rules, tool="rules"),
    Route(
        "POST", "rules", rules.add, "as match times after api_key", needs="operation words", tool="set_rule"
    ),
    Route("DELETE", "rules", rules.clear),
    Route("DELETE", "rules/{id}", rules.remove, tool="remove_rule"),
    Route("GET", "clock", clock.clock),
    Route("POST", "clock/advance", clock.advance, needs="by", tool="advance_clock"),
    Route("POST", "clock/speed", clock.speed, needs="speed"),
    Route("POST", "clock/freeze", clock.freeze),
    Route("GET", "limits", clock.limits),
    Route("GET", "keys", clock.keys),
    Route("POST", "keys", _new_key, "status allowlist"),
    Route("GET", "assumptions", _assumptions),
    Route("POST", "reset", _reset),
)
"""In the order in which an agent needs its tools."""
