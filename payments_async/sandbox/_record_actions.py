"""What a test may do to the simulated world behind the API's back: pay, settle, refund."""

from __future__ import annotations

from decimal import Decimal

from .common.scenario_words import Scenario, ScenarioOutcome, Timing, parse
from .records.payments import add_refund, expire_payment, settle_attempt, settle_refund, start_attempt
from .records.payouts import settle_payout
from .records.records import AttemptRecord, PaymentRecord, PayoutRecord, Plan, RefundRecord, plan_for
from .records.tenants import Tenant
from .records.world import World

USUAL_METHOD = "sandbox_mobile"
"""What a payer pays with unless told."""

_AT_ONCE = Timing("after")
_ENDS = frozenset({"complete", "fail", "expire"})
_HANGING = Plan(ScenarioOutcome("hang"), Timing("manual"))


def find_payment(world: World, payment_id: str) -> tuple[Tenant, PaymentRecord]:
    """The payment with this id, or of the checkout session with it; `LookupError`."""
    for tenant in world.tenants.values():
        session = tenant.sessions.get(payment_id)
        payment = session.payment if session else tenant.payments_by_id.get(payment_id)
        if payment is not None:
            return tenant, payment
    raise LookupError(f"no payment or checkout session {payment_id!r}")


def pay(
    world: World,
    payment_id: str,
    *,
    method: str,
    phone: str | None,
    country: str | None,
    outcome: str | None,
) -> PaymentRecord:
    """A payer pays, or acts on the attempt that waits for him; `ValueError` when the payment is not open."""
    tenant, payment = find_payment(world, payment_id)
    if not payment.is_open:
        raise ValueError(f"payment {payment.id} is {payment.status}")
    plan = _payer_plan(payment, parse(outcome, "outcome") if outcome else None)
    active = payment.active_attempt
    if active is not None and not active.is_final:
        settle_attempt(world, tenant, active, plan.outcome if plan.outcome.kind in _ENDS else None)
        return payment
    start_attempt(
        world,
        tenant,
        payment,
        plan,
        method=method,
        country=_locked(payment.session.country if payment.session else None, country, "country"),
        phone=_locked(payment.session.phone if payment.session else None, phone, "phone"),
    )
    return payment


def _payer_plan(payment: PaymentRecord, wanted: Scenario | None) -> Plan:
    """What was asked for, else what the creation's scenario planned, else success; at once unless timed."""
    if wanted is not None:
        ending = wanted.outcome or ScenarioOutcome("complete")
        at_once = _AT_ONCE if ending.kind in ("complete", "fail", "expire", "failover") else None
        return plan_for(ending, wanted.timing or at_once)
    return payment.plan or plan_for(ScenarioOutcome("complete"), _AT_ONCE)


def _locked(only: str | None, given: str | None, what: str) -> str | None:
    if only is not None and given is not None and only != given:
        raise ValueError(f"the checkout session is locked to the {what} {only!r}")
    return given or only


def settle(world: World, record_id: str, words: str) -> None:
    """Bring a payout, attempt, payment or pending refund to its end now.

    `words` is `complete`, `fail:CODE`, or `expire` for payments and attempts. `LookupError` for an unknown
    id, `ValueError` for a record that is final already or cannot end so.
    """
    outcome = parse(words, "outcome").outcome
    if outcome is None or outcome.kind not in _ENDS:
        raise ValueError(f"{words!r} does not end a record; complete, fail:CODE and expire do")
    for tenant in world.tenants.values():
        record = _find_record(tenant, record_id)
        if record is not None:
            _settle(world, tenant, record, outcome)
            return
    raise LookupError(f"no record {record_id!r}")


def _find_record(
    tenant: Tenant, record_id: str
) -> PayoutRecord | AttemptRecord | PaymentRecord | RefundRecord | None:
    record = tenant.payouts_by_id.get(record_id) or tenant.attempts.get(record_id)
    if record is not None:
        return record
    session = tenant.sessions.get(record_id)
    payment = session.payment if session else tenant.payments_by_id.get(record_id)
    if payment is not None:
        return payment
    refunds = (refund for payment in tenant.payments for refund in payment.refunds)
    return next((refund for refund in refunds if refund.id == record_id and refund.pending), None)


def _settle(
    world: World,
    tenant: Tenant,
    record: PayoutRecord | AttemptRecord | PaymentRecord | RefundRecord,
    outcome: ScenarioOutcome,
) -> None:
    if isinstance(record, RefundRecord):
        settle_refund(world, record, completed=outcome.kind == "complete")
        return
    if isinstance(record, PaymentRecord):
        _settle_payment(world, tenant, record, outcome)
        return
    if record.is_final:
        raise ValueError(f"{record.id} is {record.status} already")
    if isinstance(record, AttemptRecord):
        settle_attempt(world, tenant, record, outcome)
    elif outcome.kind == "expire":
        raise ValueError("a payout does not expire")
    else:
        settle_payout(world, record, outcome)


def hold(world: World, record_id: str) -> None:
    """A payout or attempt that is under way no longer ends by itself; `LookupError`, `ValueError`."""
    for tenant in world.tenants.values():
        record = _find_record(tenant, record_id)
        if record is None:
            continue
        held = record.active_attempt if isinstance(record, PaymentRecord) else record
        if not isinstance(held, (PayoutRecord, AttemptRecord)) or held.is_final:
            raise ValueError("only a payout or an attempt that is under way can be held")
        held.plan = _HANGING
        return
    raise LookupError(f"no record {record_id!r}")


def _settle_payment(world: World, tenant: Tenant, payment: PaymentRecord, outcome: ScenarioOutcome) -> None:
    if not payment.is_open:
        raise ValueError(f"payment {payment.id} is {payment.status} already")
    active = payment.active_attempt
    if outcome.kind == "expire":
        expire_payment(world, payment)
    elif active is None:
        raise ValueError(f"payment {payment.id} has no attempt; use pay(...)")
    else:
        _settle(world, tenant, active, outcome)


def refund(world: World, payment_id: str, amount: Decimal | None, *, pending: bool) -> RefundRecord:
    """Refund a payment, all that is left unless `amount` says; `ValueError` when it exceeds what is left."""
    _, payment = find_payment(world, payment_id)
    wanted = payment.refundable if amount is None else amount
    if not 0 < wanted <= payment.refundable:
        raise ValueError(f"{payment.refundable} {payment.currency} can be refunded, not {wanted}")
    return add_refund(world, payment, wanted, pending=pending)
