"""Restores a service from a state's rows: bytes become records, timers and plain values.

A file may come from anywhere. Bytes are read into the types of `rows` and nothing else, and a record has to
be one that the service could have made, so that no file makes it fail or hang later.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeVar

import msgspec

from .._api.core import Core
from .._api.field_checks import LARGEST, Breaches, check_members
from .._api.request_schemas import PAYOUT
from .._common.json import decode_object
from .._common.rate_limits import KeyLimits
from .._common.scenario_words import ACTION_TYPES, MOST_COPIES, MOST_FAILOVERS, HookWords
from .._common.values import Answer
from .._records.idempotency import StoredAnswer
from .._records.records import (
    ATTEMPT_STATES,
    PAYMENT_STATES,
    PAYOUT_STATES,
    AttemptRecord,
    CheckoutRecord,
    PaymentRecord,
    PayoutRecord,
    Plan,
    RefundRecord,
)
from .._records.tenants import Tenant, read_allowlist
from .._records.world import Timer
from .._webhooks import Webhook
from .._webhooks.retry_schedule import WebhookQueue
from .rows import (
    KINDS,
    STEPS,
    StateRow,
    StoredReply,
    StoredState,
    StoredTenant,
    StoredTimer,
)

R = TypeVar("R", PayoutRecord, PaymentRecord, AttemptRecord)

_DECIMALS = 1_000_000
"""Decimals of an amount at most: more than a request body can hold."""

_decoders: Final[Mapping[str, msgspec.json.Decoder[Any]]] = {
    kind: msgspec.json.Decoder(form, float_hook=Decimal) for kind, form in KINDS.items()
}


class Unreadable(ValueError):
    """The rows are not a state that this version has written."""


def restore(core: Core, rows: Iterable[StateRow]) -> tuple[WebhookQueue, str, float]:
    """Bring a fresh core to a state; gives the webhooks, the first API key and the time. `Unreadable`."""
    try:
        state, *stored = [_decoders[kind].decode(body) for kind, body in rows]
        return _Restoring(core, state).read(stored)
    except Exception as damage:
        raise Unreadable("the state in the file cannot be read") from damage


class _Restoring:
    """Restores a state step by step: keys, then records, then timers and webhooks."""

    def __init__(self, core: Core, state: StoredState) -> None:
        self._core = core
        self._world = core.world
        self._state = state
        self._tenants: dict[str, Tenant] = {}
        self._webhooks: dict[str, Webhook] = {}
        self._records: dict[str, PayoutRecord | PaymentRecord | AttemptRecord] = {}

    def read(self, rows: Iterable[object]) -> tuple[WebhookQueue, str, float]:
        state, world = self._state, self._world
        for tenant in state.tenants:
            self._add_tenant(tenant)
        if state.api_key not in world.tenants or len(world.tenants) < len(state.tenants):
            raise Unreadable("keys that are missing or there twice")
        for row in rows:
            self._add(row)
        self._sort_attempts()
        self._set_timers()
        world.chance.restore(state.chance)
        world.has_receivers = state.has_receivers
        self._core.served = state.served
        return self._queue(), state.api_key, state.now

    def _add_tenant(self, stored: StoredTenant) -> None:
        tenant = Tenant(
            stored.fingerprint,
            stored.status,
            read_allowlist(stored.allowlist),
            KeyLimits(self._world.limits),
            stored.revoked,
            customers=stored.customers,
            turns={(words, identity): count for words, identity, count in stored.turns},
        )
        self._tenants[stored.fingerprint] = self._world.tenants[stored.key] = tenant

    def _add(self, row: Any) -> None:
        match row:
            case PayoutRecord():
                self._add_payout(self._tenants[row.key], row)
            case StoredReply():
                tenant, first = self._tenants[row.owner], row.answer
                answer = tenant.payouts_by_id[first] if isinstance(first, str) else Answer(*first)
                tenant.replies._stored[row.key] = StoredAnswer(row.request, answer, row.at, row.late)
            case Webhook():
                self._webhooks[row.id] = row
            case StoredState():
                raise Unreadable("a second first row")
            case _:
                self._add_payment(self._tenants[row.key], row)

    def _add_payout(self, tenant: Tenant, payout: PayoutRecord) -> None:
        _check(payout.status in PAYOUT_STATES)
        _check_amount(payout.amount)
        _check_plan(payout.plan)
        _check_hooks(payout.hooks)
        _check_body(payout.body)
        tenant.payouts.append(payout)
        tenant.payouts_by_id[payout.id] = self._keep(payout)
        if payout.reference is not None:
            tenant.payouts_by_reference[payout.reference] = payout

    def _add_payment(self, tenant: Tenant, stored: Any) -> None:
        _check(stored.status in PAYMENT_STATES)
        _check_amount(stored.amount)
        _check_plan(stored.plan)
        _check_hooks(stored.hooks)
        fields = {**_fields(stored), "session": None, "attempts": (), "refunds": ()}
        payment = PaymentRecord(**fields, site=self._world)
        if stored.session is not None:
            payment.session = CheckoutRecord(payment=payment, **_fields(stored.session))
            tenant.sessions[payment.session.id] = payment.session
        for refund in stored.refunds:
            _check_amount(refund.amount)
            payment.refunds += (RefundRecord(payment=payment, **_fields(refund)),)
        for attempt in stored.attempts:
            payment.attempts += (self._add_attempt(tenant, payment, attempt),)
        tenant.payments.append(payment)
        tenant.payments_by_id[payment.id] = self._keep(payment)

    def _add_attempt(self, tenant: Tenant, payment: PaymentRecord, stored: Any) -> AttemptRecord:
        _check(stored.status in ATTEMPT_STATES)
        _check(stored.failovers_left <= MOST_FAILOVERS)
        _check_plan(stored.plan)
        attempt = AttemptRecord(payment=payment, **_fields(stored))
        tenant.attempts[attempt.id] = self._keep(attempt)
        return attempt

    def _keep(self, record: R) -> R:
        """Keep a record for the timers; two of one id would count twice in the books."""
        _check(record.id not in self._records)
        self._records[record.id] = record
        return record

    def _sort_attempts(self) -> None:
        """Sort attempts as they were made, oldest first; the rows have them by payment."""
        for tenant in self._tenants.values():
            tenant.attempts = dict(sorted(tenant.attempts.items(), key=lambda item: item[1].created_at))

    def _set_timers(self) -> None:
        timers = [self._timer(timer) for timer in self._state.timers]
        serials = {timer[1] for timer in timers}
        if len(serials) < len(timers) or max(serials, default=0) > self._state.serial:
            raise Unreadable("timers with one number")
        heapq.heapify(timers)
        self._world._timers, self._world._serial = timers, self._state.serial

    def _timer(self, timer: StoredTimer) -> Timer:
        function, kind = STEPS[timer.step]
        record = self._records[timer.record]
        _check(isinstance(record, kind))
        if isinstance(record, AttemptRecord):
            return timer.at, timer.serial, function, self._tenants[record.payment.key], record
        return timer.at, timer.serial, function, record

    def _queue(self) -> WebhookQueue:
        """Restore the queue of deliveries; tries that were running are due again."""
        state = self._state
        _check(self._webhooks.keys() >= {*state.over, *(each for ids in state.held.values() for each in ids)})
        queue = WebhookQueue(
            all=self._webhooks,
            over=deque(state.over),
            queue=state.queue,
            busy=state.busy,
            held=state.held,
            accepted=state.accepted,
            pushed=state.pushed,
        )
        heapq.heapify(queue._queue)
        queue.put_back(state.now)
        _check(not queue._busy)
        return queue


def _fields(stored: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(stored, name) for name in stored.__struct_fields__}


def _check(is_possible: bool) -> None:
    if not is_possible:
        raise Unreadable("a record that the service could not have made")


def _check_body(body: bytes) -> None:
    breaches = Breaches(0.0)
    check_members(decode_object(body), PAYOUT, "", breaches)
    _check(not breaches.errors)


def _check_amount(amount: Decimal) -> None:
    """Refuse an amount with a large exponent: it could be printed as a gigabyte."""
    _check(amount.is_finite() and 0 < amount <= LARGEST and int(amount.as_tuple().exponent) > -_DECIMALS)


def _check_plan(plan: Plan | None) -> None:
    if plan is not None:
        _check(plan.outcome.kind != "action" or plan.outcome.action in ACTION_TYPES)
        _check(plan.outcome.count <= MOST_FAILOVERS)


def _check_hooks(hooks: HookWords) -> None:
    _check(all(word.count <= MOST_COPIES for word in hooks))
