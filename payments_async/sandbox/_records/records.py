"""The service's records and the tables of their states.

Records change only through `payouts` and `payments`, which consult the tables here.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Protocol

import attrs
import msgspec

from .._common.json import JsonObject
from .._common.money import less, total
from .._common.scenario_words import HookWords, ScenarioOutcome, Timing

PAYOUT_STATES: Mapping[str, frozenset[str]] = {
    "pending": frozenset({"processing", "completed", "failed"}),
    "processing": frozenset({"completed", "failed"}),
    "completed": frozenset(),
    "failed": frozenset(),
}
"""Gap H: the next statuses that a payout can have, by status."""

ATTEMPT_STATES: Mapping[str, frozenset[str]] = {
    "processing": frozenset({"action_required", "completed", "failed", "expired"}),
    "action_required": frozenset({"processing", "completed", "failed", "expired"}),
    "completed": frozenset(),
    "failed": frozenset(),
    "expired": frozenset(),
}
"""Gap G: the next statuses that an attempt can have, by status."""

PAYMENT_STATES: Mapping[str, frozenset[str]] = {
    "pending": frozenset({"completed", "failed", "expired"}),
    "completed": frozenset({"refunded", "partially_refunded"}),
    "partially_refunded": frozenset({"partially_refunded", "refunded"}),
    "failed": frozenset(),
    "expired": frozenset(),
    "refunded": frozenset(),
}
"""Gap F: the next statuses that a payment can have, by status."""


@attrs.frozen
class Plan:
    """The planned end of a record: its outcome and its time."""

    outcome: ScenarioOutcome
    timing: Timing


END_AFTER = 5.0  # seconds from a creation to its end by default

_BY_ITSELF = Timing("after", seconds=END_AFTER)
_NEVER = Timing("manual")
_UNTIMED = frozenset({"hang", "action", "expire"})
"""Outcomes without a time: nothing ends, the payer acts, or the record expires."""


def plan_for(outcome: ScenarioOutcome, timing: Timing | None = None) -> Plan:
    """Plan an outcome; without a timing, after five seconds if it comes by itself."""
    if outcome.kind == "hang" or (timing is None and outcome.kind in _UNTIMED):
        return Plan(outcome, _NEVER)
    return Plan(outcome, timing or _BY_ITSELF)


USUAL_PLAN = plan_for(ScenarioOutcome("complete"))

GATEWAY_ERROR = "GATEWAY_ERROR"  # the category of a failure that is the gateway's own


@attrs.frozen
class FailureRecord:
    """The reason why a payout or an attempt failed (`docs/interface.md`, Failure)."""

    code: str
    category: str
    message: str


class PayoutRecord(msgspec.Struct, eq=False, gc=False):
    """Money sent to an instrument. Times are seconds since 1970.

    The garbage collector does not visit it: there are many, and none is part of a circle.
    """

    id: str
    position: int  # place in its tenant's list, oldest first
    key: str  # fingerprint of the API key that owns it
    idempotency_key: str | None
    amount: Decimal
    currency: str
    method: str
    reference: str | None
    webhook_url: str | None
    body: bytes
    """The request that created the payout, read for the fields that are returned unchanged."""
    instrument_id: str
    customer_id: str | None
    gateway: str  # of which the ids of the gateway's transaction are made
    plan: Plan
    created_at: float
    hooks: HookWords = ()
    status: str = "pending"
    reads: int = 0
    failure: FailureRecord | None = None
    initiated_at: float | None = None
    completed_at: float | None = None
    failed_at: float | None = None

    def __repr__(self) -> str:  # neither account data nor a receiver's token
        return f"PayoutRecord(id={self.id!r}, reference={self.reference!r}, status={self.status!r})"

    @property
    def is_final(self) -> bool:
        """True if the status can no longer change."""
        return not PAYOUT_STATES[self.status]


class Site(Protocol):
    """The server of the payments' pages."""

    @property
    def pages(self) -> str:
        """What their addresses begin with."""
        ...


@attrs.define(eq=False)
class AttemptRecord:
    """One try at collecting a payment."""

    id: str
    payment: PaymentRecord = attrs.field(repr=False)
    method: str
    country: str | None
    phone: str | None
    currency: str
    gateway: str
    plan: Plan
    created_at: float
    is_failover: bool
    failovers_left: int
    """How many more times the attempt fails over to another gateway."""
    status: str = "processing"
    reads: int = 0
    failure: FailureRecord | None = None
    processing_at: float | None = None
    action_required_at: float | None = None
    completed_at: float | None = None
    failed_at: float | None = None
    expired_at: float | None = None

    @property
    def is_final(self) -> bool:
        """True if the status can no longer change."""
        return not ATTEMPT_STATES[self.status]


@attrs.define(eq=False)
class CheckoutRecord:
    """The hosted page of a payment."""

    id: str
    payment: PaymentRecord = attrs.field(repr=False)
    country: str | None  # the one country the payer is locked to
    phone: str | None  # the one number the payer is locked to
    appearance: JsonObject
    form_token: str = attrs.field(repr=False)
    """Proves that a form came from the hosted page."""


@attrs.frozen(eq=False)
class RefundRecord:
    """Money on its way back, or returned, to the payer."""

    id: str
    payment: PaymentRecord = attrs.field(repr=False)
    amount: Decimal
    pending: bool


@attrs.define(eq=False)
class PaymentRecord:
    """A payment intent. `channel` is `api` or `checkout`."""

    id: str
    position: int
    key: str
    idempotency_key: str | None
    channel: str
    reference: str
    amount: Decimal
    currency: str
    customer_id: str | None
    body: JsonObject = attrs.field(repr=False)
    """The request that created the payment, for the fields that are returned unchanged."""
    plan: Plan | None  # the plan by the creation's scenario; None without one
    created_at: float
    expires_at: float
    site: Site = attrs.field(repr=False)  # the server of its pages
    hooks: HookWords = ()
    status: str = "pending"
    session: CheckoutRecord | None = None
    attempts: tuple[AttemptRecord, ...] = attrs.field(default=(), repr=False)
    refunds: tuple[RefundRecord, ...] = attrs.field(default=(), repr=False)
    completed_at: float | None = None
    failed_at: float | None = None
    expired_at: float | None = None

    @property
    def is_open(self) -> bool:
        """True if it can still be paid."""
        return self.status == "pending"

    @property
    def active_attempt(self) -> AttemptRecord | None:
        """The newest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def webhook_url(self) -> str | None:
        """The address of its deliveries."""
        url = self.body.get("webhook_url")
        return url if isinstance(url, str) else None

    @property
    def refunded(self) -> Decimal:
        return total(refund.amount for refund in self.refunds if not refund.pending)

    @property
    def reserved(self) -> Decimal:
        """Amount of the refunds in flight."""
        return total(refund.amount for refund in self.refunds if refund.pending)

    @property
    def refundable(self) -> Decimal:
        """The amount left to refund, refunds in flight reserved; 0 when nothing was collected."""
        if self.completed_at is None:
            return Decimal(0)
        return less(self.amount, self.refunded, self.reserved)
