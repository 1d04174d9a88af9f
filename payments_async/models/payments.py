"""Payment intents, attempts and refund availability (Resources and their fields)."""

from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar

import attrs

from ._masking import masked, shown_address
from ._record import Record
from .common import Amount, Customer, ExchangeRate, Failure, Gateway, Method
from .statuses import PaymentAttemptStatus, PaymentIntentStatus

_UNCOLLECTED = frozenset(
    {PaymentIntentStatus.FAILED, PaymentIntentStatus.EXPIRED, PaymentIntentStatus.REFUNDED}
)
_COLLECTED = frozenset({PaymentIntentStatus.COMPLETED, PaymentIntentStatus.PARTIALLY_REFUNDED})
_ATTEMPT_UNSUCCESSFUL = PaymentAttemptStatus.FINAL - {PaymentAttemptStatus.COMPLETED}


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class NextAction(Record):
    """The payer's next step (Resources, Next action). The repr masks data that may identify the payer."""

    _is_payers: ClassVar[bool] = True

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
    """The replacement of an attempt on another gateway (Resources, Failover)."""

    is_failover: bool | None = None
    decision: Any = attrs.field(default=None, hash=False)
    """Any JSON (gap AA)."""


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class PaymentAttempt(Record):
    """One attempt to collect a payment with one method (Resources, Payment attempt)."""

    id: str | None = None
    method: Method | None = None
    amount: Amount | None = None
    exchange_rate: ExchangeRate | Decimal | None = None
    """An object in lists, a plain number elsewhere."""
    correction_rate: Decimal | None = None
    status: str | None = None
    """Set in lists only; see `PaymentAttemptStatus`; open."""
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
        """True if the attempt is over: by timestamps first, then by known statuses (gaps G, I)."""
        ended = self.completed_at or self.failed_at or self.expired_at
        return ended is not None or self.status in PaymentAttemptStatus.FINAL

    @property
    def is_successful(self) -> bool:
        """True if the attempt collected the money."""
        if self.failed_at or self.expired_at or self.status in _ATTEMPT_UNSUCCESSFUL:
            return False
        return self.completed_at is not None or self.status == PaymentAttemptStatus.COMPLETED


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class RefundsSummary(Record):
    """The total of a payment's refunds (Resources, Payment intent, `refunds_summary`)."""

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
    """The methods that a payment may use (Resources, Payment intent, `restriction`; in lists)."""

    payment_methods: MethodFilter | None = None
    payment_method_categories: MethodFilter | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class PaymentIntent(Record):
    """A payment to collect (Resources, Payment intent). Lists and single reads set different fields."""

    id: str = ""
    """Always set in the answer of a creation and in lists; empty where a read does not show it."""
    reference: str | None = None
    amount: Amount | None = None
    customer: Customer | None = None
    status: str | None = None
    """Set in lists only; see `PaymentIntentStatus`; open."""
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
        """True if the payment is over: by timestamps first, then by known statuses (gaps F, I)."""
        ended = self.completed_at or self.expired_at
        return ended is not None or self.status in PaymentIntentStatus.FINAL

    @property
    def is_successful(self) -> bool:
        """True if money was collected and not all of it refunded."""
        if self.expired_at or self.status in _UNCOLLECTED:
            return False
        return self.completed_at is not None or self.status in _COLLECTED


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class RefundAvailability(Record):
    """The amount and kinds of refund still possible for a payment (Resources, Refund availability)."""

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
    """Numbers of the attempts in a requery (gap T)."""

    count: int | None = None
    requeried: int | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Requery(Record):
    """The result of asking the gateways again about a payment (live operation; gap T)."""

    id: str | None = None
    status: str | None = None
    payment_intent_id: str | None = None
    payment_attempt_id: str | None = None
    before: RequeryState | None = None
    after: RequeryState | None = None
    attempts: RequeryAttempts | None = None
    completed_at: datetime | None = None
    created_at: datetime | None = None
