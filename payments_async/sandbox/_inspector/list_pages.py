"""The lists of records: payments, payouts, webhooks, and the payer's phone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import TypeVar

from .._control_api.records import newest_payments, newest_payouts
from .._records.records import AttemptRecord, PaymentRecord, PayoutRecord
from .._webhooks import Webhook
from . import record_views
from .causes import Money, causes, failed_webhooks, sums
from .filters import state_of
from .lists import FilteredList, ListFilter, below, cut, filtered
from .log_lines import RecordNames
from .page_request import Context, PageRequest
from .record_views import RecordRow
from .search import EVENTS

T = TypeVar("T")

_ROWS = 25
_PAYMENTS = 20
"""Rows of a page: those of payments have more to press."""
_MESSAGES = 12
_ID = attrgetter("id")
_STATUS = attrgetter("status")


def _code(record: PayoutRecord | AttemptRecord | None) -> str:
    return record.failure.code if record and record.failure else ""


_OF_PAYMENTS: tuple[ListFilter[PaymentRecord], ...] = (
    ListFilter("status", "Status", _STATUS),
    ListFilter("failure", "Failure", lambda payment: _code(payment.active_attempt)),
    ListFilter("channel", "Channel", attrgetter("channel")),
    ListFilter("currency", "Currency", attrgetter("currency")),
    ListFilter("name", "Name", record_views.own_name, "june*", attrgetter("reference")),
)
_OF_PAYOUTS: tuple[ListFilter[PayoutRecord], ...] = (
    ListFilter("status", "Status", _STATUS),
    ListFilter("failure", "Failure", _code),
    ListFilter("currency", "Currency", attrgetter("currency")),
    ListFilter("method", "Method", attrgetter("method")),
    ListFilter("name", "Name", record_views.own_name, "june*"),
)


def payments(page: PageRequest) -> Context:
    """The payments, newest first."""
    with page.sandbox.reading() as world:
        every, now = list(newest_payments(world)), world.now
    listed = filtered(every, _OF_PAYMENTS, page.query, _ID)
    return _list(listed, len(every), now, partial(record_views.payment_row, now=now), _money, _PAYMENTS)


def payouts(page: PageRequest) -> Context:
    """The payouts, newest first."""
    with page.sandbox.reading() as world:
        every, now = list(newest_payouts(world)), world.now
    listed = filtered(every, _OF_PAYOUTS, page.query, _ID)
    return _list(listed, len(every), now, record_views.payout_row, _money) | {"api_key": page.sandbox.api_key}


def webhooks(page: PageRequest) -> Context:
    """The deliveries, newest first, and the causes of those that do not arrive."""
    every = page.sandbox.webhooks[::-1]
    with page.sandbox.reading() as world:
        names, now = RecordNames(world), world.now
    filters: tuple[ListFilter[Webhook], ...] = (
        ListFilter("state", "State", state_of),
        ListFilter("origin", "Origin", attrgetter("origin")),
        ListFilter("event", "Event", attrgetter("event")),
        ListFilter(
            "record", "Record", attrgetter("record_id"), "june*", lambda one: names.name(one.record_id)
        ),
    )
    listed = filtered(every, filters, page.query, _ID)
    gone = int(every[0].id[3:]) - len(every) if every else 0  # they are numbered

    def row(one: Webhook) -> RecordRow:
        return record_views.webhook_row(one, names.record(one.record_id), now)

    return _list(listed, len(every), now, row) | {
        "gone": gone,
        "found": causes(failed_webhooks(listed.found)),
        "events": EVENTS,
    }


def _money(record: PayoutRecord | PaymentRecord) -> Money:
    return record.currency, record.amount


def _list(
    listed: FilteredList[T],
    total: int,
    now: float,
    row: Callable[[T], RecordRow],
    money: Callable[[T], Money] | None = None,
    most: int = _ROWS,
) -> Context:
    """What the pages of lists share: the rows, the fields, and the sums of each state."""
    shown = cut(listed.left, most, _ID)
    states = listed.fields[0].choices

    def of_state(records: Sequence[T]) -> list[str]:
        return sums(map(money, records)) if money else []

    return {
        "rows": [row(one) for one in shown.shown],
        "list": shown,
        "form": listed,
        "sums": {state: of_state(records) for state, records in states.items()},
        "total": total,
        "now": now,
    }


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
