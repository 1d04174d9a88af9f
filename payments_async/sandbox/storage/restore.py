"""A state's parts back into a service: bytes of whatever origin become records, timers and plain values."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from ..api.core import Core
from ..common.rate_limits import KeyLimits
from ..common.values import Answer
from ..records.idempotency import StoredAnswer as Reply
from ..records.records import AttemptRecord, CheckoutRecord, PaymentRecord, PayoutRecord, RefundRecord
from ..records.tenants import Tenant, read_allowlist
from ..records.world import Step
from ..webhooks.queue import WebhookQueue
from .checks import check
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
    StoredPayment,
    StoredPayout,
    StoredTimer,
    Timers,
    Turns,
    Webhooks,
    decode_part,
)
from .snapshot import STEPS


class Unreadable(ValueError):
    """Bytes that are no state of this version's making."""


def thaw(core: Core, parts: Iterable[bytes]) -> tuple[WebhookQueue, str, float]:
    """Bring a fresh core to a state; gives the courier, the first API key and the time. `Unreadable`."""
    try:
        return _Thawing(core).read(map(decode_part, parts))
    except Exception as damage:
        raise Unreadable("the state in the file cannot be read") from damage


class _Thawing:
    """Puts a state together. A record that is referred to before its part comes is blank until then."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._world = core.world
        self._courier = WebhookQueue()
        self._records: dict[tuple[type, str], Any] = {}
        self._blank: set[tuple[type, str]] = set()
        self._tenants: dict[str, Tenant] = {}

    def read(self, parts: Iterator[Part]) -> tuple[WebhookQueue, str, float]:
        head = next(parts)
        if not isinstance(head, Head):
            raise Unreadable("the first part is no head")
        self._begin(head)
        for part in parts:
            self._add(part)
        if self._blank:
            raise Unreadable(f"{len(self._blank)} records are missing")
        self._order(head)
        return self._courier, head.api_key, head.now

    def _begin(self, head: Head) -> None:
        world, courier = self._world, self._courier
        for each in head.tenants:
            allowlist = read_allowlist(each.allowlist)
            meter = KeyLimits(world.limits)
            tenant = Tenant(each.fingerprint, each.status, allowlist, meter, each.revoked)
            self._tenants[each.fingerprint] = world.tenants[each.key] = tenant
        if head.api_key not in world.tenants or len(world.tenants) < len(head.tenants):
            raise Unreadable("keys that are missing or there twice")
        world.chance.go_on_from(head.chance)
        world.has_receivers, world._serial = head.has_receivers, head.serial
        courier._busy, courier._held = head.busy, head.held
        courier._accepted, courier._pushed = head.accepted, head.pushed
        self._core.served = head.served

    def _order(self, head: Head) -> None:
        """Bring what is still to happen into order; what was under way is due again."""
        timers, courier = self._world._timers, self._courier
        serials = {serial for _, serial, _ in timers}
        if len(serials) < len(timers) or max(serials, default=0) > head.serial:
            raise Unreadable("timers that cannot be told apart")
        named = (*courier._over, *(each for held in head.held.values() for each in held))
        if not courier._all.keys() >= set(named):
            raise Unreadable("webhooks are missing")
        heapq.heapify(timers)
        heapq.heapify(courier._queue)
        courier.put_back(head.now)
        if courier._busy:
            raise Unreadable("a try is under way of no webhook")

    def _add(self, part: Part) -> None:
        match part:
            case Timers():
                self._world._timers.extend((each.at, each.serial, self._step(each)) for each in part.timers)
            case Webhooks():
                self._courier._all.update((webhook.id, webhook) for webhook in part.webhooks)
            case EndedDeliveries():
                self._courier._over.extend(part.ids)
            case Queue():
                self._courier._queue.extend(part.entries)
            case Head():
                raise Unreadable("a second head")
            case _:
                self._add_to(self._tenants[part.owner], part)

    def _add_to(
        self,
        tenant: Tenant,
        part: PayoutsPart | PaymentsPart | Attempts | Sessions | Replies | Turns | Customers,
    ) -> None:
        match part:
            case PayoutsPart():
                self._add_payouts(tenant, part.records)
            case PaymentsPart():
                payments = [self._filled(PaymentRecord, each) for each in part.records]
                tenant.payments.extend(payments)
                tenant.payments_by_id.update((payment.id, payment) for payment in payments)
            case Attempts():
                tenant.attempts.update((each.id, self._filled(AttemptRecord, each)) for each in part.records)
            case Sessions():
                tenant.sessions.update((each.id, self._filled(CheckoutRecord, each)) for each in part.records)
            case Replies():
                for each in part.replies:
                    answer = Answer(each.status, each.headers, each.body)
                    tenant.replies._stored[each.key] = Reply(each.request, answer, each.until, each.ready_at)
            case Turns():
                tenant.turns.update(((words, identity), count) for words, identity, count in part.turns)
            case _:
                tenant.customers.update(part.ids)

    def _add_payouts(self, tenant: Tenant, stored: Sequence[StoredPayout]) -> None:
        payouts = [self._filled(PayoutRecord, each) for each in stored]
        tenant.payouts.extend(payouts)
        tenant.payouts_by_id.update((payout.id, payout) for payout in payouts)
        named = ((payout.reference, payout) for payout in payouts if payout.reference is not None)
        tenant.payouts_by_reference.update(named)

    def _filled(self, kind: type, stored: Any) -> Any:
        check(stored)
        record = self._record(kind, stored.id)
        self._blank.remove((kind, stored.id))
        for name, value in self._fields(record, stored).items():
            object.__setattr__(record, name, value)
        return record

    def _fields(self, record: Any, stored: StatePart) -> dict[str, object]:
        """What a record's fields are, other records in place of their ids."""
        fields = {name: getattr(stored, name) for name in stored.__struct_fields__}
        if isinstance(stored, StoredPayment):
            fields["site"] = self._world
            fields["session"] = (
                None if stored.session is None else self._record(CheckoutRecord, stored.session)
            )
            fields["attempts"] = tuple(self._record(AttemptRecord, each) for each in stored.attempts)
            fields["refunds"] = tuple(
                RefundRecord(each.id, record, each.amount, each.pending) for each in stored.refunds
            )
        elif not isinstance(stored, StoredPayout):
            fields["payment"] = self._record(PaymentRecord, fields["payment"])
        return fields

    def _record(self, kind: type, record_id: str) -> Any:
        name = kind, record_id
        if name not in self._records:
            self._records[name] = object.__new__(kind)
            self._blank.add(name)
        return self._records[name]

    def _step(self, timer: StoredTimer) -> Step:
        function, kind = STEPS[timer.step]
        record = self._record(kind, timer.record)
        if kind is AttemptRecord:
            return partial(function, self._world, self._tenants[record.payment.key], record)
        return partial(function, self._world, record)
