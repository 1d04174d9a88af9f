"""The lists of records: payments, payouts, webhooks, and the payer's phone."""

from __future__ import annotations

from itertools import islice

from ..control_api import records
from ..records.emit_webhook import ATTEMPT_EVENTS, PAYMENT_EVENTS, PAYOUT_EVENTS
from . import cards
from .page_request import Context, PageRequest

_PAYMENTS = 11
_EVENTS = (*PAYMENT_EVENTS, *ATTEMPT_EVENTS, *PAYOUT_EVENTS)


def payments(page: PageRequest) -> Context:
    """The newest payments."""
    with page.sandbox.reading() as world:
        newest = islice(records.newest_payments(world), _PAYMENTS)
        shown = [cards.payment_card(payment) for payment in newest]
        total = sum(len(tenant.payments) for tenant in world.tenants.values())
    return {"payments": shown, "total": total}


def payouts(page: PageRequest) -> Context:
    """The newest payouts by status."""
    with page.sandbox.reading() as world:
        columns = cards.payout_columns(world)
        total = sum(len(tenant.payouts) for tenant in world.tenants.values())
    return {
        "columns": columns,
        "total": total,
        "scanned": cards.SCANNED,
        "api_key": page.sandbox.api_key,
    }


def webhooks(page: PageRequest) -> Context:
    """The newest deliveries."""
    return {"webhooks": cards.webhook_rows(page.sandbox), "events": _EVENTS}


def phone(page: PageRequest) -> Context:
    """What payers' phones show."""
    with page.sandbox.reading() as world:
        return {"messages": cards.phone_messages(world)}
