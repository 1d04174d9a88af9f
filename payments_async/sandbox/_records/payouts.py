"""The life of a payout: pending, processing, then completed or failed (gap H)."""

from __future__ import annotations

from functools import partial
from sys import intern

from .._common.json import JsonObject, object_or_null, text_or_null
from .._common.money import plain
from .._common.scenario_words import HookWords, ScenarioOutcome
from .._common.values import Change, RequestRefused
from .emit_webhook import (
    CREATED,
    emit_webhook,
    forged_payload,
    is_forged,
    payout_payload,
)
from .payout_json import failure_for
from .records import PAYOUT_STATES, PayoutRecord, Plan
from .tenants import Tenant
from .world import World

PROCESSING_SHARE = 0.4
"""Processing starts after this share of the time to the end: 2 s of the default 5 s."""

PROCESSING_AFTER = 2.0
"""Seconds until processing for a payout whose end has no set time."""

_TIMES = {"processing": "initiated_at", "completed": "completed_at", "failed": "failed_at"}


def customer_of(world: World, tenant: Tenant, body: JsonObject) -> str | None:
    """The id of a creation's customer; one e-mail address is one customer."""
    given = object_or_null(body, "customer")
    if given is None:
        return None
    email = text_or_null(given, "email")
    if email is None:
        return world.chance.id("cus")
    customer_id = tenant.customers.get(email) or world.chance.id("cus")
    tenant.customers[email] = customer_id
    return customer_id


def create_payout(
    world: World,
    tenant: Tenant,
    body: bytes,
    fields: JsonObject,
    plan: Plan,
    idempotency_key: str | None,
    hooks: HookWords = (),
) -> PayoutRecord:
    """Create the payout of a body with validated fields; `RequestRefused` (409) for a taken reference."""
    reference = text_or_null(fields, "reference")
    if reference in tenant.payouts_by_reference:
        raise RequestRefused(409, "A payout with this reference already exists in the project.")
    payout = PayoutRecord(
        id=world.chance.id("po"),
        position=len(tenant.payouts),
        key=tenant.fingerprint,
        idempotency_key=idempotency_key,
        amount=plain(fields["amount"]),
        currency=intern(str(fields["currency"])),
        method=intern(str(fields["method"])),
        reference=reference,
        webhook_url=text_or_null(fields, "webhook_url"),
        body=body,
        instrument_id=world.chance.id("ins"),
        customer_id=customer_of(world, tenant, fields),
        gateway=world.chance.token(16),
        plan=plan,
        created_at=world.now,
        hooks=hooks,
    )
    tenant.payouts.append(payout)
    tenant.payouts_by_id[payout.id] = payout
    if reference is not None:
        tenant.payouts_by_reference[reference] = payout
    world.has_receivers |= bool(payout.webhook_url)
    _begin(world, payout)
    return payout


def _begin(world: World, payout: PayoutRecord) -> None:
    world.add_effect(Change(world.now, "payout", payout.id, None, payout.status))
    _emit_webhook(world, payout, CREATED)
    if is_forged(payout.hooks):
        event = "payout.completed"
        payload = partial(forged_payload, payout, event, world.now)
        emit_webhook(world, payout.webhook_url, event, payout.id, payload, forged=True)
    timing, now = payout.plan.timing, world.now
    if timing.kind == "after" and timing.seconds == 0:
        settle_payout(world, payout)
    elif timing.kind == "after":
        world.at(now + timing.seconds * PROCESSING_SHARE, _process, payout)
        world.at(now + timing.seconds, _end, payout)
    elif timing.kind == "manual":
        world.at(now + PROCESSING_AFTER, _process, payout)


def _process(world: World, payout: PayoutRecord) -> None:
    if payout.status == "pending":
        _move(world, payout, "processing")


def _end(world: World, payout: PayoutRecord) -> None:
    if not payout.is_final:
        settle_payout(world, payout)


def read_payout(world: World, payout: PayoutRecord) -> None:
    """Count a caller's reading of a payout, for `reads=<n>`."""
    timing = payout.plan.timing
    if timing.kind != "reads" or payout.is_final:
        return
    payout.reads += 1
    if payout.reads >= timing.reads:
        settle_payout(world, payout)
    else:
        _process(world, payout)


def settle_payout(world: World, payout: PayoutRecord, outcome: ScenarioOutcome | None = None) -> None:
    """Bring a payout to its end now: as planned, or as `outcome` (`complete` or `fail`) says."""
    if payout.status == "pending":
        _move(world, payout, "processing")
    ending = outcome or payout.plan.outcome
    if ending.kind == "fail":
        payout.failure = failure_for(ending.code)
        _move(world, payout, "failed")
    else:
        _move(world, payout, "completed")


def _move(world: World, payout: PayoutRecord, status: str) -> None:
    assert status in PAYOUT_STATES[payout.status], (payout.status, status)
    before, payout.status = payout.status, status
    setattr(payout, _TIMES[status], world.now)
    world.add_effect(Change(world.now, "payout", payout.id, before, status))
    if payout.is_final:
        _emit_webhook(world, payout, f"payout.{status}")


def _emit_webhook(world: World, payout: PayoutRecord, event: str) -> None:
    payload = partial(payout_payload, payout)
    emit_webhook(world, payout.webhook_url, event, payout.id, payload, payout.hooks)
