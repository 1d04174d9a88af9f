"""Controls of records behind the API: pay, settle, refund."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from decimal import Decimal

from ._common.money import read_amount
from ._common.scenario_words import Scenario, ScenarioOutcome, Timing, parse
from ._records.books import PaymentEntry, payment_entry
from ._records.payments import add_refund, expire_payment, settle_attempt, settle_refund, start_attempt
from ._records.payouts import settle_payout
from ._records.records import AttemptRecord, PaymentRecord, PayoutRecord, Plan, RefundRecord, plan_for
from ._records.tenants import Tenant
from ._records.world import World

USUAL_METHOD = "sandbox_mobile"
"""The default payment method."""

_AT_ONCE = Timing("after")
_ENDS = frozenset({"complete", "fail", "expire"})
_Record = PayoutRecord | AttemptRecord | PaymentRecord | RefundRecord


class RecordControls:
    """Ends and refunds records from behind the API. Every method may be called from any thread."""

    @abstractmethod
    def changing(self) -> AbstractContextManager[World]:
        """The records as of now, under the sandbox's lock, to change them."""

    def pay(
        self,
        payment_id: str,
        *,
        method: str = USUAL_METHOD,
        phone: str | None = None,
        country: str | None = None,
        outcome: str | None = None,
    ) -> PaymentEntry:
        """A simulated payer pays a payment, named by its own id or its checkout session's.

        Creates an attempt with `method` and ends it at once, or acts on the attempt that is waiting.
        `outcome` is scenario words such as `fail:CUSTOMER_DECLINED` or `action:collect_otp`; without it the
        creation's scenario decides, and else the payment completes. `LookupError` for an unknown id;
        `ValueError` when the payment is not open, or the session is locked to another country or phone.
        """
        with self.changing() as world:
            tenant, payment = find_payment(world, payment_id)
            if not payment.is_open:
                raise ValueError(f"payment {payment.id} is {payment.status}")
            plan = _payer_plan(payment, parse(outcome, "outcome") if outcome else None)
            active, session = payment.active_attempt, payment.session
            if active is not None and not active.is_final:
                settle_attempt(world, tenant, active, plan.outcome if plan.outcome.kind in _ENDS else None)
            else:
                country = _locked(session.country if session else None, country, "country")
                phone = _locked(session.phone if session else None, phone, "phone")
                start_attempt(world, tenant, payment, plan, method=method, country=country, phone=phone)
            return payment_entry(payment)

    def settle(self, record_id: str, outcome: str = "complete") -> None:
        """End a payout, attempt, payment or pending refund now: `complete`, `fail:CODE` or `expire`.

        `LookupError` for an unknown id, `ValueError` for a record that is final or cannot end so.
        """
        with self.changing() as world:
            ending = parse(outcome, "outcome").outcome
            if ending is None or ending.kind not in _ENDS:
                raise ValueError(f"{outcome!r} does not end a record; complete, fail:CODE and expire do")
            _settle(world, *_find_record(world, record_id), ending)

    def refund(
        self, payment_id: str, amount: Decimal | int | str | None = None, *, pending: bool = False
    ) -> str:
        """Refund a completed payment from behind the API and give the refund's id.

        `amount` is in major units, exact (`Decimal("29.99")`, `30`, `"29.99"`), all that is left when None;
        `pending` leaves it in flight until `settle`. `TypeError` for another type, such as a float, which is
        not exact; `ValueError` when the amount is no positive number or exceeds what is left.
        """
        given = None if amount is None else read_amount(amount)
        with self.changing() as world:
            _, payment = find_payment(world, payment_id)
            wanted = payment.refundable if given is None else given
            if not 0 < wanted <= payment.refundable:
                raise ValueError(f"{payment.refundable} {payment.currency} can be refunded, not {wanted}")
            return add_refund(world, payment, wanted, pending=pending).id


def find_payment(world: World, payment_id: str) -> tuple[Tenant, PaymentRecord]:
    """Find the payment by its own id or its checkout session's; `LookupError`."""
    for tenant in world.tenants.values():
        if (payment := tenant.payment_of(payment_id)) is not None:
            return tenant, payment
    raise LookupError(f"no payment or checkout session {payment_id!r}")


def _payer_plan(payment: PaymentRecord, wanted: Scenario | None) -> Plan:
    """Plan a payer's action: as wanted, else by the creation's scenario, else success at once."""
    if wanted is not None:
        ending = wanted.outcome or ScenarioOutcome("complete")
        at_once = _AT_ONCE if ending.kind in ("complete", "fail", "expire", "failover") else None
        return plan_for(ending, wanted.timing or at_once)
    return payment.plan or plan_for(ScenarioOutcome("complete"), _AT_ONCE)


def _locked(only: str | None, given: str | None, what: str) -> str | None:
    if only is not None and given is not None and only != given:
        raise ValueError(f"the checkout session is locked to the {what} {only!r}")
    return given or only


def _find_record(world: World, record_id: str) -> tuple[Tenant, _Record]:
    for tenant in world.tenants.values():
        record: _Record | None = (
            tenant.payouts_by_id.get(record_id)
            or tenant.attempts.get(record_id)
            or tenant.payment_of(record_id)
        )
        refunds = (refund for payment in tenant.payments for refund in payment.refunds)
        record = record or next(
            (refund for refund in refunds if refund.id == record_id and refund.pending), None
        )
        if record is not None:
            return tenant, record
    raise LookupError(f"no record {record_id!r}")


def _settle(world: World, tenant: Tenant, record: _Record, outcome: ScenarioOutcome) -> None:
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
