"""The lists of records: payments, payouts, webhooks, and the payer's phone."""

from __future__ import annotations

from operator import attrgetter

from .._control_api.json_views import webhook_view
from .._control_api.records import newest_payments, newest_payouts
from .._records.records import PAYOUT_STATES, PaymentRecord, PayoutRecord
from .._webhooks import Webhook
from . import record_views
from .lists import FilteredList, ListFilter, below, cut, filtered
from .page_request import Context, PageRequest
from .search import EVENTS

_PAYMENTS = 10
_IN_COLUMN = 7
_IN_ONE_COLUMN = 18
_WEBHOOKS = 25
_MESSAGES = 12
_ID = attrgetter("id")
_STATUS = attrgetter("status")
_OF_PAYMENTS: tuple[ListFilter[PaymentRecord], ...] = (
    ListFilter("status", "Status", _STATUS),
    ListFilter("channel", "Channel", attrgetter("channel")),
)
_OF_PAYOUTS: tuple[ListFilter[PayoutRecord], ...] = (
    ListFilter("status", "Status", _STATUS),
    ListFilter("currency", "Currency", attrgetter("currency")),
    ListFilter("method", "Method", attrgetter("method")),
    ListFilter("ref", "Reference", lambda payout: payout.reference or "", "june*"),
)
_OF_WEBHOOKS: tuple[ListFilter[Webhook], ...] = (
    ListFilter("event", "Event", attrgetter("event")),
    ListFilter("state", "State", attrgetter("state")),
    ListFilter("record", "Record", attrgetter("record_id"), "po_…"),
)


def payments(page: PageRequest) -> Context:
    """The payments, newest first."""
    with page.sandbox.reading() as world:
        every = list(newest_payments(world))
        listed = filtered(every, _OF_PAYMENTS, page.query, _ID)
        shown = cut(listed.left, _PAYMENTS, _ID)
        views = [record_views.payment_card(payment) for payment in shown.shown]
    return {"payments": views, "list": shown, "form": listed, "total": len(every)}


def payouts(page: PageRequest) -> Context:
    """The payouts by status, newest first: a column of each, or one of a single status."""
    with page.sandbox.reading() as world:
        every = list(newest_payouts(world))
        listed = filtered(every, _OF_PAYOUTS, page.query, _ID)
        status = page.query.get("status", "").strip()
        columns = [
            _column(one, listed, _IN_ONE_COLUMN if status else _IN_COLUMN)
            for one in ([status] if status else PAYOUT_STATES)
        ]
    total, api_key = len(every), page.sandbox.api_key
    return {"columns": columns, "form": listed, "total": total, "status": status, "api_key": api_key}


def _column(status: str, listed: FilteredList[PayoutRecord], most: int) -> Context:
    shown = cut((one for one in listed.left if one.status == status), most, _ID)
    return {
        "status": status,
        "count": sum(one.status == status for one in listed.found),
        "list": shown,
        "cards": [record_views.payout_card(payout) for payout in shown.shown],
    }


def webhooks(page: PageRequest) -> Context:
    """The deliveries, newest first."""
    every = page.sandbox.webhooks[::-1]
    listed = filtered(every, _OF_WEBHOOKS, page.query, _ID)
    shown = cut(listed.left, _WEBHOOKS, _ID)
    views = [webhook_view(webhook) for webhook in shown.shown]
    return {"webhooks": views, "list": shown, "form": listed, "total": len(every), "events": EVENTS}


def phone(page: PageRequest) -> Context:
    """What payers' phones show."""
    with page.sandbox.reading() as world:
        above = next(
            (t.attempts[page.before] for t in world.tenants.values() if page.before in t.attempts), None
        )
        # by its payment, because the attempt itself may have been answered since
        left = below(newest_payments(world), _ID, above.payment.id if above else page.before)
        shown = cut(record_views.waiting_attempts(left), _MESSAGES, _ID)
        messages = [record_views.phone_message(world, attempt) for attempt in shown.shown]
        return {"messages": messages, "list": shown}
