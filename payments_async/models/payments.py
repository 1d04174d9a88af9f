"""Payment intents, attempts and what can be refunded of them (Resources and their fields)."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import attrs

from ._masking import shown_address
from ._record import Record, masked
from .common import Amount, Customer, ExchangeRate, Failure, Gateway, Method
from .statuses import PaymentAttemptStatus, PaymentIntentStatus

_UNCOLLECTED = frozenset(
    {PaymentIntentStatus.FAILED, PaymentIntentStatus.EXPIRED, PaymentIntentStatus.REFUNDED}
)
_COLLECTED = frozenset({PaymentIntentStatus.COMPLETED, PaymentIntentStatus.PARTIALLY_REFUNDED})
_ATTEMPT_UNSUCCESSFUL = PaymentAttemptStatus.FINAL - {PaymentAttemptStatus.COMPLETED}


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class NextAction(Record):
    """What the payer has to do next (Resources, Next action). The repr masks what may tell the payer."""

    type: str | None = None
    """See `NextActionType`; open."""
    message: str | None = attrs.field(default=None, repr=masked)
    instructions: tuple[str, ...] | None = attrs.field(default=None, repr=masked)
    dial_code: str | None = None
    digits: int | None = None
    is_strict: bool | None = None
    fields: tuple[dict[str, Any], ...] | None = attrs.field(default=None, repr=masked, hash=False)
    url: str | None = attrs.field(default=None, repr=masked)
    method: str | None = None
    post_data: dict[str, Any] | None = attrs.field(default=None, repr=masked, hash=False)
    can_auto_redirect: bool | None = None
    content: str | None = attrs.field(default=None, repr=masked)
    image_url: str | None = None
    title: str | None = None
    provider: str | None = None
    sdk_url: str | None = None
    public_key: str | None = None
    client_params: dict[str, Any] | None = attrs.field(default=None, repr=masked, hash=False)
    container_id: str | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Failover(Record):
    """Whether an attempt replaced one on another gateway (Resources, Failover)."""

    is_failover: bool | None = None
    decision: Any = attrs.field(default=None, hash=False)
    """Any JSON (gap AA)."""


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class PaymentAttempt(Record):
    """One try at collecting a payment with one method (Resources, Payment attempt)."""

    id: str | None = None
    method: Method | None = None
    amount: Amount | None = None
    exchange_rate: ExchangeRate | Decimal | None = None
    """An object in lists, a plain number elsewhere."""
    correction_rate: Decimal | None = None
    status: str | None = None
    """List form only; see `PaymentAttemptStatus`; open."""
    gateway: Gateway | None = None
    next_action: NextAction | None = None
    failure: Failure | None = None
    failover: Failover | None = None
    processing_at: datetime | None = None
    action_required_at: datetime | None = None
    expired_at: datetime | None = None
    completed_at: datetime | None = None
    failed_at: datetime | None = None
    created_at: datetime | None = None

    @property
    def is_final(self) -> bool:
        """Whether the attempt is over: timestamps first, then known statuses (gaps G, I)."""
        ended = self.completed_at or self.failed_at or self.expired_at
        return ended is not None or self.status in PaymentAttemptStatus.FINAL

    @property
    def is_successful(self) -> bool:
        """Whether the attempt collected the money."""
        if self.failed_at or self.expired_at or self.status in _ATTEMPT_UNSUCCESSFUL:
            return False
        return self.completed_at is not None or self.status == PaymentAttemptStatus.COMPLETED


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class RefundsSummary(Record):
    """Refunds of a payment in sum (Resources, Payment intent, `refunds_summary`)."""

    refunded_amount: Amount | None = None
    pending_amount: Amount | None = None
    refundable_amount: Amount | None = None
    has_pending_refund: bool | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class MethodFilter(Record):
    """Codes allowed and denied."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Restriction(Record):
    """Which methods a payment may use (Resources, Payment intent, `restriction`; list form)."""

    payment_methods: MethodFilter | None = None
    payment_method_categories: MethodFilter | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class PaymentIntent(Record):
    """A payment to collect (Resources, Payment intent). Which fields are set depends on the form."""

    id: str | None = None
    reference: str | None = None
    amount: Amount | None = None
    customer: Customer | None = None
    status: str | None = None
    """List form only; see `PaymentIntentStatus`; open."""
    description: str | None = None
    return_url: str | None = None
    webhook_url: str | None = attrs.field(default=None, repr=shown_address)
    statement_descriptor: str | None = None
    receipt_email: str | None = attrs.field(default=None, repr=masked)
    metadata: dict[str, Any] | None = attrs.field(default=None, repr=masked, hash=False)
    """Your pairs, returned unchanged."""
    refunds_summary: RefundsSummary | None = None
    active_attempt: PaymentAttempt | None = None
    restriction: Restriction | None = None
    completed_at: datetime | None = None
    expires_at: datetime | None = None
    expired_at: datetime | None = None
    created_at: datetime | None = None

    @property
    def is_final(self) -> bool:
        """Whether the payment is over: timestamps first, then known statuses (gaps F, I)."""
        ended = self.completed_at or self.expired_at
        return ended is not None or self.status in PaymentIntentStatus.FINAL

    @property
    def is_successful(self) -> bool:
        """Whether money was collected and not all of it given back."""
        if self.expired_at or self.status in _UNCOLLECTED:
            return False
        return self.completed_at is not None or self.status in _COLLECTED


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class RefundAvailability(Record):
    """What a payment can still be refunded for (Resources, Refund availability)."""

    is_refundable: bool | None = None
    refundable_amount: Amount | None = None
    refunded_amount: Amount | None = None
    pending_amount: Amount | None = None
    has_pending_refund: bool | None = None
    available_types: tuple[str, ...] | None = None
    """Any of `full`, `partial`."""
    execution_method: str | None = None
    """`gateway`, `payout` or None."""
    unavailable_reason: str | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class RequeryState(Record):
    """Statuses before or after a requery (gap T)."""

    intent_status: str | None = None
    attempt_status: str | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class RequeryAttempts(Record):
    """How many attempts a requery looked at (gap T)."""

    count: int | None = None
    requeried: int | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Requery(Record):
    """What asking the gateways again changed (live operation; gap T)."""

    id: str | None = None
    status: str | None = None
    payment_intent_id: str | None = None
    payment_attempt_id: str | None = None
    before: RequeryState | None = None
    after: RequeryState | None = None
    attempts: RequeryAttempts | None = None
    completed_at: datetime | None = None
    created_at: datetime | None = None
