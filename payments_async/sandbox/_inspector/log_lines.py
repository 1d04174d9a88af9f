"""The lines of the inspector's log: event, record, details and result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

import attrs

from .._common.json import decode_object
from .._common.masking import mask_path
from .._common.operations import CONSOLE
from .._common.rate_limits import SandboxLimits
from .._common.values import Change, Delivery
from .._control_api.failure_reasons import reason
from .._journal import Item, JournalEntry, LoggedExchange, WebhookTried
from .._records.records import PaymentRecord, PayoutRecord
from .._records.world import World
from ..advisor._evidence import observe
from .activity import LogActivity, activities
from .filters import got, marks_of, page_of, tone, tried_tone
from .search import values_of

_FORGED = (("idle", "forged"),)
_SIGNS = (("%5B", "["), ("%5D", "]"), ("%3A", ":"))


@attrs.frozen
class LogLine:
    """One line of the log: a verb and its object, with a link to it, details, and the result."""

    kind: str
    at: float
    verb: str
    what: str
    href: str
    end: str
    tone: str
    """The colour of the result."""
    named: str | None = None
    """The name of the record."""
    about: str | None = None
    """The address of the record's page."""
    marks: Sequence[tuple[str, str]] = ()
    """Colours and texts."""
    parts: Sequence[str] = ()
    reason: str | None = None
    """The reason of a failure."""
    seconds: float | None = None
    """How long the answer took."""


class RecordNames:
    """References and amounts of records, and what became of webhooks in the `items` of the journal."""

    def __init__(self, world: World, items: Sequence[Item] = ()) -> None:
        self._tenants = tuple(world.tenants.values())
        self._items = items
        self._names: dict[str, str] = {}

    def root(self, record_id: str) -> str:
        """The payment of an attempt or a checkout, else the id itself."""
        if record_id.startswith("po_"):
            return record_id
        for tenant in self._tenants:
            if (part := tenant.attempts.get(record_id) or tenant.sessions.get(record_id)) is not None:
                return part.payment.id
        return record_id

    def name(self, record_id: str) -> str:
        """A payout's or payment's reference, or the id of what has none or is gone."""
        name = self._names.get(record_id)
        if name is None:
            record = self.record(record_id)
            name = self._names[record_id] = (record and record.reference) or self.root(record_id)
        return name

    def page(self, record_id: str) -> str | None:
        """The address of the page of a record, or of what a part belongs to; None for what is gone."""
        record = self.record(record_id)
        return None if record is None else page_of(record.id)

    def of_request(self, exchange: LoggedExchange) -> tuple[str | None, str | None]:
        """The name of the record that a request is about, the program's own if it has one, and its page."""
        log, observed = exchange.log, observe(exchange)
        reference = observed.reference
        same = (
            tenant.payouts_by_reference.get(reference)
            for tenant in self._tenants
            if reference and tenant.fingerprint == log.key and log.operation == "payouts.create"
        )
        answered = observed.shown if log.replayed else ()
        ids = [*exchange.records, *answered, *(payout.id for payout in same if payout is not None)]
        known = next((one for one in ids if self.record(one) is not None), None)
        if known is None:
            return reference, None
        return reference or self.name(known), self.page(known)

    def values(self, record_id: str, field: str) -> Sequence[object]:
        """What a record has in a field of its creation; nothing for what is gone."""
        if field == "reference":
            return (self.name(record_id),)
        record = self.record(record_id)
        if record is None:
            return ()
        if field == "customer":
            sent = record.body if isinstance(record, PaymentRecord) else decode_object(record.body)
            return record.customer_id, *values_of(sent, field)
        if field == "method" and isinstance(record, PaymentRecord):
            return [attempt.method for attempt in record.attempts]
        return (getattr(record, field),)

    def was_retried(self, exchange: LoggedExchange) -> bool:
        """True if another request had the same idempotency key."""
        return self._sent[exchange.log.key, exchange.log.idempotency_key] > 1

    def was_tried(self, record_id: str, event: str) -> bool:
        """True if a webhook of this record and event was tried."""
        return (record_id, event) in self._tried

    def was_delivered(self, webhook_id: str) -> bool:
        """True if a receiver accepted the webhook at last."""
        return webhook_id in self._delivered

    def record(self, record_id: str) -> PayoutRecord | PaymentRecord | None:
        """The payout, or the payment of any of its parts; None for what is gone."""
        wanted = self.root(record_id)
        for tenant in self._tenants:
            record = tenant.payouts_by_id.get(wanted) or tenant.payments_by_id.get(wanted)
            if record is not None:
                return record
        return None

    @cached_property
    def _sent(self) -> Counter[tuple[str | None, str | None]]:
        """How many requests have an API key and an idempotency key."""
        logs = (item.log for item in self._items if isinstance(item, LoggedExchange))
        return Counter((log.key, log.idempotency_key) for log in logs if log.idempotency_key is not None)

    @cached_property
    def _tries(self) -> list[WebhookTried]:
        return [item for item in self._items if isinstance(item, WebhookTried)]

    @cached_property
    def _tried(self) -> frozenset[tuple[str, str]]:
        return frozenset((item.record_id, item.event) for item in self._tries)

    @cached_property
    def _delivered(self) -> frozenset[str]:
        return frozenset(item.webhook_id for item in self._tries if item.accepted)


def lines(entries: Sequence[JournalEntry], names: RecordNames, limits: SandboxLimits) -> list[LogLine]:
    """The log's lines, newest first."""
    return [_line(one, names, limits) for one in activities(entries, names.root)]


def _line(activity: LogActivity, names: RecordNames, limits: SandboxLimits) -> LogLine:
    if activity.exchange is not None:
        return _request(activity, activity.exchange, names, limits)
    if activity.tries:
        return _webhook(activity, names)
    return _record(activity, names) if activity.changes else _untried(activity.deliveries[0], names)


def _request(
    activity: LogActivity, exchange: LoggedExchange, names: RecordNames, limits: SandboxLimits
) -> LogLine:
    log = exchange.log
    named, page = names.of_request(exchange)
    end, colour = got(log.status, log.fault)
    return LogLine(
        kind="request",
        at=activity.at,
        verb=log.method,
        what=_readable(mask_path(log.path)),
        href=f"{CONSOLE}requests/{log.request_id}",
        end=end,
        tone=colour,
        named=named,
        about=page,
        marks=marks_of(log),
        parts=[*_transitions(activity.changes), *_due(activity.deliveries)],
        reason=reason(exchange, limits),
        seconds=exchange.seconds,
    )


def _readable(path: str) -> str:
    """A path without the escapes that query names such as `created_at[gte]` need."""
    for escaped, sign in _SIGNS:
        path = path.replace(escaped, sign)
    return path


def _record(activity: LogActivity, names: RecordNames) -> LogLine:
    """A record that changed without a request."""
    about = activity.root
    own = [change for change in activity.changes if change.id == about]
    end = (own or activity.changes)[-1].after
    kind = "payout" if about.startswith("po_") else "payment"
    return LogLine(
        kind="record",
        at=activity.at,
        verb=kind,
        what=names.name(about),
        href=page_of(about),
        end=end,
        tone=tone(end),
        parts=[*_transitions(activity.changes, own=about), *_due(activity.deliveries)],
    )


def _untried(due: Delivery, names: RecordNames) -> LogLine:
    """A delivery by itself: nothing changed with it, as with one that is forged."""
    return LogLine(
        kind="webhook",
        at=due.at,
        verb="webhook",
        what=due.event,
        href=f"{CONSOLE}webhooks",
        end="due",
        tone="idle",
        named=names.name(due.record_id),
        about=names.page(due.record_id),
        marks=_FORGED if due.forged else (),
    )


def _webhook(activity: LogActivity, names: RecordNames) -> LogLine:
    last = activity.tries[-1]
    count = len(activity.tries)
    return LogLine(
        kind="webhook",
        at=activity.at,
        verb="webhook",
        what=last.event,
        href=f"{CONSOLE}webhooks/{last.webhook_id}",
        end="not delivered" if last.status is None else str(last.status),
        tone=tried_tone(last.status, last.error),
        named=names.name(last.record_id),
        about=names.page(last.record_id),
        marks=_FORGED if last.forged else (),
        parts=[f"{count} tries"] if count > 1 else (),
        reason=last.error,
    )


def _transitions(changes: Iterable[Change], own: str = "") -> list[str]:
    """The transitions of each record, as in `attempt processing → completed`; `own` first."""
    by_record: dict[str, list[Change]] = {own: []} if own else {}
    for change in changes:
        by_record.setdefault(change.id, []).append(change)
    return [_states(of_it, named=record_id != own) for record_id, of_it in by_record.items() if of_it]


def _states(changes: Sequence[Change], *, named: bool) -> str:
    first, after = changes[0], [one.after for one in changes]
    if first.kind == "attempt" and all(one.before == one.after for one in changes):
        return f"{first.kind}: payer asks for another message"
    if named and first.before is None:
        return f"{first.kind} {' → '.join(after)}"
    states = " → ".join([first.before or "new", *after])
    return f"{first.kind} {states}" if named else states


def _due(deliveries: Iterable[Delivery]) -> list[str]:
    return [f"webhook {one.event} due" for one in deliveries]
