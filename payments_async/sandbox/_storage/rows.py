"""A sandbox's state as typed rows of JSON: keys, records, timers, idempotency stores, waiting webhooks.

Not kept: rules, the request log and the journal, which are a session's; counts of the rate limits, which a
restart empties. Profile and limits are those that the sandbox is started with.

A row is a kind and a body. Payouts and webhooks hold plain values only, so that msgspec writes and reads them
as they are. Payments have a stored form, which holds their attempts, session and refunds; these do not refer
back to it.
`restore` reads the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, get_type_hints

import attrs
import msgspec

from .._api.core import Core
from .._records import payments, payouts
from .._records.idempotency import StoredAnswer
from .._records.records import AttemptRecord, CheckoutRecord, PaymentRecord, PayoutRecord, RefundRecord
from .._records.tenants import KeyStatus, Tenant
from .._records.world import Step, Timer
from .._webhooks import Webhook
from .._webhooks.retry_schedule import WebhookQueue

VERSION: Final = 5
"""The schema version of the rows. A change of any struct here, or of its parts, takes the next number."""

StateRow = tuple[str, bytes]
"""A kind (see `KINDS`) and its JSON."""

QueueEntry = tuple[float, int, str]
"""The time of a webhook's try, a number that keeps the order, and its id."""
Key = Annotated[str, msgspec.Meta(pattern=r"\Ask_sandbox_[0-9a-z]{32}\Z")]


class Stored(msgspec.Struct, forbid_unknown_fields=True):
    """One thing in a state file."""

    def __repr__(self) -> str:  # most of them hold account data
        return f"<{type(self).__name__}>"


def _stored(record: type, **replaced: Any) -> type[Any]:
    """A struct with the fields of a record; those in `replaced` have another type, or are left out (None)."""
    types = {**get_type_hints(record), **replaced}
    fields = [(field.name, types[field.name]) for field in attrs.fields(record)]
    kept = [(name, kind) for name, kind in fields if kind is not None]
    return msgspec.defstruct(f"Stored{record.__name__}", kept, bases=(Stored,))


StoredAttempt: Final = _stored(AttemptRecord, payment=None)
StoredSession: Final = _stored(CheckoutRecord, payment=None)
StoredRefund: Final = _stored(RefundRecord, payment=None)
StoredPayment: Final = _stored(
    PaymentRecord,
    site=None,
    session=StoredSession | None,
    attempts=list[StoredAttempt],  # type: ignore[valid-type] # made at run time
    refunds=list[StoredRefund],  # type: ignore[valid-type] # made at run time
)


class StoredReply(Stored):
    """The first answer under an idempotency key of the tenant with the fingerprint `owner`.

    It is the id of a payout, or status, headers and body.
    """

    owner: str
    key: str
    request: bytes
    answer: str | tuple[int, dict[str, str], bytes]
    at: float
    late: float


class StoredTenant(Stored):
    """An API key. `turns` counts requests for each scenario: words, identity, count."""

    key: Key
    fingerprint: str
    status: KeyStatus
    allowlist: list[str] | None
    revoked: str | None
    customers: dict[str, str]
    turns: list[tuple[str, bytes, int]]


class StoredTimer(Stored):
    """A step that changes a record at a set time."""

    at: float
    serial: int
    step: str
    record: str


class StoredState(Stored):
    """The first row: the values that exist once, and the pending timers."""

    api_key: str
    now: float
    served: int
    chance: list[int]
    has_receivers: bool
    serial: int
    tenants: list[StoredTenant]
    timers: list[StoredTimer]
    queue: list[QueueEntry]
    busy: dict[str, list[QueueEntry]]
    held: dict[str, tuple[str, ...]]
    over: list[str]
    accepted: int
    pushed: int


KINDS: Final[Mapping[str, type]] = {
    "state": StoredState,
    "payout": PayoutRecord,
    "payment": StoredPayment,
    "reply": StoredReply,
    "webhook": Webhook,
}
"""The type of the body of each kind of row."""

STEPS: Final[Mapping[str, tuple[Step, type]]] = {
    "payment.expire": (payments._expire_at, PaymentRecord),
    "attempt.end": (payments._end, AttemptRecord),
    "payout.process": (payouts._process, PayoutRecord),
    "payout.end": (payouts._end, PayoutRecord),
}
"""The steps of timers, each with its type of record."""

_STEP_NAMES: Final = {function: name for name, (function, _) in STEPS.items()}
_encode: Final = msgspec.json.Encoder(decimal_format="number").encode  # amounts digit for digit


def dump(core: Core, queue: WebhookQueue, api_key: str, now: float) -> list[StateRow]:
    """Convert the state to rows, at the sandbox's time `now`. The sandbox's lock is held meanwhile."""
    tenants = core.world.tenants.values()
    return [
        ("state", _encode(_state(core, queue, api_key, now))),
        *(row for tenant in tenants for row in _tenant_rows(tenant)),
        *(("webhook", _encode(webhook)) for webhook in queue.webhooks),
    ]


def _tenant_rows(tenant: Tenant) -> Iterator[StateRow]:
    for payout in tenant.payouts:
        yield "payout", _encode(payout)
    for payment in tenant.payments:
        yield "payment", _encode(msgspec.convert(payment, StoredPayment, from_attributes=True))
    for key, reply in tenant.replies._stored.items():
        yield "reply", _encode(_reply(tenant.fingerprint, key, reply))


def _state(core: Core, queue: WebhookQueue, api_key: str, now: float) -> StoredState:
    world = core.world
    return StoredState(
        api_key=api_key,
        now=now,
        served=core.served,
        chance=world.chance.state,
        has_receivers=world.has_receivers,
        serial=world._serial,
        tenants=[_tenant(key, tenant) for key, tenant in world.tenants.items()],
        timers=[_timer(timer) for timer in world._timers],
        queue=queue._queue,
        busy=queue._busy,
        held=queue._held,
        over=list(queue._over),
        accepted=queue._accepted,
        pushed=queue._pushed,
    )


def _tenant(key: str, tenant: Tenant) -> StoredTenant:
    return StoredTenant(
        key=key,
        fingerprint=tenant.fingerprint,
        status=tenant.status,
        allowlist=None if tenant.allowlist is None else [str(network) for network in tenant.allowlist],
        revoked=tenant.revoked,
        customers=tenant.customers,
        turns=[(words, identity, count) for (words, identity), count in tenant.turns.items()],
    )


def _timer(timer: Timer) -> StoredTimer:
    at, serial, step, *about = timer
    return StoredTimer(at, serial, _STEP_NAMES[step], about[-1].id)


def _reply(owner: str, key: str, reply: StoredAnswer) -> StoredReply:
    first = reply.answer
    answer = first.id if isinstance(first, PayoutRecord) else (first.status, dict(first.headers), first.body)
    return StoredReply(owner, key, reply.request, answer, reply.at, reply.late)
