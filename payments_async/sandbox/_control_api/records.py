"""Payouts, payments and webhooks over the control API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from .._common.money import total
from .._common.scenario_words import UnknownWord
from .._record_actions import USUAL_METHOD, find_payment
from .._records.records import PaymentRecord, PayoutRecord
from .._records.world import World
from .._webhooks.address_guard import NotSent, read_target
from .arguments import ControlCall, Created, Refusal, invalid
from .json_views import answered_webhook_view, payment_view, payout_view, webhook_view

if TYPE_CHECKING:
    from .._controls import SandboxControls

R = TypeVar("R", PayoutRecord, PaymentRecord)
_SHOWN = 50


def newest_payouts(world: World, status: str | None = None) -> Iterator[PayoutRecord]:
    """Every key's payouts, newest first."""
    return _newest([tenant.payouts for tenant in world.tenants.values()], status)


def newest_payments(world: World, status: str | None = None) -> Iterator[PaymentRecord]:
    """Every key's payments, newest first."""
    return _newest([tenant.payments for tenant in world.tenants.values()], status)


def _newest(lists: Iterable[Sequence[R]], status: str | None) -> Iterator[R]:
    every = merge(*map(reversed, lists), key=attrgetter("created_at"), reverse=True)
    return (record for record in every if status in (None, record.status))


def payouts(sandbox: SandboxControls, call: ControlCall) -> object:
    """Payouts, newest first."""
    with sandbox.reading() as world:
        newest = islice(newest_payouts(world, call.query.get("status")), call.whole("limit", _SHOWN))
        return {"payouts": [payout_view(payout, reveal=call.reveals) for payout in newest]}


def payout(sandbox: SandboxControls, call: ControlCall) -> object:
    """One payout."""
    payout_id = call.path["id"]
    with sandbox.reading() as world:
        for tenant in world.tenants.values():
            if payout_id in tenant.payouts_by_id:
                return payout_view(tenant.payouts_by_id[payout_id], reveal=call.reveals)
    raise LookupError(f"no payout {payout_id!r}")


def payments(sandbox: SandboxControls, call: ControlCall) -> object:
    """Payments, newest first, with their checkout session, attempts and refunds."""
    with sandbox.reading() as world:
        newest = islice(newest_payments(world, call.query.get("status")), call.whole("limit", _SHOWN))
        return {"payments": [payment_view(payment, reveal=call.reveals) for payment in newest]}


def payment(sandbox: SandboxControls, call: ControlCall) -> object:
    """One payment with its checkout session, attempts and refunds."""
    with sandbox.reading() as world:
        return payment_view(find_payment(world, call.path["id"])[1], reveal=call.reveals)


def books(sandbox: SandboxControls, _: ControlCall) -> object:
    """What the service really paid out and collected, by currency, with the number of records in each status.
    Compare it with what the program believes.
    """
    with sandbox.reading():
        payouts, payments = sandbox.books.payouts(), sandbox.books.payments()
        currencies = sorted({one.currency for one in payouts} | {one.currency for one in payments})
        collected = {currency: sandbox.books.collected(currency) for currency in currencies}
    return {
        "books": [
            {
                "currency": currency,
                "paid_out": total(one.amount for one in own if one.status == "completed"),
                "on_its_way": total(one.amount for one in own if one.status in ("pending", "processing")),
                "collected": collected[currency],
                "payouts": dict(Counter(one.status for one in own)),
                "payments": dict(Counter(one.status for one in payments if one.currency == currency)),
            }
            for currency in currencies
            for own in [[one for one in payouts if one.currency == currency]]
        ]
    }


def pay(sandbox: SandboxControls, call: ControlCall) -> object:
    """Pay a payment as its payer, or answer the attempt that waits for one."""
    sandbox.pay(
        call.path["id"],
        method=call.text("method", USUAL_METHOD),
        phone=call.text_or_none("phone"),
        country=call.text_or_none("country"),
        outcome=call.text_or_none("outcome"),
    )
    return payment(sandbox, call)


def refund(sandbox: SandboxControls, call: ControlCall) -> object:
    """Refund a completed payment."""
    amount = call.number("amount") if call.body.get("amount") is not None else None
    return Created({"id": sandbox.refund(call.path["id"], amount, pending=call.flag("pending"))})


def settle(sandbox: SandboxControls, call: ControlCall) -> object:
    """End a record now: complete, fail:CODE, expire."""
    outcome = call.text("outcome", "complete")
    sandbox.settle(call.path["id"], outcome)
    return {"id": call.path["id"], "outcome": outcome}


def hold(sandbox: SandboxControls, call: ControlCall) -> object:
    """Hold a record, so that it no longer ends by itself."""
    sandbox.hold(call.path["id"])
    return {"id": call.path["id"], "outcome": "hang"}


def webhooks(sandbox: SandboxControls, call: ControlCall) -> object:
    """Webhook deliveries, newest first: the event, where it went, each try with status or error, and why one
    was refused.
    """
    newest = islice(reversed(sandbox.webhooks), call.whole("limit", _SHOWN))
    return {"webhooks": [webhook_view(webhook) for webhook in newest]}


def webhook(sandbox: SandboxControls, call: ControlCall) -> object:
    """Show one delivery, with what its receiver answered."""
    return answered_webhook_view(*sandbox.find_webhook(call.path["id"]))


def resend(sandbox: SandboxControls, call: ControlCall) -> object:
    """Deliver a webhook once more."""
    webhook_id = call.path["id"]
    _check_address(sandbox, webhook_id)
    return Created(webhook_view(sandbox.resend(webhook_id)))


def _check_address(sandbox: SandboxControls, webhook_id: str) -> None:
    """`Refusal` 409 for a delivery whose address would only be refused again."""
    for webhook in sandbox.webhooks:
        if webhook.id == webhook_id:
            try:
                read_target(webhook.url, sandbox._allowed)
            except NotSent as refused:
                raise Refusal(409, f"refused: {refused}") from refused


def _id_of(world: World, name: str) -> str:
    """The id of the record: `name` itself, or that of the newest payout or payment of this reference."""
    if any(name in tenant.payouts_by_id or tenant.payment_of(name) for tenant in world.tenants.values()):
        return name
    for records in (newest_payouts(world), newest_payments(world)):
        for record in records:
            if record.reference == name:
                return record.id
    return name


def forge(sandbox: SandboxControls, call: ControlCall) -> object:
    """Send an event of a record (by id or reference) that did not happen."""
    record, event, url = call.text("record"), call.text_or_none("event"), call.text_or_none("url")
    with sandbox.changing() as world:
        record = _id_of(world, record)
    try:
        return Created(webhook_view(sandbox.forge(record, event, url=url)))
    except UnknownWord as unknown:
        raise Refusal(400, str(unknown), {"field": "event"}) from unknown
    except ValueError as nowhere:
        raise invalid("url", str(nowhere)) from nowhere
