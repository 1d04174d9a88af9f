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

if TYPE_CHECKING:
    from .._controls import SandboxControls

Run = Callable[["SandboxControls", ControlCall], object]

_ID = r"(?P<\1>[A-Za-z0-9_-]{1,128})"


@attrs.frozen
class Route:
    """One method and path below `/_sandbox/api/`."""

    method: str
    path: str
    what: str
    run: Run
    pattern: re.Pattern[str] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "pattern", re.compile(re.sub(r"\{(\w+)\}", _ID, self.path), re.ASCII))


def _index(_: SandboxControls, call: ControlCall) -> object:
    return {"routes": [{"method": one.method, "path": one.path, "what": one.what} for one in ROUTES]}


def _state(sandbox: SandboxControls, call: ControlCall) -> object:
    return {
        "base_url": f"{sandbox.origin}/v1",
        "profile": sandbox.profile.name,
        "profiles": sorted(PROFILES),
        "clock": clock.clock_view(sandbox),
        "journal": {"first": sandbox.journal.first, "last": sandbox.journal.last},
        "keys": clock.keys(sandbox, call),
    }


def _new_key(sandbox: SandboxControls, call: ControlCall) -> object:
    call.only("status", "allowlist")
    status = one_of("status", call.text("status", "active"), ("active", "inactive", "expired"))
    allowlist = call.texts_or_none("allowlist")
    try:
        key = sandbox.new_key(status, allowlist)  # type: ignore[arg-type] # `one_of` has checked it
    except ValueError as unreadable:
        raise invalid("allowlist", str(unreadable)) from unreadable
    return Created({"api_key": key, "status": status})


def _reset(sandbox: SandboxControls, call: ControlCall) -> object:
    call.only()
    sandbox.reset()
    return {"message": "Records, rules, counts and the journal are gone; keys and the time stay."}


def _advice(sandbox: SandboxControls, call: ControlCall) -> JsonObject:
    findings = findings_of(sandbox)
    found = [
        {
            "id": kept.id,
            **attrs.asdict(kept.finding),
            "first_at": stamp(kept.first_at),
            "last_at": stamp(kept.last_at),
            "count": kept.count,
        }
        for kept in findings.update(sandbox)
    ]
    return {"findings": found, "watched": findings.watched}


def _dismiss(sandbox: SandboxControls, call: ControlCall) -> JsonObject:
    call.only()
    findings_of(sandbox).dismiss(call.path["id"])
    return {"message": "Dismissed, until it happens again."}


def _assumptions(sandbox: SandboxControls, call: ControlCall) -> JsonObject:
    return {
        "profile": sandbox.profile.name,
        "gaps": [attrs.asdict(one) for one in assumptions(sandbox.profile)],
    }


ROUTES: tuple[Route, ...] = (
    Route("GET", "", "this list", _index),
    Route("GET", "state", "address, profile, clock, keys, how far the journal reaches", _state),
    Route("GET", "journal", "what happened, ?after=<seq>&limit=", requests.journal),
    Route("GET", "stream", "the same as Server-Sent Events, from Last-Event-ID on, ?pulse=1", _index),
    Route("GET", "requests", "the request log, newest first, ?limit=&operation=", requests.log),
    Route("GET", "requests/{id}", "headers, bodies, why it failed, ?reveal=1", requests.one),
    Route("GET", "requests/{id}/code", "?as=async|sync|curl, ?reveal=1: code that sends it", requests.code),
    Route("POST", "requests/{id}/replay", "send it again", requests.replay),
    Route("GET", "rules", "faults and outcomes set so far", rules.list_rules),
    Route("POST", "rules", "operation, words, match, times, after, api_key", rules.add),
    Route("DELETE", "rules", "forget all", rules.clear),
    Route("DELETE", "rules/{id}", "forget one", rules.remove),
    Route("GET", "payouts", "?status=&limit=&reveal=1", records.payouts),
    Route("GET", "payouts/{id}", "?reveal=1", records.payout),
    Route("GET", "payments", "with attempts, ?status=&limit=&reveal=1", records.payments),
    Route("GET", "payments/{id}", "by its own id or its session's, ?reveal=1", records.payment),
    Route("POST", "payments/{id}/pay", "method, phone, country, outcome", records.pay),
    Route("POST", "payments/{id}/refund", "amount, pending", records.refund),
    Route("POST", "records/{id}/settle", "outcome: complete, fail:CODE, expire", records.settle),
    Route("POST", "records/{id}/hold", "a payout or attempt hangs until it is settled", records.hold),
    Route("GET", "webhooks", "deliveries and their tries, newest first, ?limit=", records.webhooks),
    Route("GET", "webhooks/{id}", "one, with what its receiver answered to each try", records.webhook),
    Route("POST", "webhooks/{id}/resend", "deliver it once more", records.resend),
    Route("POST", "webhooks/forge", "record (id or reference), event, url: what is not so", records.forge),
    Route("GET", "books", "what was paid out and collected, by currency", records.books),
    Route("GET", "clock", "now and speed", clock.clock),
    Route("POST", "clock/advance", "by: seconds or a duration such as 5m", clock.advance),
    Route("POST", "clock/speed", "speed: sandbox seconds per real second, 0 freezes", clock.speed),
    Route("POST", "clock/freeze", "the same as speed 0", clock.freeze),
    Route("GET", "limits", "how full each window of each key is", clock.limits),
    Route("GET", "keys", "keys by fingerprint, never whole", clock.keys),
    Route("POST", "keys", "status, allowlist; the only answer with a whole key", _new_key),
    Route("GET", "advice", "where the integration breaks the interface's guidance", _advice),
    Route("POST", "advice/{id}/dismiss", "leave a finding out until it happens again", _dismiss),
    Route("GET", "assumptions", "the gaps and how this profile fills them", _assumptions),
    Route("POST", "reset", "start over; keys and the time stay", _reset),
)
