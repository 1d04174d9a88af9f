"""Payouts, payments and webhooks over the control API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Annotated, TypeVar

from msgspec import Meta

from .._common.json import JsonObject
from .._common.money import total
from .._common.scenario_words import UnknownWord
from .._controls import SandboxControls
from .._record_actions import USUAL_METHOD, find_payment
from .._records.records import PAYMENT_STATES, PAYOUT_STATES, PaymentRecord, PayoutRecord
from .._records.world import World
from .json_views import payment_view, payout_view, webhook_view
from .values import Limit, Refusal

R = TypeVar("R", PayoutRecord, PaymentRecord)
PayoutStatus = Annotated[str, Meta(description=f"only these: {', '.join(PAYOUT_STATES)}")]
PaymentStatus = Annotated[str, Meta(description=f"only these: {', '.join(PAYMENT_STATES)}")]
PaymentId = Annotated[str, Meta(description="the id of a payment, or of its checkout session")]
PayerOutcome = Annotated[str, Meta(description="complete unless given; fail:CUSTOMER_DECLINED, expire")]
RecordId = Annotated[str, Meta(description="the id of a payout, a payment or its checkout session")]


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
    """One delivery."""
    return webhook_view(sandbox.find_webhook(id))


def resend(sandbox: SandboxControls, id: str) -> JsonObject:
    """Deliver a webhook once more."""
    return webhook_view(sandbox.resend(id))


def forge(
    sandbox: SandboxControls, record: RecordId, event: str | None = None, url: str | None = None
) -> JsonObject:
    """Send an event of a record that did not happen."""
    try:
        return webhook_view(sandbox.forge(record, event, url=url))
    except UnknownWord as unknown:
        raise Refusal(400, str(unknown), "event") from unknown
    except ValueError as nowhere:
        raise Refusal(422, f"url: {nowhere}", "url") from nowhere
