"""Payouts, payments and webhooks over the control API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Annotated, Final, TypeVar

from msgspec import Meta

from .._common.json import JsonObject
from .._common.money import total
from .._common.scenario_words import UnknownWord, near
from .._controls import SandboxControls
from .._record_actions import USUAL_METHOD, find_payment
from .._records.records import PAYMENT_STATES, PAYOUT_STATES, PaymentRecord, PayoutRecord
from .._records.world import World
from .json_views import answered_webhook_view, payment_view, payout_view, webhook_view
from .values import Limit, Refusal

R = TypeVar("R", PayoutRecord, PaymentRecord)
PayoutStatus = Annotated[str, Meta(description=f"only these: {', '.join(PAYOUT_STATES)}")]
PaymentStatus = Annotated[str, Meta(description=f"only these: {', '.join(PAYMENT_STATES)}")]
PaymentId = Annotated[str, Meta(description="the id of a payment, or of its checkout session")]
PayerOutcome = Annotated[str, Meta(description="complete unless given; fail:CUSTOMER_DECLINED, expire")]
Record = Annotated[str, Meta(description="the id of a record, or its reference")]

_DECLINED: Final = "fail:CUSTOMER_DECLINED"


def newest_payouts(world: World, status: str = "") -> Iterator[PayoutRecord]:
    """Every key's payouts, newest first."""
    return _newest([tenant.payouts for tenant in world.tenants.values()], status)


def newest_payments(world: World, status: str = "") -> Iterator[PaymentRecord]:
    """Every key's payments, newest first."""
    return _newest([tenant.payments for tenant in world.tenants.values()], status)


def _newest(lists: Iterable[Sequence[R]], status: str) -> Iterator[R]:
    every = merge(*map(reversed, lists), key=attrgetter("created_at"), reverse=True)
    return (record for record in every if status in ("", record.status))


def payouts(
    sandbox: SandboxControls, status: PayoutStatus = "", limit: Limit = 50, reveal: bool = False
) -> JsonObject:
    """Payouts, newest first."""
    with sandbox.reading() as world:
        newest = islice(newest_payouts(world, status), limit)
        return {"payouts": [payout_view(one, reveal=reveal) for one in newest]}


def payout(sandbox: SandboxControls, id: str, reveal: bool = False) -> JsonObject:
    """One payout."""
    with sandbox.reading() as world:
        for tenant in world.tenants.values():
            if id in tenant.payouts_by_id:
                return payout_view(tenant.payouts_by_id[id], reveal=reveal)
    raise LookupError(f"no payout {id!r}")


def payments(
    sandbox: SandboxControls, status: PaymentStatus = "", limit: Limit = 50, reveal: bool = False
) -> JsonObject:
    """Payments, newest first, with their checkout session, attempts and refunds."""
    with sandbox.reading() as world:
        newest = islice(newest_payments(world, status), limit)
        return {"payments": [payment_view(one, reveal=reveal) for one in newest]}


def payment(sandbox: SandboxControls, id: PaymentId, reveal: bool = False) -> JsonObject:
    """One payment with its checkout session, attempts and refunds."""
    with sandbox.reading() as world:
        return payment_view(find_payment(world, id)[1], reveal=reveal)


def books(sandbox: SandboxControls) -> JsonObject:
    """What the service really paid out and collected, by currency, with the number of records in each status.
    Compare it with what the program believes.
    """
    with sandbox.reading():
        payouts, payments = sandbox.books.payouts(), sandbox.books.payments()
        collected = {one.currency: sandbox.books.collected(one.currency) for one in payments}
    lines: list[JsonObject] = []
    for currency in sorted({one.currency for one in payouts} | collected.keys()):
        own = [one for one in payouts if one.currency == currency]
        line = {
            "currency": currency,
            "paid_out": total(one.amount for one in own if one.status == "completed"),
            "on_its_way": total(one.amount for one in own if one.status in ("pending", "processing")),
            "collected": collected.get(currency, Decimal(0)),
            "payouts": dict(Counter(one.status for one in own)),
            "payments": dict(Counter(one.status for one in payments if one.currency == currency)),
        }
        lines.append(line)
    return {"books": lines}


def pay(
    sandbox: SandboxControls,
    id: PaymentId,
    method: str = USUAL_METHOD,
    phone: str | None = None,
    country: str | None = None,
    outcome: PayerOutcome | None = None,
) -> JsonObject:
    """Pay a payment as its payer, or answer the attempt that waits for one."""
    sandbox.pay(id, method=method, phone=phone, country=country, outcome=outcome)
    return payment(sandbox, id)


def refund(
    sandbox: SandboxControls, id: str, amount: Decimal | None = None, pending: bool = False
) -> JsonObject:
    """Refund a completed payment; all that is left unless an amount is given."""
    return {"id": sandbox.refund(id, amount, pending=pending)}


def webhooks(sandbox: SandboxControls, limit: Limit = 50) -> JsonObject:
    """Webhook deliveries, newest first: the event, where it went, each try with status or error, and why one
    was refused.
    """
    return {"webhooks": [webhook_view(one) for one in islice(reversed(sandbox.webhooks), limit)]}


def webhook(sandbox: SandboxControls, id: str) -> JsonObject:
    """One delivery, with what its receiver answered."""
    return answered_webhook_view(*sandbox.find_webhook(id))


def resend(sandbox: SandboxControls, id: str) -> JsonObject:
    """Deliver a webhook once more."""
    return webhook_view(sandbox.resend(id))


def forge(
    sandbox: SandboxControls, record: Record, event: str | None = None, url: str | None = None
) -> JsonObject:
    """Send an event of a record that did not happen."""
    with sandbox.changing() as world:
        record_id = _id_of(world, record, ("payout", "payment"))
    try:
        return webhook_view(sandbox.forge(record_id, event, url=url))
    except UnknownWord as unknown:
        raise Refusal(400, str(unknown), "event") from unknown
    except ValueError as nowhere:
        raise Refusal(422, f"url: {nowhere}", "url") from nowhere


def _id_of(world: World, name: str, kinds: Sequence[str]) -> str:
    """The id of the record: `name` itself, or that of the newest one of these kinds with this reference."""
    tenants = world.tenants.values()
    if "payout" in kinds and any(name in tenant.payouts_by_id for tenant in tenants):
        return name
    if "payment" in kinds and any(tenant.payment_of(name) for tenant in tenants):
        return name
    for payout in newest_payouts(world) if "payout" in kinds else ():
        if payout.reference == name:
            return payout.id
    for payment in newest_payments(world) if "payment" in kinds else ():
        if payment.reference == name:
            return payment.id
    raise LookupError(f"no {' or '.join(kinds)} {name!r}")


TRIGGERS: Final[Mapping[str, Callable[[SandboxControls, str], object]]] = {
    "payout.completed": lambda sandbox, id: sandbox.settle(id),
    "payout.failed": lambda sandbox, id: sandbox.settle(id, _DECLINED),
    "payment.completed": lambda sandbox, id: sandbox.pay(id, outcome="complete"),
    "payment.failed": lambda sandbox, id: sandbox.pay(id, outcome=_DECLINED),
    "payment.attempt.failed": lambda sandbox, id: sandbox.pay(id, outcome=_DECLINED),
    "payment.expired": lambda sandbox, id: sandbox.settle(id, "expire"),
    "payment.refunded": lambda sandbox, id: sandbox.refund(id),
}
"""The events, and what brings each about."""


Event = Annotated[str, Meta(description=", ".join(TRIGGERS))]


def trigger(sandbox: SandboxControls, event: Event, record: Record) -> JsonObject:
    """Bring about an event of a record: end, pay, decline, expire or refund it."""
    if event not in TRIGGERS:
        raise UnknownWord(f"no event {event!r} to bring about ({near(event, [*TRIGGERS])})")
    kind = event.partition(".")[0]
    with sandbox.reading() as world:
        record_id = _id_of(world, record, (kind,))
        if event == "payment.failed" and find_payment(world, record_id)[1].channel != "api":
            problem = f"{record_id} is a checkout's payment: its payer may try again, so it does not fail"
            raise Refusal(422, f"{problem}; trigger payment.attempt.failed or payment.expired", "event")
    TRIGGERS[event](sandbox, record_id)
    return payout(sandbox, record_id) if kind == "payout" else payment(sandbox, record_id)
