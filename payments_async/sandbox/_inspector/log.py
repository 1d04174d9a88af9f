"""The journal as lines: what happened to which record, how it ended, and which lines a search finds. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal
from urllib.parse import parse_qsl

import attrs

from .._common.json import decode
from .._common.masking import mask_path
from .._common.operations import CONSOLE
from .._common.values import Change, Delivery, RequestRefused
from .._control_api.failure_reasons import reason
from .._journal import Item, JournalEntry, LoggedExchange, WebhookTried
from .._records.records import PaymentRecord, PayoutRecord
from .._records.world import World
from .filters import lasted, page_of, tone

KINDS: Final[Mapping[str, str]] = {
    "": "All",
    "request": "Requests",
    "record": "Records",
    "webhook": "Webhooks",
    "failed": "Failed",
}
"""The kinds of lines, with the words for them."""

Outcome = Literal["ok", "refused", "failed", "unanswered"]
"""What a request's caller got: 2xx, 3xx or 4xx, 5xx or what cannot be read, no (whole) answer."""

_TONES: Final[Mapping[Outcome, str]] = {"ok": "ok", "refused": "wait", "failed": "bad", "unanswered": "wait"}
_LOST: Final = frozenset({"hang", "reset", "lost_request", "lost_response", "cut_body"})
"""Faults that keep an answer, or a part of it, from its caller."""
_UNREADABLE: Final = frozenset({"bad_json", "wrong_type", "empty"})
"""Faults that spoil an answer."""


def outcome_of(status: int, fault: str | None) -> Outcome:
    """What became of a request for its caller, by the service's status, 0 for none, and the fault it met."""
    kind = fault.partition(":")[0] if fault else ""
    if status == 0 or kind in _LOST:
        return "unanswered"
    if status >= 500 or (status < 300 and kind in _UNREADABLE):
        return "failed"
    return "refused" if status >= 300 else "ok"


class RecordNames:
    """The names of records, by the id of any of their parts. `row_key` finds that of a reference."""

    def __init__(self, world: World, row_key: Callable[[str], str | None]) -> None:
        self._tenants = tuple(world.tenants.values())
        self.row_key: Callable[[str], str | None] = row_key

    def record(self, record_id: str) -> PayoutRecord | PaymentRecord | None:
        """The payout, or the payment of any of its parts; None for what is gone."""
        for tenant in self._tenants:
            part = tenant.attempts.get(record_id) or tenant.sessions.get(record_id)
            wanted = part.payment.id if part is not None else record_id
            record = tenant.payouts_by_id.get(wanted) or tenant.payments_by_id.get(wanted)
            if record is not None:
                return record
        return None

    def name(self, record_id: str) -> str:
        """The key of a payout's row, else a record's reference, or the id of what has none or is gone."""
        record = self.record(record_id)
        return self.of((record and record.reference) or record_id)

    def of(self, reference: str) -> str:
        """The key of the row that a reference belongs to; the reference where no row is known."""
        return self.row_key(reference) or reference

    def texts(self, record_id: str) -> Iterator[str]:
        """What a record is found by: the ids of the part and the whole, its reference, the key of its row."""
        record = self.record(record_id)
        yield record_id
        if record is not None:
            yield from (record.id, record.reference or "", self.of(record.reference or ""))

    def payout(self, key: str | None, reference: str) -> str | None:
        """The id of the payout that an API key's program calls so; None for none."""
        of_key = (tenant for tenant in self._tenants if tenant.fingerprint == key)
        payouts = (tenant.payouts_by_reference.get(reference) for tenant in of_key)
        return next((payout.id for payout in payouts if payout is not None), None)

    def failure(self, record_id: str) -> str | None:
        """The code of the failure of a payout or an attempt; None without one."""
        for tenant in self._tenants:
            part = tenant.attempts.get(record_id) or tenant.payouts_by_id.get(record_id)
            if part is not None and part.failure is not None:
                return part.failure.code
        return None


# Which entries


def is_of(item: Item, kind: str) -> bool:
    """True for an entry of a kind. A delivery that is due is of none: its tries are, once they are made."""
    if isinstance(item, LoggedExchange):
        failed = outcome_of(item.log.status, item.log.fault) != "ok"
        return kind in ("", "request") or (kind == "failed" and failed)
    if isinstance(item, Change):
        return kind in ("", "record") or (kind == "failed" and item.after == "failed")
    if isinstance(item, Delivery):
        return False
    return kind in ("", "webhook") or (kind == "failed" and not item.accepted)


def texts_of(item: Item, names: RecordNames) -> Iterator[str]:
    """What an entry is found by: ids, references, idempotency key and path."""
    if isinstance(item, LoggedExchange):
        yield from (item.log.request_id, item.log.path, item.log.idempotency_key or "")
        yield from (_sent(item), names.of(_sent(item)))
        records: Iterable[str] = item.records
    elif isinstance(item, WebhookTried):
        yield item.webhook_id
        records = (item.record_id,)
    else:
        records = (item.id if isinstance(item, Change) else item.record_id,)
    for record_id in records:
        yield from names.texts(record_id)


def is_found(item: Item, text: str, names: RecordNames) -> bool:
    """True if a text, in small letters, is in one of an entry's texts."""
    return not text or any(text in own.lower() for own in texts_of(item, names))


@attrs.frozen
class RecordTraces:
    """What entries about a record have of it."""

    ids: frozenset[str]  # its own, and those of its attempts and its checkout session
    key: str
    """The fingerprint of its API key: references and idempotency keys of others mean other records."""
    idempotency_key: str | None
    reference: str | None

    def are_in(self, item: Item) -> bool:
        """True for an entry about the record."""
        if isinstance(item, (Change, Delivery, WebhookTried)):
            return (item.id if isinstance(item, Change) else item.record_id) in self.ids
        if not self.ids.isdisjoint(item.records):
            return True
        if item.log.key != self.key:
            return False
        if self.idempotency_key is not None and item.log.idempotency_key == self.idempotency_key:
            return True
        return self.reference is not None and self.reference in (_sent(item), _asked(item.log.path))


def traces_of(record: PayoutRecord | PaymentRecord) -> RecordTraces:
    """What to look for in the journal for a record's timeline."""
    ids = [record.id]
    if isinstance(record, PaymentRecord):
        ids += [attempt.id for attempt in record.attempts]
        ids += [record.session.id] if record.session else []
    return RecordTraces(frozenset(ids), record.key, record.idempotency_key, record.reference)


def _sent(exchange: LoggedExchange) -> str:
    """The reference that a creation's body has; empty without one."""
    if not exchange.body or not (exchange.log.operation or "").endswith(".create"):
        return ""
    try:
        body = decode(exchange.body)
    except RequestRefused:
        return ""
    fields = body if isinstance(body, dict) else {}
    return str(fields.get("reference") or fields.get("entity_id") or "")


def _asked(path: str) -> str:
    """The reference that a list is asked for; empty without one."""
    query = path.partition("?")[2]
    return dict(parse_qsl(query)).get("reference", "") if "reference" in query else ""


# Lines


@attrs.frozen
class LogLine:
    """One line of the log: a verb and its object, with a link to it, and the result."""

    at: float
    verb: str
    what: str
    href: str
    end: str
    tone: str
    named: str = ""  # the name of the record that it is about
    about: str = ""  # the address of the record's page
    marks: tuple[str, ...] = ()  # what is unusual of it
    reason: str | None = None  # the reason of a failure
    took: str = ""  # how long the answer took
    times: int = 1  # how many requests in a row were the same, with the same result
    until: float = attrs.field(default=attrs.Factory(lambda self: self.at, takes_self=True))
    """When the last of them was."""

    def repeats(self, other: LogLine) -> bool:
        """True for a plain request with the same success as another."""
        same = (self.verb, self.what, self.end, self.marks) == (other.verb, other.what, other.end, ())
        return same and self.tone == "ok" and "/requests/" in self.href


def lines(entries: Iterable[JournalEntry], names: RecordNames) -> list[LogLine]:
    return [_line(entry.item, names) for entry in entries]


def joined(all_lines: Iterable[LogLine]) -> list[LogLine]:
    """Lines in their order; of requests that repeat, as a wait's do, one that counts them."""
    made: list[LogLine] = []
    for line in all_lines:
        if made and line.repeats(made[-1]):
            made[-1] = attrs.evolve(made[-1], times=made[-1].times + 1, until=line.at)
        else:
            made.append(line)
    return made


def _line(item: Item, names: RecordNames) -> LogLine:
    if isinstance(item, LoggedExchange):
        return _request(item, names)
    if isinstance(item, Change):
        return LogLine(
            at=item.at,
            verb=item.kind,
            what=f"{item.before or 'new'} → {item.after}",
            href=page_of(item.id),
            end=item.after,
            tone=tone(item.after),
            named=names.name(item.id),
            reason=names.failure(item.id) if item.after == "failed" else None,
        )
    assert isinstance(item, WebhookTried)  # what is due has no line
    return _webhook(item, names)


def _request(exchange: LoggedExchange, names: RecordNames) -> LogLine:
    log = exchange.log
    outcome, reference = outcome_of(log.status, log.fault), _sent(exchange)
    known = next((one for one in exchange.records if names.record(one) is not None), None)
    known = known or names.payout(log.key, reference)  # by a reference, where an answer was stored or refused
    marks = (log.fault, "replayed answer" if log.replayed else "")
    return LogLine(
        at=log.at,
        verb=log.method,
        what=mask_path(log.path),
        href=f"{CONSOLE}requests/{log.request_id}",
        end="no answer" if outcome == "unanswered" else str(log.status),
        tone=_TONES[outcome],
        named=names.of(reference) or (names.name(known) if known else ""),
        about=page_of(known) if known else "",
        marks=tuple(filter(None, marks)),
        reason=reason(exchange),
        took=lasted(exchange.seconds),
    )


def _webhook(tried: WebhookTried, names: RecordNames) -> LogLine:
    marks = (f"try {tried.number}" if tried.number > 1 else "", "forged" if tried.forged else "")
    return LogLine(
        at=tried.at,
        verb="webhook",
        what=tried.event,
        href=page_of(tried.webhook_id),
        end=str(tried.status or "not delivered"),
        tone="ok" if tried.accepted else "bad",
        named=names.name(tried.record_id),
        about=page_of(tried.record_id) if names.record(tried.record_id) else "",
        marks=tuple(filter(None, marks)),
        reason=tried.error,
    )
