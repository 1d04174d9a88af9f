"""The page of one payment, payout or webhook: what it is, what can be done, and what happened to it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from urllib.parse import unquote, urlencode

from .._checkout import PAGES as CHECKOUT
from .._common.masking import address
from .._common.operations import CONSOLE
from .._common.patterns import escaped
from .._common.timestamps import stamp
from .._control_api.failure_reasons import reason
from .._control_api.json_views import try_views, webhook_view
from .._records.records import PaymentRecord, PayoutRecord
from .._records.world import World
from .._webhooks import Webhook
from ..advisor._webhooks import READ_BACK_WITHIN, first_read
from . import record_views
from .activity import moment_of
from .filters import middle, state_of
from .page_request import Context, PageRequest
from .timeline import (
    TimelineSubject,
    bodies_from,
    entries_about,
    payment_subject,
    payout_subject,
    timeline,
)

_NODES = 32
"""Nodes of a timeline on one page."""
_TRIES = 20
"""Tries of a webhook, the latest of them."""


def payment(page: PageRequest, name: str) -> Context | str:
    """The page of a payment; its address for another of its names. `LookupError`."""
    with page.sandbox.reading() as world:
        record = _payment(world, unquote(name))
        subject, card, session = payment_subject(record), record_views.payment_card(record), record.session
    if record.id != name:
        return f"{CONSOLE}payments/{record.id}"
    return {
        "view": _view(page, record, subject),
        "title": f"Payment {middle(record_views.own_name(record))}",
        "payment": card,
        "session": None if session is None else {"id": session.id, "href": CHECKOUT + session.id},
    }


def payout(page: PageRequest, name: str) -> Context | str:
    """The page of a payout; its address for its reference, or that of the list of several. `LookupError`."""
    with page.sandbox.reading() as world:
        record, *others = _payouts(world, unquote(name))
        subject, card = payout_subject(record), record_views.payout_card(record)
    if others:
        return f"{CONSOLE}payouts?{urlencode({'name': escaped(unquote(name))})}"
    if record.id != name:
        return f"{CONSOLE}payouts/{record.id}"
    title = f"Payout {middle(record.reference or record.id)}"
    return {"view": _view(page, record, subject), "title": title, "payout": card}


def webhook(page: PageRequest, name: str) -> Context:
    """The page of a webhook, with the tries of all that were sent again for it. `LookupError`."""
    sandbox = page.sandbox
    delivery, _ = sandbox.find_webhook(name)
    family = _sent_again(sandbox.webhooks, delivery)
    tries = [
        {**one, "webhook": sent.id} for sent in family for one in try_views(*sandbox.find_webhook(sent.id))
    ]
    return {
        "title": f"Webhook {delivery.id}",
        "hook": webhook_view(delivery),
        "state": state_of(delivery),
        "again": [one.id for one in family if one.repeats == delivery.id][-_TRIES:],
        "tries": sorted(tries, key=lambda one: str(one["at"]))[-_TRIES:],
        "earlier": max(0, len(tries) - _TRIES),
        "trusted": _read_back(page, delivery) if delivery.origin == "forged" else None,
    }


def _sent_again(webhooks: Sequence[Webhook], delivery: Webhook) -> list[Webhook]:
    """The delivery, the one it was sent again for, and all that were sent again for either."""
    origin, family = {delivery.id: delivery.id}, [delivery]
    for one in webhooks:  # oldest first
        origin[one.id] = origin.get(one.repeats or "", one.id) if one.origin == "resent" else one.id
    return [one for one in webhooks if origin[one.id] == origin[delivery.id]] or family


def _read_back(page: PageRequest, forged: Webhook) -> Context | None:
    """Whether the receiver of a forged webhook read the record; None while it did not accept it."""
    accepted = next((one.at for one in forged.tries if one.is_success), None)
    if accepted is None:
        return None
    with page.sandbox.reading() as world:
        read = first_read(page.sandbox.journal.newest_exchanges(), forged.record_id, accepted)
        until = accepted + READ_BACK_WITHIN
        return {
            "by": read and read.request_id,
            "after": read and read.at - accepted,
            "until": until if world.now < until else None,
        }


def _view(page: PageRequest, record: PayoutRecord | PaymentRecord, subject: TimelineSubject) -> Context:
    """What the pages of payments and payouts share: the timeline, and how the record was made."""
    with page.sandbox.reading() as world:
        why = partial(reason, limits=world.limits)
        webhooks = [one for one in page.sandbox.webhooks if one.record_id == record.id]
        journal = page.sandbox.journal
        indexed, oldest = journal.about(*subject.indexed), journal.oldest
        numbers, items = journal.kept()
    story = timeline(subject, entries_about(subject, indexed, items, numbers), webhooks, why)
    asked = page.query.get("after", "")
    after = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 9 else 0
    return {
        "nodes": story.nodes[after : after + _NODES],
        "after": after,
        "next": after + _NODES,
        "more": max(0, len(story.nodes) - after - _NODES),
        "is_whole": story.is_whole,
        "held_from": moment_of(oldest) if oldest else None,
        "bodies_from": bodies_from(subject, items),
        "url": record.webhook_url and address(record.webhook_url),
        "key": record.key,
        "idempotency_key": record.idempotency_key,
        "created_at": stamp(record.created_at),
    }


def _payment(world: World, name: str) -> PaymentRecord:
    """The payment of this id, of this checkout or attempt, or of this reference; `LookupError`."""
    for tenant in world.tenants.values():
        if (payment := tenant.payment_of(name)) is not None:
            return payment
        if name in tenant.attempts:
            return tenant.attempts[name].payment
    for tenant in world.tenants.values():
        for payment in tenant.payments:
            if payment.reference == name:
                return payment
    raise LookupError(f"no payment {name!r}")


def _payouts(world: World, name: str) -> list[PayoutRecord]:
    """The payout of this id, else those of this reference, one of each key at most; `LookupError`."""
    tenants = world.tenants.values()
    by_id = [payout for tenant in tenants if (payout := tenant.payouts_by_id.get(name))]
    by_reference = [payout for tenant in tenants if (payout := tenant.payouts_by_reference.get(name))]
    if not (by_id or by_reference):
        raise LookupError(f"no payout {name!r}")
    return by_id or by_reference
