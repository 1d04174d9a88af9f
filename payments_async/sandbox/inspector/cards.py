"""Payments, payouts, webhooks and the payer's phone as the pages show them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from ..checkout import PAGES as CHECKOUT
from ..checkout.attempt_pages import attempt_view
from ..checkout.next_action import one_time_code
from ..common.iso_codes import currency
from ..common.masking import hide
from ..common.timestamps import stamp
from ..common.values import Request
from ..control_api.json_views import plan_words, webhook_view
from ..control_api.records import newest_payments, newest_payouts
from ..records.payment_json import ACTIONS, attempt_form
from ..records.records import PAYOUT_STATES, AttemptRecord, PaymentRecord, PayoutRecord
from ..records.world import World

if TYPE_CHECKING:
    from .._controls import SandboxControls

Card = dict[str, object]

SCANNED = 400
"""Payouts that the board shows, at most."""

_IN_COLUMN = 12
_MESSAGES = 12
_WEBHOOKS = 30
_ATTEMPTS = 6
_ON_PHONE = ("approve_on_phone", "collect_otp", "scan_qr_code")
_BANK = "Payer's bank"
_PLACES = {
    **dict.fromkeys(_ON_PHONE, ("phone", "Payer's phone")),
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
    place, place_name = _PLACES.get(str(action["type"]), ("", ""))
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
        "place": f"{ACTIONS}{attempt.id}/{place}" if place else None,
        "place_name": place_name,
    }


def payout_columns(world: World) -> list[Card]:
    """The newest payouts by status, a column for each."""
    columns: dict[str, list[PayoutRecord]] = {status: [] for status in PAYOUT_STATES}
    for payout in islice(newest_payouts(world), SCANNED):
        columns[payout.status].append(payout)
    return [
        {
            "status": status,
            "count": len(payouts),
            "more": max(0, len(payouts) - _IN_COLUMN),
            "cards": [payout_card(payout) for payout in payouts[:_IN_COLUMN]],
        }
        for status, payouts in columns.items()
    ]


def payout_card(payout: PayoutRecord) -> Card:
    """A payout with what is planned for it."""
    instrument = payout.instrument
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


def phone_messages(world: World) -> list[Card]:
    """The messages on payers' phones: approvals, one-time codes, codes to scan; newest first."""
    waiting = (
        attempt
        for payment in newest_payments(world)
        if payment.is_open
        and (attempt := payment.active_attempt)
        and attempt.status == "action_required"
        and attempt.plan.outcome.action in _ON_PHONE
    )
    return [_message(world, attempt) for attempt in islice(waiting, _MESSAGES)]


def _message(world: World, attempt: AttemptRecord) -> Card:
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


def webhook_rows(sandbox: SandboxControls) -> list[Card]:
    """The newest deliveries with their tries."""
    return [webhook_view(webhook) for webhook in reversed(sandbox.webhooks[-_WEBHOOKS:])]
