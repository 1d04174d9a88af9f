"""Payments, payouts, webhooks and the payer's phone as the pages show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import urlsplit

import attrs

from .._checkout import PAGES as CHECKOUT
from .._checkout.attempt_pages import attempt_view
from .._checkout.next_action import ON_PHONE, one_time_code
from .._common.iso_codes import currency
from .._common.json import decode_object, object_or_null
from .._common.masking import address, hide, mask_text
from .._common.timestamps import stamp
from .._common.values import Request
from .._control_api.json_views import plan_words
from .._records.payment_json import ACTIONS, attempt_form
from .._records.records import AttemptRecord, PaymentRecord, PayoutRecord
from .._records.world import World
from .._webhooks import Webhook, WebhookTry
from .filters import moment, state_of, tone, tried_tone, when

Card = dict[str, object]


@attrs.frozen
class RecordRow:
    """One line of a list of records, which begins with the program's own name for the record."""

    id: str
    name: str
    state: str
    at: float
    amount: str
    about: str
    """Method, number, event: in small letters."""
    marks: Sequence[str] = ()
    dots: Sequence[tuple[str, str]] = ()
    """The colour and the words of each try."""
    last: str = ""
    """The last answer."""
    where: str = ""
    """The address of the page where the last answer is waited for."""
    after: str = ""
    """What comes next."""
    card: Card | None = None
    """What its buttons need."""


def own_name(record: PayoutRecord | PaymentRecord) -> str:
    """The program's own name for a record: its reference, description or order; else the service's."""
    if isinstance(record, PayoutRecord) and record.reference:
        return record.reference
    body = decode_object(record.body) if isinstance(record, PayoutRecord) else record.body
    pairs = object_or_null(body, "metadata") or {}
    texts = (body.get("description"), *(value for key, value in pairs.items() if "order" in key.lower()))
    named = (body.get("entity_id"), *(mask_text(text) for text in texts if isinstance(text, str)))
    return next((one for one in named if isinstance(one, str) and one), record.reference or record.id)


def payout_row(payout: PayoutRecord) -> RecordRow:
    """A payout with what is planned for it."""
    card = payout_card(payout)
    return RecordRow(
        payout.id,
        own_name(payout),
        payout.status,
        payout.created_at,
        str(card["amount"]),
        f"{payout.method} {card['to'] or ''}",
        last=payout.failure.code if payout.failure else "",
        after=str(card["plan"]) if card["open"] else "",
        card=card,
    )


def payment_row(payment: PaymentRecord, now: float) -> RecordRow:
    """A payment with its latest attempts."""
    card, latest, name = payment_card(payment), payment.active_attempt, own_name(payment)
    action = _attempt_card(latest) if latest else {}
    return RecordRow(
        payment.id,
        name,
        payment.status,
        payment.created_at,
        str(card["amount"]),
        " ".join(
            filter(
                None,
                (latest.method if latest else "", payment.reference if name != payment.reference else ""),
            )
        ),
        marks=[f"{card['refunded']} refunded"] if card["refunded"] else (),
        dots=[(tone(one.status), f"{one.method}: {one.status}") for one in payment.attempts],
        last=latest.failure.code if latest and latest.failure else str(action.get("action") or ""),
        where=str(action.get("place") or ""),
        after=when(payment.expires_at, now)[:-3] if payment.is_open else "",
        card=card,
    )


def webhook_row(webhook: Webhook, record: PayoutRecord | PaymentRecord | None, now: float) -> RecordRow:
    """A delivery of a record, which may be gone, with its tries."""
    tried = webhook.tries[-1] if webhook.tries else None
    dots = [(tried_tone(one.status, one.error), f"{moment(one.at)}: {_answer(one)}") for one in webhook.tries]
    return RecordRow(
        webhook.id,
        own_name(record) if record else webhook.record_id,
        state_of(webhook),
        webhook.at,
        currency(record.currency).plain(record.amount) if record else "",
        f"{webhook.event} {urlsplit(address(webhook.url)).path}",
        marks=[] if webhook.origin == "due" else [webhook.origin],
        dots=dots if webhook.next_at is None else [*dots, ("next", f"next: {moment(webhook.next_at)}")],
        last=_answer(tried) if tried else webhook.reason or "",
        after=when(webhook.next_at, now) if webhook.next_at is not None else "",
        card={"id": webhook.id, "can_resend": webhook.state != "refused"},
    )


def _answer(tried: WebhookTry) -> str:
    """What a receiver answered to a try."""
    return tried.error or str(tried.status)


_ATTEMPTS = 6
_BANK = "Payer's bank"
_PLACES = {
    **dict.fromkeys(ON_PHONE, ("phone", "Payer's phone")),
    "redirect_to_url": ("bank", _BANK),
    "embed_iframe": ("frame", _BANK),
    "display_payment_instructions": ("bank", _BANK),
    "complete_with_sdk": ("provider", "Card provider"),
}
"""The page where the payer acts, and the text of the link to it."""


def payment_card(payment: PaymentRecord) -> Card:
    """A payment with its latest attempts."""
    session = payment.session
    return {
        "id": payment.id,
        "status": payment.status,
        "amount": currency(payment.currency).plain(payment.amount),
        "reference": payment.reference,
        "channel": payment.channel,
        "created_at": stamp(payment.created_at),
        "expires_at": stamp(payment.expires_at),
        "open": payment.is_open,
        "checkout": None if session is None else CHECKOUT + session.id,
        "refunded": currency(payment.currency).plain(payment.refunded) if payment.refunded else None,
        "refundable": currency(payment.currency).plain(payment.refundable) if payment.refundable else None,
        "earlier": max(0, len(payment.attempts) - _ATTEMPTS),
        "attempts": [_attempt_card(attempt) for attempt in payment.attempts[-_ATTEMPTS:]],
    }


def _attempt_card(attempt: AttemptRecord) -> Card:
    form = attempt_form(attempt, in_list=True)
    action = form["next_action"]
    assert isinstance(action, dict)
    page, page_name = _PLACES.get(str(action["type"]), ("", ""))
    return {
        "id": attempt.id,
        "status": attempt.status,
        "created_at": stamp(attempt.created_at),
        "method": attempt.method,
        "country": attempt.country,
        "phone": hide(attempt.phone) if attempt.phone else None,
        "is_failover": attempt.is_failover,
        "failure": attempt.failure,
        "action": None if action["type"] == "none" else action["type"],
        "message": action.get("message"),
        "place": f"{ACTIONS}{attempt.id}/{page}" if page else None,
        "place_name": page_name,
    }


def payout_card(payout: PayoutRecord) -> Card:
    """A payout with what is planned for it."""
    instrument = object_or_null(decode_object(payout.body), "instrument") or {}
    number = instrument.get("phone_number") or instrument.get("account_number") or instrument.get("address")
    return {
        "id": payout.id,
        "status": payout.status,
        "reference": payout.reference,
        "amount": currency(payout.currency).plain(payout.amount),
        "method": payout.method,
        "to": hide(number) if isinstance(number, str) else None,
        "created_at": stamp(payout.created_at),
        "failure": payout.failure,
        "plan": plan_words(payout),
        "held": payout.plan.outcome.kind == "hang",
        "open": not payout.is_final,
    }


def waiting_attempts(payments: Iterable[PaymentRecord]) -> Iterator[AttemptRecord]:
    """The attempts among the payments' that wait for an answer on the payer's phone."""
    for payment in payments:
        attempt = payment.active_attempt if payment.is_open else None
        if attempt is None or attempt.status != "action_required":
            continue
        if attempt.plan.outcome.action in ON_PHONE:
            yield attempt


def phone_message(world: World, attempt: AttemptRecord) -> Card:
    """The message on a payer's phone: an approval, a one-time code, a code to scan."""
    tenant = next(one for one in world.tenants.values() if attempt.id in one.attempts)
    payment, kind = attempt.payment, attempt.plan.outcome.action
    view = attempt_view(world, tenant, attempt, Request("GET", ACTIONS))
    return {
        "attempt": attempt.id,
        "payment": payment.id,
        "name": own_name(payment),
        "kind": kind,
        "amount": currency(payment.currency).plain(payment.amount),
        "phone": hide(attempt.phone) if attempt.phone else None,
        "at": stamp(attempt.action_required_at or attempt.created_at),
        "code": one_time_code(view.session, attempt) if kind == "collect_otp" else None,
        "checkout": None if payment.session is None else CHECKOUT + payment.session.id,
        "simulated": f"{ACTIONS}{attempt.id}/phone",
    }
