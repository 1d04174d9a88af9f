"""The journal sorted into activities: one for each thing that happened, with what it caused.

A request is shown with what it caused. Changes without a request (by time, a payer, a button) are shown by
record and moment. A webhook is one activity, however often it was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from .._journal import Item, JournalEntry, LoggedExchange, WebhookTried
from ..common.values import Change, Delivery
from ..records.records import ATTEMPT_STATES, PAYMENT_STATES, PAYOUT_STATES

Root = Callable[[str], str]
"""From a record's id to the id under which it is shown: an attempt's payment, else itself."""


@attrs.define(eq=False)
class LogActivity:
    """One line of the log; `seq` is the number of its newest entry."""

    seq: int
    at: float
    root: str
    """The record or webhook it is about, or the request."""
    exchange: LoggedExchange | None = None
    changes: list[Change] = attrs.field(factory=list)
    deliveries: list[Delivery] = attrs.field(factory=list)
    tries: list[WebhookTried] = attrs.field(factory=list)


def activities(entries: Sequence[JournalEntry], root: Root) -> list[LogActivity]:
    """Sort entries into activities, newest first."""
    caused = _caused(entries)
    found: list[LogActivity] = []
    webhooks: dict[str, LogActivity] = {}
    for entry in entries:
        item = entry.item
        if isinstance(item, LoggedExchange):
            found.append(_request(entry.seq, item, caused))
        elif isinstance(item, WebhookTried):
            _try(entry.seq, item, webhooks, found)
        elif isinstance(item, (Change, Delivery)) and entry.seq not in caused.taken:
            _add(_open(found, entry.seq, item, root), item)
    return sorted(found, key=lambda one: one.seq, reverse=True)


@attrs.frozen(eq=False)
class _Caused:
    by: dict[int, list[Item]]
    """The items that each request caused, by the request's number."""
    taken: set[int]
    """Numbers of the entries among them."""


def _caused(entries: Sequence[JournalEntry]) -> _Caused:
    """The items that each request caused, without those that had fallen due before it."""
    caused = _Caused({}, set())
    for place, entry in enumerate(entries):
        if isinstance(entry.item, LoggedExchange) and entry.item.caused:
            caused_by_it = [
                one
                for one in entries[max(0, place - entry.item.caused) : place]
                if entry.seq - one.seq <= entry.item.caused
                and isinstance(one.item, (Change, Delivery))
                and one.item.at == entry.item.log.at
            ]
            caused.by[entry.seq] = [one.item for one in caused_by_it]
            caused.taken.update(one.seq for one in caused_by_it)
    return caused


def moment_of(item: Item) -> float:
    """The sandbox's time of an entry."""
    return item.log.at if isinstance(item, LoggedExchange) else item.at


def _request(seq: int, exchange: LoggedExchange, caused: _Caused) -> LogActivity:
    made = LogActivity(seq, exchange.log.at, exchange.log.request_id, exchange)
    for item in caused.by.get(seq, ()):
        _add(made, item)
    return made


def _add(activity: LogActivity, item: Item) -> None:
    if isinstance(item, Change):
        activity.changes.append(item)
    else:
        assert isinstance(item, Delivery)  # requests and tries are activities of their own
        activity.deliveries.append(item)


def _open(found: list[LogActivity], seq: int, item: Change | Delivery, root: Root) -> LogActivity:
    """The newest activity if `item` belongs to it, else a new one."""
    about = root(item.id if isinstance(item, Change) else item.record_id)
    newest = found[-1] if found else None
    # a request's and a webhook's activity is closed: only a record's own has changes and no exchange
    joins = newest is not None and newest.changes and not newest.exchange
    if newest is None or not joins or (newest.root, newest.at) != (about, item.at):
        newest = LogActivity(seq, item.at, about)
        found.append(newest)
    newest.seq = seq
    return newest


def _try(seq: int, tried: WebhookTried, webhooks: dict[str, LogActivity], found: list[LogActivity]) -> None:
    webhook = webhooks.get(tried.webhook_id)
    if webhook is None:
        webhook = webhooks[tried.webhook_id] = LogActivity(seq, tried.at, tried.record_id)
        found.append(webhook)
    webhook.seq, webhook.at = seq, tried.at
    webhook.tries.append(tried)


def newest(entries: Sequence[JournalEntry], wanted: Callable[[Item], bool], most: int) -> list[JournalEntry]:
    """The newest `most` entries that are wanted, oldest first, each request with what it caused."""
    found: list[JournalEntry] = []
    place = len(entries) - 1
    while place >= 0 and len(found) < most:
        item, start = entries[place].item, place
        if wanted(item):
            start = max(0, place - (item.caused if isinstance(item, LoggedExchange) else 0))
            found.extend(reversed(entries[start : place + 1]))
        place = start - 1
    found.reverse()
    return found


STATUSES = frozenset({*PAYOUT_STATES, *PAYMENT_STATES, *ATTEMPT_STATES})
"""Statuses of records. As texts they are in nearly every body, as in `completed_at`."""


def has_status(item: Item, status: str) -> bool:
    """True if an item ended with this status: of the HTTP answer, of the record, or of the event."""
    if isinstance(item, LoggedExchange):
        return status == str(item.log.status)
    if isinstance(item, Change):
        return status == item.after
    event_status = getattr(item, "event", "").rpartition(".")[2]
    return status == event_status or (isinstance(item, WebhookTried) and status == str(item.status))


def contains(item: Item, needle: str, names: Callable[[str], str]) -> bool:
    """True if an item contains `needle`: in an address, id, key, event, body, status, or a record's name."""
    return _contains(item, needle.lower(), needle.encode(), names)


def _contains(item: Item, low: str, raw: bytes, names: Callable[[str], str]) -> bool:
    if isinstance(item, LoggedExchange):
        log = item.log
        said = (item.body or b"") + b"\n" + (item.answer.body if item.answer else b"")
        spoken = f"{log.method} {log.path} {log.request_id} {log.idempotency_key} {log.operation} {log.fault}"
        return low in spoken.lower() or low == str(log.status) or raw in said
    if isinstance(item, Change):
        return low in f"{item.id} {item.after} {names(item.id)}".lower()
    if isinstance(item, WebhookTried):
        return low in f"{item.webhook_id} {item.record_id} {item.event} {names(item.record_id)}".lower()
    assert isinstance(item, Delivery)  # nothing else enters the journal
    return low in f"{item.record_id} {item.event} {names(item.record_id)}".lower()
