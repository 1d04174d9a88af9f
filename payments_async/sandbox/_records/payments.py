"""The life of a payment and its attempts (gaps F and G), and the recent health of methods (gap J)."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

import attrs

from .._common.json import JsonObject, object_or_null, text_or_null
from .._common.money import plain
from .._common.scenario_words import HookWords, ScenarioOutcome
from .._common.values import Change
from .emit_webhook import emit_webhook, forged_payload, is_forged, payment_payload
from .payout_json import failure_for
from .payouts import customer_of
from .records import (
    ATTEMPT_STATES,
    GATEWAY_ERROR,
    PAYMENT_STATES,
    AttemptRecord,
    CheckoutRecord,
    PaymentRecord,
    Plan,
    RefundRecord,
)
from .tenants import Tenant
from .world import World

SESSION_MINUTES = 60
"""How long a session lasts without `expires_in_minutes`."""

INTENT_MINUTES = 1440
"""How long a payment intent made through the API can be paid."""

FAILOVER_CODE = "GATEWAY_UNAVAILABLE"


def create_payment(
    world: World,
    tenant: Tenant,
    body: JsonObject,
    channel: str,
    plan: Plan | None,
    idempotency_key: str | None,
    hooks: HookWords = (),
) -> PaymentRecord:
    """Create the payment a validated body asks for; it expires by itself unless it is paid."""
    usual = SESSION_MINUTES if channel == "checkout" else INTENT_MINUTES
    given = body.get("expires_in_minutes")
    minutes = int(given) if isinstance(given, (int, Decimal)) else usual
    payment = PaymentRecord(
        id=world.chance.id("pi"),
        position=len(tenant.payments),
        key=tenant.fingerprint,
        idempotency_key=idempotency_key,
        channel=channel,
        reference=f"PAY-{world.chance.token(10).upper()}",
        amount=plain(body["amount"]),
        currency=str(body["currency"]),
        customer_id=customer_of(world, tenant, body),
        body=body,
        plan=plan,
        created_at=world.now,
        expires_at=world.now + minutes * 60.0,
        site=world,
        hooks=hooks,
    )
    tenant.payments.append(payment)
    tenant.payments_by_id[payment.id] = payment
    world.add_effect(Change(world.now, "payment", payment.id, None, payment.status))
    world.at(payment.expires_at, _expire_at, payment)
    world.has_receivers |= bool(payment.webhook_url)
    if is_forged(hooks):
        event = "payment.completed"
        payload = partial(forged_payload, payment, event, world.now)
        emit_webhook(world, payment.webhook_url, event, payment.id, payload, forged=True)
    return payment


def create_session(world: World, tenant: Tenant, payment: PaymentRecord) -> CheckoutRecord:
    """The hosted page of a payment made by `POST /payment/checkouts`."""
    restriction = object_or_null(payment.body, "restriction") or {}
    phone = object_or_null(restriction, "phone") or {}
    session = CheckoutRecord(
        id=world.chance.id("cs"),
        payment=payment,
        country=text_or_null(restriction, "country_code"),
        phone=text_or_null(phone, "number"),
        appearance=object_or_null(payment.body, "appearance") or {},
        form_token=world.chance.token(32),
    )
    payment.session = session
    tenant.sessions[session.id] = session
    return session


def start_attempt(
    world: World,
    tenant: Tenant,
    payment: PaymentRecord,
    plan: Plan,
    *,
    method: str,
    country: str | None = None,
    phone: str | None = None,
    currency: str | None = None,
    after: AttemptRecord | None = None,
) -> AttemptRecord:
    """Try to collect an open payment; `after` is the attempt that this one fails over from."""
    attempt = AttemptRecord(
        id=world.chance.id("pa"),
        payment=payment,
        method=method,
        country=country,
        phone=phone,
        currency=currency or payment.currency,
        gateway=world.chance.token(16),
        plan=plan,
        created_at=world.now,
        is_failover=after is not None,
        failovers_left=after.failovers_left - 1 if after else plan.outcome.count,
        processing_at=world.now,
    )
    payment.attempts = (*payment.attempts, attempt)
    tenant.attempts[attempt.id] = attempt
    world.add_effect(Change(world.now, "attempt", attempt.id, None, attempt.status))
    _begin(world, tenant, attempt)
    return attempt


def _begin(world: World, tenant: Tenant, attempt: AttemptRecord) -> None:
    if attempt.plan.outcome.kind == "action":
        _move_attempt(world, attempt, "action_required")
    timing = attempt.plan.timing
    if timing.kind == "after" and timing.seconds == 0:
        settle_attempt(world, tenant, attempt)
    elif timing.kind == "after":
        world.at(world.now + timing.seconds, _end, tenant, attempt)


def _end(world: World, tenant: Tenant, attempt: AttemptRecord) -> None:
    if not attempt.is_final:
        settle_attempt(world, tenant, attempt)


def read_attempt(world: World, tenant: Tenant, attempt: AttemptRecord) -> None:
    """Count a caller's reading of an attempt, for `reads=<n>`."""
    timing = attempt.plan.timing
    if timing.kind == "reads" and not attempt.is_final:
        attempt.reads += 1
        if attempt.reads >= timing.reads:
            settle_attempt(world, tenant, attempt)


def read_payment(world: World, tenant: Tenant, payment: PaymentRecord) -> None:
    """Count a caller's reading of a payment and, with it, of its active attempt."""
    if payment.active_attempt is not None:
        read_attempt(world, tenant, payment.active_attempt)


def settle_attempt(
    world: World, tenant: Tenant, attempt: AttemptRecord, outcome: ScenarioOutcome | None = None
) -> None:
    """Bring an attempt to its end now: as planned, or as `outcome` (`complete`, `fail`, `expire`) says."""
    ending = outcome or attempt.plan.outcome
    payment = attempt.payment
    if ending.kind == "expire":
        expire_payment(world, payment)
    elif ending.kind == "fail":
        _fail(world, attempt, ending.code)
        if payment.channel == "api":
            _move_payment(world, payment, "failed")
    elif outcome is None and attempt.failovers_left:
        _fail(world, attempt, FAILOVER_CODE)
        start_attempt(
            world,
            tenant,
            payment,
            attempt.plan,
            method=attempt.method,
            country=attempt.country,
            phone=attempt.phone,
            currency=attempt.currency,
            after=attempt,
        )
    else:
        _move_attempt(world, attempt, "completed")
        _move_payment(world, payment, "completed")


def _fail(world: World, attempt: AttemptRecord, code: str) -> None:
    attempt.failure = failure_for(code)
    _move_attempt(world, attempt, "failed")


def _expire_at(world: World, payment: PaymentRecord) -> None:
    if payment.is_open:
        expire_payment(world, payment)


def expire_payment(world: World, payment: PaymentRecord) -> None:
    """Expire an open payment, its session and its running attempt."""
    active = payment.active_attempt
    if active is not None and not active.is_final:
        _move_attempt(world, active, "expired")
    _move_payment(world, payment, "expired")


def add_refund(world: World, payment: PaymentRecord, amount: Decimal, *, pending: bool) -> RefundRecord:
    """Reserve `amount` of a completed payment for a refund, and return it at once unless `pending`."""
    refund = RefundRecord(world.chance.id("re"), payment, amount, pending=True)
    payment.refunds = (*payment.refunds, refund)
    if not pending:
        settle_refund(world, refund, completed=True)
    return refund


def settle_refund(world: World, refund: RefundRecord, *, completed: bool) -> None:
    """Complete a refund in flight, or fail it and free its reserved amount."""
    payment = refund.payment
    if not completed:
        payment.refunds = tuple(kept for kept in payment.refunds if kept is not refund)
        return
    returned = attrs.evolve(refund, pending=False)
    payment.refunds = tuple(returned if kept is refund else kept for kept in payment.refunds)
    whole = payment.refunded == payment.amount
    _move_payment(world, payment, "refunded" if whole else "partially_refunded")


def _move_attempt(world: World, attempt: AttemptRecord, status: str) -> None:
    assert status in ATTEMPT_STATES[attempt.status], (attempt.status, status)
    before, attempt.status = attempt.status, status
    setattr(attempt, f"{status}_at", world.now)
    world.add_effect(Change(world.now, "attempt", attempt.id, before, status))
    if status != "expired":
        _emit_webhook(world, attempt.payment, f"payment.attempt.{status}")


def _move_payment(world: World, payment: PaymentRecord, status: str) -> None:
    assert status in PAYMENT_STATES[payment.status], (payment.status, status)
    before, payment.status = payment.status, status
    if before == "pending":  # a refund has no timing
        setattr(payment, f"{status}_at", world.now)
    world.add_effect(Change(world.now, "payment", payment.id, before, status))
    _emit_webhook(world, payment, f"payment.{status}")


def _emit_webhook(world: World, payment: PaymentRecord, event: str) -> None:
    payload = payment_payload(payment, world.now)  # written now, because a payment may change once more
    emit_webhook(world, payment.webhook_url, event, payment.id, lambda: payload, payment.hooks)


WINDOW_MINUTES = 15
_DEGRADED_FROM, _UNAVAILABLE_FROM = 0.25, 0.9
"""Shares of the window's attempts that failed at the gateway."""

_LEAST = 5
"""The fewest attempts for which such a share counts."""


def method_health(tenant: Tenant, now: float, method: str, country: str | None) -> str:
    """Rate a method by its attempts: `available` (too few), `operational`, `degraded` or `unavailable`.

    Only failures of the gateway count: a payer who declines, or has no money, does not make a method worse.
    """
    since = now - WINDOW_MINUTES * 60
    ended = failed = 0
    for attempt in reversed(tenant.attempts.values()):
        if attempt.created_at <= since:
            break
        if (attempt.method, attempt.country) == (method, country) and attempt.is_final:
            ended += 1
            failed += attempt.failure is not None and attempt.failure.category == GATEWAY_ERROR
    if ended < _LEAST:
        return "available"
    if failed / ended < _DEGRADED_FROM:
        return "operational"
    return "degraded" if failed / ended < _UNAVAILABLE_FROM else "unavailable"
