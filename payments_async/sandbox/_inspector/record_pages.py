"""The pages of payments, payouts and webhooks: their lists, and one record with its timeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final, TypeVar
from urllib.parse import unquote

import attrs

from .._checkout import PAGES as CHECKOUT
from .._checkout.next_action import ON_PHONE
from .._common.iso_codes import currency
from .._common.json import decode_object, object_or_null
from .._common.masking import address, hide, mask_text
from .._common.operations import CONSOLE
from .._control_api.json_views import payment_view, payout_view, plan_words, webhook_view
from .._control_api.records import newest_payments, newest_payouts
from .._records.emit_webhook import ATTEMPT_EVENTS, PAYMENT_EVENTS, PAYOUT_EVENTS
from .._records.payment_json import ACTIONS
from .._records.records import PaymentRecord, PayoutRecord
from .._records.world import World
from .._webhooks import Webhook, WebhookTry
from .filters import moment
from .log import RecordNames, is_of, joined, lines, traces_of
from .page_request import Context, PageRequest

T = TypeVar("T", PaymentRecord, PayoutRecord, Webhook)

EVENTS: Final = (*PAYMENT_EVENTS, *ATTEMPT_EVENTS, *PAYOUT_EVENTS)
_ROWS: Final = 25
_LINES: Final = 60  # lines of a timeline on one page
_PLACES: Final = {
    **dict.fromkeys(ON_PHONE, "phone"),
    "redirect_to_url": "bank",
    "embed_iframe": "frame",
    "display_payment_instructions": "bank",
    "complete_with_sdk": "provider",
}
"""The page where the payer acts, by the next action."""


@attrs.frozen
class RecordRow:
    """One line of a list of records."""

    id: str
    name: str  # the program's own name for it, else the service's
    status: str
    at: float
    about: str  # method, event, address
    last: str  # the last answer, or what comes next
    amount: str = ""
    place: str = ""  # the address of the page where the payer's answer is waited for
    card: Context = attrs.field(factory=dict)  # what its buttons need


# Lists


def payments(page: PageRequest) -> Context:
    with page.sandbox.reading() as world:
        every = list(newest_payments(world))
    return _list(page, every, lambda one: one.status, _texts_of_payment, _payment_row)


def payouts(page: PageRequest) -> Context:
    with page.sandbox.reading() as world:
        every = list(newest_payouts(world))
    row_key = page.sandbox.row_key

    def texts(one: PayoutRecord) -> Sequence[str | None]:
        return one.id, one.reference, one.idempotency_key, row_key(one.reference or "")

    return _list(page, every, lambda one: one.status, texts, partial(_payout_row, row_key=row_key))


def webhooks(page: PageRequest) -> Context:
    every = page.sandbox.webhooks[::-1]
    with page.sandbox.reading() as world:
        names = RecordNames(world, page.sandbox.row_key)

    def texts(one: Webhook) -> Sequence[str]:
        return one.id, *names.texts(one.record_id), address(one.url)

    row = partial(_webhook_row, names=names)
    return _list(page, every, state_of, texts, row) | {"events": EVENTS}


def _list(
    page: PageRequest,
    every: Sequence[T],
    status: Callable[[T], str],
    texts: Callable[[T], Iterable[str | None]],
    row: Callable[[T], RecordRow],
) -> Context:
    """Those of a status that fit a search, from where the page begins, and how many of each status fit."""
    text, wanted = page.find.lower(), page.query.get("status", "")
    found = [one for one in every if not text or any(text in (own or "").lower() for own in texts(one))]
    newest = iter(found)
    # one that has another status by now, or is too new for this page, keeps the place where the page begins
    if page.before and not any(one.id == page.before for one in newest):
        raise LookupError(f"{page.before!r} is not in this list any more")
    shown = list(islice((one for one in newest if wanted in ("", status(one))), _ROWS + 1))
    return {
        "rows": [row(one) for one in shown[:_ROWS]],
        "last": shown[_ROWS - 1].id if len(shown) > _ROWS else "",
        "total": len(every),
        "wanted": wanted,
        "statuses": {**dict.fromkeys([wanted] if wanted else [], 0), **Counter(map(status, found))},
    }


def _texts_of_payment(one: PaymentRecord) -> Iterator[str | None]:
    yield from (one.id, one.reference, one.idempotency_key, own_name(one))
    yield one.session.id if one.session else None
    yield from (attempt.id for attempt in one.attempts)


def own_name(payment: PaymentRecord) -> str:
    """The program's own name for a payment, its order or description; else the service's reference."""
    pairs = object_or_null(payment.body, "metadata") or {}
    texts = (payment.body.get("description"), *(pairs[name] for name in pairs if "order" in name.lower()))
    named = (payment.body.get("entity_id"), *(mask_text(text) for text in texts if isinstance(text, str)))
    return next((one for one in named if isinstance(one, str) and one), payment.reference)


def _payment_row(payment: PaymentRecord) -> RecordRow:
    latest = payment.active_attempt
    card = _payment_card(payment)
    failure = latest.failure.code if latest and latest.failure else ""
    return RecordRow(
        id=payment.id,
        name=own_name(payment),
        status=payment.status,
        at=payment.created_at,
        about=latest.method if latest else "",
        last=failure or str(card["action"]),
        amount=str(card["amount"]),
        place=str(card["place"]),
        card=card,
    )


def _payout_row(payout: PayoutRecord, row_key: Callable[[str], str | None]) -> RecordRow:
    card, key = _payout_card(payout), row_key(payout.reference or "")
    return RecordRow(
        id=payout.id,
        name=key or payout.reference or payout.id,
        status=payout.status,
        at=payout.created_at,
        about=f"{payout.method} {card['to']}{f' {payout.reference}' if key else ''}",
        last=payout.failure.code if payout.failure else str(card["plan"]),
        amount=str(card["amount"]),
        card=card,
    )


def _webhook_row(webhook: Webhook, names: RecordNames) -> RecordRow:
    said = _answer(webhook.tries[-1]) if webhook.tries else webhook.reason
    again = f"next try {moment(webhook.next_at)}" if webhook.next_at is not None else None
    return RecordRow(
        id=webhook.id,
        name=names.name(webhook.record_id),
        status=state_of(webhook),
        at=webhook.at,
        about=f"{webhook.event} {address(webhook.url)}",
        last=", ".join(filter(None, (said, again))),
        card={"id": webhook.id, "can_resend": webhook.state != "refused"},
    )


def _answer(tried: WebhookTry) -> str:
    return tried.error or f"answered {tried.status}"


def state_of(webhook: Webhook) -> str:
    """The state of a delivery in words; `failing` while it waits for another try after a failure."""
    return "failing" if webhook.state == "waiting" and webhook.tries else webhook.state.replace("_", " ")


# One record


def payment(page: PageRequest, name: str) -> Context | str:
    """The page of a payment; its address for another of its names. `LookupError`."""
    with page.sandbox.reading() as world:
        record = _payment(world, unquote(name))
    if record.id != name:
        return f"{CONSOLE}payments/{record.id}"
    return {
        **_one(page, record),
        "title": f"Payment {own_name(record)}",
        "card": _payment_card(record),
        "view": payment_view(record, reveal=False),
    }


def payout(page: PageRequest, name: str) -> Context | str:
    """The page of a payout; its address for its reference, or that of the list of several. `LookupError`."""
    with page.sandbox.reading() as world:
        record, *others = _payouts(world, unquote(name))
    if others:
        return f"{CONSOLE}payouts?find={name}"
    if record.id != name:
        return f"{CONSOLE}payouts/{record.id}"
    key = page.sandbox.row_key(record.reference or "")
    return {
        **_one(page, record),
        "title": f"Payout {key or record.reference or record.id}",
        "key": key,
        "card": _payout_card(record),
        "view": payout_view(record, reveal=False),
    }


def payout_timeline(page: PageRequest, name: str) -> Context:
    """What Try it shows of its payout; `LookupError`."""
    with page.sandbox.reading() as world:
        record = _payouts(world, name)[0]
    return {**_one(page, record), "card": _payout_card(record)}


def webhook(page: PageRequest, name: str) -> Context:
    """The page of a webhook; `LookupError`."""
    delivery = page.sandbox.find_webhook(name)
    with page.sandbox.reading() as world:
        named = RecordNames(world, page.sandbox.row_key).name(delivery.record_id)
    return {
        "title": f"Webhook {delivery.id}",
        "hook": webhook_view(delivery),
        "named": named,
        "state": state_of(delivery),
    }


def _one(page: PageRequest, record: PayoutRecord | PaymentRecord) -> Context:
    """What the pages of payments and payouts share: the timeline, and how the record was made."""
    traces = traces_of(record)
    with page.sandbox.reading() as world:
        entries = page.sandbox.journal.since(0)
        names = RecordNames(world, page.sandbox.row_key)
    about = (one for one in entries if is_of(one.item, "") and traces.are_in(one.item))
    timeline = joined(lines(about, names))
    asked = page.query.get("after", "")
    after = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 9 else 0
    return {
        "record": record,
        "key": None,
        "timeline": timeline[after : after + _LINES],
        "after": after,
        "more": max(0, len(timeline) - after - _LINES),
        "next": after + _LINES,
        "is_whole": not entries or page.sandbox.journal.gone == 0,
        "url": address(record.webhook_url) if record.webhook_url else None,
    }


def _payment_card(payment: PaymentRecord) -> Context:
    """What a payment's line and page say, and what its buttons need."""
    latest, money = payment.active_attempt, currency(payment.currency)
    waits = payment.is_open and latest is not None and latest.status == "action_required"
    action = (latest.plan.outcome.action or "") if waits and latest else ""
    return {
        "id": payment.id,
        "open": payment.is_open,
        "amount": money.plain(payment.amount),
        "refunded": money.plain(payment.refunded) if payment.refunded else "",
        "refundable": money.plain(payment.refundable) if payment.refundable else "",
        "checkout": CHECKOUT + payment.session.id if payment.session else "",
        "action": action,
        "place": f"{ACTIONS}{latest.id}/{_PLACES[action]}" if latest and action in _PLACES else "",
    }


def _payout_card(payout: PayoutRecord) -> Context:
    """What a payout's line and page say, and what its buttons need."""
    instrument = object_or_null(decode_object(payout.body), "instrument") or {}
    number = instrument.get("phone_number") or instrument.get("account_number") or instrument.get("address")
    return {
        "id": payout.id,
        "open": not payout.is_final,
        "amount": currency(payout.currency).plain(payout.amount),
        "to": hide(number) if isinstance(number, str) else "",
        "plan": "" if payout.is_final else plan_words(payout),
    }


def _payment(world: World, name: str) -> PaymentRecord:
    """The payment of this id, session, attempt, or of this reference; `LookupError`."""
    for tenant in world.tenants.values():
        if (payment := tenant.payment_of(name)) is not None:
            return payment
        if name in tenant.attempts:
            return tenant.attempts[name].payment
    for payment in newest_payments(world):
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
