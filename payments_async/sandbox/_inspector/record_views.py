"""Payments, payouts, webhooks and the payer's phone as the pages show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .._checkout import PAGES as CHECKOUT
from .._checkout.attempt_pages import attempt_view
from .._checkout.next_action import ON_PHONE, one_time_code
from .._common.iso_codes import currency
from .._common.json import decode_object, object_or_null
from .._common.masking import hide
from .._common.timestamps import stamp
from .._common.values import Request
from .._control_api.json_views import plan_words
from .._records.payment_json import ACTIONS, attempt_form
from .._records.records import AttemptRecord, PaymentRecord, PayoutRecord
from .._records.world import World

Card = dict[str, object]

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
        "kind": kind,
        "amount": currency(payment.currency).plain(payment.amount),
        "phone": hide(attempt.phone) if attempt.phone else None,
        "at": stamp(attempt.action_required_at or attempt.created_at),
        "code": one_time_code(view.session, attempt) if kind == "collect_otp" else None,
        "checkout": None if payment.session is None else CHECKOUT + payment.session.id,
        "simulated": f"{ACTIONS}{attempt.id}/phone",
    }
