"""What a state file holds: its parts, typed, as JSON.

A part is one of the structs of `Part`, told apart by `type`. A record names other records by their ids. Bytes
are read into these structs and their plain values, and into nothing else.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Final, Literal

import msgspec

from ..common.json import JsonObject
from ..common.scenario_words import HookWords
from ..records.records import FailureRecord, GatewayRecord, Plan
from ..records.tenants import KeyStatus
from ..webhooks import Webhook

VERSION: Final = 1
"""Which form the parts have. A change of any struct here, or of what it is made of, takes the next number."""

QueueEntry = tuple[float, int, str]
"""When a webhook is tried, a number that keeps the order, and its id."""
Key = Annotated[str, msgspec.Meta(pattern=r"\Ask_sandbox_[0-9a-z]{32}\Z")]
PayoutStatus = Literal["pending", "processing", "completed", "failed"]
PaymentStatus = Literal["pending", "completed", "failed", "expired", "partially_refunded", "refunded"]
AttemptStatus = Literal["processing", "action_required", "completed", "failed", "expired"]
StepName = Literal["payment.expire", "attempt.end", "payout.process", "payout.end"]


class StatePart(msgspec.Struct, forbid_unknown_fields=True):
    """One thing in a state file."""

    def __repr__(self) -> str:  # most of them hold account data
        return f"<{type(self).__name__}>"


class StoredTenant(StatePart):
    """An API key."""

    key: Key
    fingerprint: str
    status: KeyStatus
    allowlist: list[str] | None
    revoked: str | None


class StoredPayout(StatePart):
    """The fields of a `Payout`."""

    id: str
    position: int
    key: str
    idempotency_key: str | None
    amount: Decimal
    currency: str
    method: str
    instrument: JsonObject
    reference: str | None
    description: str | None
    webhook_url: str | None
    customer: JsonObject | None
    metadata: JsonObject | None
    gateway: GatewayRecord
    plan: Plan
    created_at: float
    hooks: HookWords
    status: PayoutStatus
    reads: int
    failure: FailureRecord | None
    initiated_at: float | None
    completed_at: float | None
    failed_at: float | None


class StoredRefund(StatePart):
    """The fields of a `Refund` but for its payment, in which it stands."""

    id: str
    amount: Decimal
    pending: bool


class StoredPayment(StatePart):
    """The fields of a `Payment` but for its site, which is the process's."""

    id: str
    position: int
    key: str
    idempotency_key: str | None
    channel: str
    reference: str
    amount: Decimal
    currency: str
    customer: JsonObject | None
    body: JsonObject
    plan: Plan | None
    created_at: float
    expires_at: float
    hooks: HookWords
    status: PaymentStatus
    session: str | None
    attempts: list[str]
    refunds: list[StoredRefund]
    completed_at: float | None
    failed_at: float | None
    expired_at: float | None


class StoredAttempt(StatePart):
    """The fields of an `Attempt`."""

    id: str
    payment: str
    method: str
    country: str | None
    phone: str | None
    currency: str
    gateway: GatewayRecord
    plan: Plan
    created_at: float
    is_failover: bool
    failovers_left: int
    status: AttemptStatus
    reads: int
    failure: FailureRecord | None
    processing_at: float | None
    action_required_at: float | None
    completed_at: float | None
    failed_at: float | None
    expired_at: float | None


class StoredSession(StatePart):
    """The fields of a `Session`."""

    id: str
    payment: str
    country: str | None
    phone: str | None
    appearance: JsonObject
    form_token: str


class StoredReply(StatePart):
    """The first answer under an idempotency key."""

    key: str
    request: bytes
    status: int
    headers: dict[str, str]
    body: bytes
    until: float
    ready_at: float


class StoredTimer(StatePart):
    """What happens to a record at a moment."""

    at: float
    serial: int
    step: StepName
    record: str


class Head(StatePart, tag="head"):
    """The first part: what there is one of."""

    api_key: str
    now: float
    served: int
    chance: list[int]
    has_receivers: bool
    serial: int
    tenants: list[StoredTenant]
    busy: dict[str, list[QueueEntry]]
    held: dict[str, tuple[str, ...]]
    accepted: int
    pushed: int


class PayoutsPart(StatePart, tag="payouts"):
    """Payouts of the tenant with the fingerprint `owner`."""

    owner: str
    records: list[StoredPayout]


class PaymentsPart(StatePart, tag="payments"):
    """Its payments."""

    owner: str
    records: list[StoredPayment]


class Attempts(StatePart, tag="attempts"):
    """Its attempts."""

    owner: str
    records: list[StoredAttempt]


class Sessions(StatePart, tag="sessions"):
    """Its checkout sessions."""

    owner: str
    records: list[StoredSession]


class Replies(StatePart, tag="replies"):
    """Its idempotency store, in order of age."""

    owner: str
    replies: list[StoredReply]


class Turns(StatePart, tag="turns"):
    """How often its requests have met each scenario: words, the request's identity, and the count."""

    owner: str
    turns: list[tuple[str, bytes, int]]


class Customers(StatePart, tag="customers"):
    """Its customers' ids by e-mail address."""

    owner: str
    ids: dict[str, str]


class Timers(StatePart, tag="timers"):
    """What is still to happen, in the heap's order."""

    timers: list[StoredTimer]


class Webhooks(StatePart, tag="webhooks"):
    """Deliveries, the oldest first."""

    webhooks: list[Webhook]


class EndedDeliveries(StatePart, tag="ended"):
    """Ids of the deliveries that are over, in the order they ended."""

    ids: list[str]


class Queue(StatePart, tag="queue"):
    """When deliveries are tried, in the heap's order."""

    entries: list[QueueEntry]


Part = (
    Head
    | PayoutsPart
    | PaymentsPart
    | Attempts
    | Sessions
    | Replies
    | Turns
    | Customers
    | Timers
    | Webhooks
    | EndedDeliveries
    | Queue
)

_encoder: Final = msgspec.json.Encoder(decimal_format="number")
_decoder: Final[msgspec.json.Decoder[Part]] = msgspec.json.Decoder(Part, float_hook=Decimal)


def encode_part(part: Part) -> bytes:
    """A part as JSON, amounts digit for digit."""
    return _encoder.encode(part)


def decode_part(data: bytes) -> Part:
    """The part in `data`; `ValueError` for anything else, `RecursionError` when it is nested too deeply."""
    return _decoder.decode(data)
