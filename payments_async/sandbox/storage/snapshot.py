"""The service's state as bytes: keys, records, timers, idempotency stores, waiting webhooks.

Not kept: rules, the request log and the journal, which are a session's; counts of the rate limits, which a
restart empties. Profile and limits are those that the sandbox is started with.

A state is a head and parts (`parts`). `Snapshot` copies the containers of one moment, and then gives part
after part, a millisecond or two of work each, while the service goes on in between: records are copied
before they change (`records/copy_on_write.py`), and all else that a state holds is never changed but
replaced. `restore` reads the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import attrs

from ..api.core import Core
from ..records import payments, payouts
from ..records.copy_on_write import Images
from ..records.idempotency import StoredAnswer as Reply
from ..records.records import AttemptRecord, CheckoutRecord, PaymentRecord, PayoutRecord, RefundRecord
from ..records.tenants import Tenant
from ..records.world import Step
from ..webhooks.queue import WebhookQueue
from .parts import (
    Attempts,
    Customers,
    EndedDeliveries,
    Head,
    Part,
    PaymentsPart,
    PayoutsPart,
    Queue,
    Replies,
    Sessions,
    StatePart,
    StepName,
    StoredAttempt,
    StoredPayment,
    StoredPayout,
    StoredRefund,
    StoredReply,
    StoredSession,
    StoredTenant,
    StoredTimer,
    Timers,
    Turns,
    Webhooks,
    encode_part,
)

SIZE: Final = 100
"""Records, answers, timers or webhooks in a part: 1 to 2 ms of work."""

STEPS: Final[Mapping[StepName, tuple[Callable[..., None], type]]] = {
    "payment.expire": (payments._expire_at, PaymentRecord),
    "attempt.end": (payments._end, AttemptRecord),
    "payout.process": (payouts._process, PayoutRecord),
    "payout.end": (payouts._end, PayoutRecord),
}
"""What timers do, and to which kind of record."""

_STORED: Final[Mapping[type, type[StatePart]]] = {
    PayoutRecord: StoredPayout,
    PaymentRecord: StoredPayment,
    AttemptRecord: StoredAttempt,
    CheckoutRecord: StoredSession,
}
_FIELDS: Final = {kind: tuple(field.name for field in attrs.fields(kind)) for kind in _STORED}
_STEP_NAMES: Final = {function: name for name, (function, _) in STEPS.items()}

Make = Callable[[list[Any]], Part]
"""Makes a part of some of the things that were copied."""


class Snapshot:
    """The state of one moment. Made under the sandbox's lock; `close` it in the end."""

    def __init__(self, core: Core, courier: WebhookQueue, api_key: str, now: float) -> None:
        """`now` is the sandbox's time."""
        world = core.world
        self._head = encode_part(_head(core, courier, api_key, now))
        self._copies: list[tuple[list[Any], Make]] = [
            *(copy for tenant in world.tenants.values() for copy in self._of_tenant(tenant)),
            (list(world._timers), lambda some: Timers([_timer(*each) for each in some])),
            (list(courier._all.values()), Webhooks),
            (list(courier._over), EndedDeliveries),
            (list(courier._queue), Queue),
        ]
        self._images = Images()

    def parts(self) -> Iterator[bytes]:
        """The head, and then the rest. Ask for each under the sandbox's lock."""
        yield self._head
        for things, make in self._copies:
            for start in range(0, len(things), SIZE):
                yield encode_part(make(things[start : start + SIZE]))

    def close(self) -> None:
        """Records need not be copied for this one any more."""
        self._images.close()

    def _of_tenant(self, tenant: Tenant) -> Iterator[tuple[list[Any], Make]]:
        owner = tenant.fingerprint
        yield list(tenant.payouts), lambda some: PayoutsPart(owner, self._stored(some))
        yield list(tenant.payments), lambda some: PaymentsPart(owner, self._stored(some))
        yield list(tenant.attempts.values()), lambda some: Attempts(owner, self._stored(some))
        yield list(tenant.sessions.values()), lambda some: Sessions(owner, self._stored(some))
        yield (
            list(tenant.replies._stored.items()),
            lambda some: Replies(owner, [_reply(*each) for each in some]),
        )
        yield (
            list(tenant.turns.items()),
            lambda some: Turns(owner, [(*place, count) for place, count in some]),
        )
        yield list(tenant.customers.items()), lambda some: Customers(owner, dict(some))

    def _stored(self, records: list[Any]) -> list[Any]:
        return [self._record(record) for record in records]

    def _record(self, record: Any) -> StatePart:
        kind = type(record)
        values = dict(zip(_FIELDS[kind], self._images.take(record), strict=True))
        values.pop("site", None)
        return _STORED[kind](**{name: _value(value) for name, value in values.items()})


def _head(core: Core, courier: WebhookQueue, api_key: str, now: float) -> Head:
    world = core.world
    return Head(
        api_key=api_key,
        now=now,
        served=core.served,
        chance=world.chance.state,
        has_receivers=world.has_receivers,
        serial=world._serial,
        tenants=[_tenant(key, tenant) for key, tenant in world.tenants.items()],
        busy=courier._busy,
        held=courier._held,
        accepted=courier._accepted,
        pushed=courier._pushed,
    )


def _tenant(key: str, tenant: Tenant) -> StoredTenant:
    allowlist = None if tenant.allowlist is None else [str(network) for network in tenant.allowlist]
    return StoredTenant(key, tenant.fingerprint, tenant.status, allowlist, tenant.revoked)


def _value(value: object) -> object:
    """A record's field as it is stored."""
    if isinstance(value, (PaymentRecord, AttemptRecord, CheckoutRecord)):
        return value.id
    if isinstance(value, RefundRecord):
        return StoredRefund(value.id, value.amount, value.pending)
    return [_value(each) for each in value] if isinstance(value, tuple) else value


def _reply(key: str, reply: Reply) -> StoredReply:
    answer = reply.answer
    return StoredReply(
        key, reply.request, answer.status, dict(answer.headers), answer.body, reply.until, reply.ready_at
    )


def _timer(at: float, serial: int, step: Step) -> StoredTimer:
    assert isinstance(step, partial)
    return StoredTimer(at, serial, _STEP_NAMES[step.func], step.args[-1].id)
