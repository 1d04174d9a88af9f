"""The search language of the log: a text is read into terms, and entries are tested against them. Pure.

    status:422 OR status:5xx op:payouts.create ref:june* amount:>1000 -fault:any "two words"

An entry must fit every term; of terms with OR between them one is enough. For a term that cannot be read,
a sentence says why.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import cache, partial
from typing import Any, Protocol

import attrs

from .._common.json import decode
from .._common.operations import NAMES
from .._common.patterns import glob, read_bound, unescaped
from .._common.scenario_words import FAULTS, UnknownWord, duration, near
from .._common.values import Change, Delivery, RequestRefused
from .._journal import Item, LoggedExchange, WebhookTried
from .._records.emit_webhook import ATTEMPT_EVENTS, PAYMENT_EVENTS, PAYOUT_EVENTS
from .._records.records import ATTEMPT_STATES, PAYMENT_STATES, PAYOUT_STATES
from .._traffic import outcome_of

EVENTS = (*PAYMENT_EVENTS, *ATTEMPT_EVENTS, *PAYOUT_EVENTS)
STATUSES = tuple(sorted({*PAYOUT_STATES, *PAYMENT_STATES, *ATTEMPT_STATES}))
"""Statuses of records. As texts they are in nearly every body, as in `completed_at`."""

LONGEST = 400
"""Characters of a search, at most."""

MOST = 12
"""Terms of a search, at most: each is tested with every entry."""

_OR = "OR"
_TOKEN = re.compile(r'(-?)(?:([a-z_]+):)?("(?:\\.|[^"\\])*"?|\S*)', re.IGNORECASE | re.ASCII | re.DOTALL)
_CLOSED = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)
_STATUS = re.compile(r"[1-5](?:\d\d|xx)", re.ASCII)
_AMOUNT = re.compile(r"(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.[0-9]+)?")


class RecordFacts(Protocol):
    """What is known of records and webhooks besides an entry."""

    def root(self, record_id: str) -> str:
        """An attempt's payment, else the id itself."""

    def name(self, record_id: str) -> str:
        """The reference, or the id of what has none."""

    def values(self, record_id: str, field: str) -> Sequence[object]:
        """What a record has in a field of its creation; nothing for an unknown record."""

    def was_retried(self, exchange: LoggedExchange) -> bool:
        """True if another request had the same idempotency key."""

    def was_tried(self, record_id: str, event: str) -> bool:
        """True if a webhook of this record and event was tried."""

    def was_delivered(self, webhook_id: str) -> bool:
        """True if a receiver accepted the webhook at last."""


EntryTest = Callable[[Item, RecordFacts], bool]
_Fits = Callable[[Item], bool]


@attrs.frozen
class SearchTerm:
    """One term: its name (empty for a word), its value, the text it was read from, and its test."""

    name: str
    value: str
    text: str
    excludes: bool
    test: EntryTest = attrs.field(eq=False, repr=False)


@attrs.frozen
class SearchQuery:
    """What was searched for. With `faults` it is not carried out."""

    terms: tuple[SearchTerm, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The values of its `is:` terms."""
        return tuple(term.value for term in self.terms if _is_kind(term))

    @property
    def without_kinds(self) -> SearchQuery:
        """The query without these."""
        return attrs.evolve(self, terms=tuple(term for term in self.terms if not _is_kind(term)))

    def text(self, *more: str) -> str:
        """The query as text, with more terms."""
        return " ".join([*(term.text for term in self.terms), *more])

    def tester(self, facts: RecordFacts) -> _Fits | None:
        """Make the test of an entry; None when every entry fits."""
        fits = None
        for term in sorted(self.terms, key=lambda term: term.name in _COSTLY, reverse=True):
            fits = _with(term, facts, fits)
        return fits


def _with(term: SearchTerm, facts: RecordFacts, others: _Fits | None) -> _Fits:
    """The test of an entry by a term and then by others."""
    test, excludes = term.test, term.excludes
    if others is None:
        return lambda item: test(item, facts) is not excludes
    return lambda item: test(item, facts) is not excludes and others(item)


def read_query(text: str) -> SearchQuery:
    """Read a search."""
    if len(text) > LONGEST:
        return SearchQuery(faults=(f"A search has at most {LONGEST} characters, not {len(text):,}.",))
    terms: list[SearchTerm] = []
    faults: list[str] = []
    either = misplaced = False
    for token in (token for token in _TOKEN.finditer(text) if token[0]):
        if token[0] == _OR:
            misplaced |= either or not terms
            either = True
            continue
        try:
            term = _term(token[0], bool(token[1]), (token[2] or "").lower(), token[3])
        except UnknownWord as unknown:
            faults.append(f"{token[0]}: {unknown}.")
        else:
            terms.append(_either(terms.pop(), term) if either and terms else term)
        either = False
    if either or misplaced:
        faults.append(f"{_OR}: a term must stand on both sides; to find this text, put it in quotes.")
    if (count := sum(term.text.count(f" {_OR} ") + 1 for term in terms)) > MOST:
        faults.append(f"A search has at most {MOST} terms, not {count}.")
    return SearchQuery(tuple(terms), tuple(faults))


def _either(one: SearchTerm, other: SearchTerm) -> SearchTerm:
    """The term that fits what one of two fits."""

    def test(item: Item, facts: RecordFacts) -> bool:
        return one.test(item, facts) is not one.excludes or other.test(item, facts) is not other.excludes

    return SearchTerm("", "", f"{one.text} {_OR} {other.text}", excludes=False, test=test)


def _term(text: str, excludes: bool, name: str, said: str) -> SearchTerm:
    quoted = said.startswith('"')
    if quoted and not _CLOSED.fullmatch(said):
        raise UnknownWord("the quotation mark is not closed")
    value = said[1:-1] if quoted else said
    if name and name not in TERMS:
        raise UnknownWord(f"no such term ({near(name, tuple(TERMS))}); to find this text, put it in quotes")
    if not value:
        example = f", as in {TERMS[name].example}" if name else ""
        raise UnknownWord(f"the value is missing{example}")
    if not name and not quoted and _is_status(value):
        name = "status"
    if not name:
        test = _word(unescaped(value) if quoted else value)
    elif name == "key" and quoted:
        test = _key(value, str)  # the key itself, in which capitals count
    else:
        test = TERMS[name].read(value)
    return SearchTerm(name, value, text, excludes, test)


def _is_kind(term: SearchTerm) -> bool:
    return term.name == "is" and term.value in KINDS and not term.excludes


def _is_status(value: str) -> bool:
    return value.lower() in STATUSES or _STATUS.fullmatch(value.lower()) is not None


# --- terms --------------------------------------------------------------------------------------


def _status(value: str) -> EntryTest:
    low = value.lower()
    if low in STATUSES:
        return lambda item, _: _state(item) == low
    if low == "none":
        return lambda item, _: _http(item) == 0
    if not _STATUS.fullmatch(low):
        raise UnknownWord(f"no such status ({near(low, (*STATUSES, '5xx', '422', 'none'))})")
    least = int(low.replace("x", "0"))
    most = least + (99 if low.endswith("x") else 0)
    return lambda item, _: least <= _http(item) <= most


def _http(item: Item) -> int:
    """The status of an HTTP answer that its caller got, 0 for none; -1 for what is no HTTP."""
    if isinstance(item, LoggedExchange):
        return 0 if outcome_of(item.log.status, item.log.fault) == "unanswered" else item.log.status
    return item.status or 0 if isinstance(item, WebhookTried) else -1


def _state(item: Item) -> str:
    """The status that a record or the record of an event has reached."""
    if isinstance(item, LoggedExchange):
        return ""
    return item.after if isinstance(item, Change) else item.event.rpartition(".")[2]


def _operation(value: str) -> EntryTest:
    names = _names(value, NAMES, "operation")
    return lambda item, _: isinstance(item, LoggedExchange) and item.log.operation in names


def _names(value: str, known: Sequence[str], kind: str) -> set[str]:
    matching = set(filter(glob(value), known))
    if not matching:
        raise UnknownWord(f"no such {kind} ({near(value.lower(), known)})")
    return matching


def _own(field: str, fits: Callable[[Any], bool]) -> EntryTest:
    """The test of a field of a record's creation: of the record, else of the request that made none."""
    known: dict[str, bool] = {}  # a record has several entries

    def has(record: str, facts: RecordFacts) -> bool:
        hit = known.get(record)
        if hit is None:
            hit = known[record] = any(map(fits, facts.values(record, field)))
        return hit

    def test(item: Item, facts: RecordFacts) -> bool:
        if not isinstance(item, LoggedExchange):
            return has(_record(item), facts)
        if item.records:
            return any(has(record, facts) for record in item.records)
        return any(map(fits, values_of(_sent(item), field)))

    return test


def values_of(sent: Mapping[str, object], field: str) -> Sequence[object]:
    """What a creation's body has in a field: a text or number, or the members of an object."""
    value = sent.get(field, sent.get("entity_id") if field == "reference" else None)
    return tuple(value.values()) if isinstance(value, dict) else (value,)


def _text(value: str, field: str) -> EntryTest:
    fits = glob(value)
    return _own(field, lambda text: isinstance(text, str) and fits(text))


def _method(value: str) -> EntryTest:
    fits, own = glob(value), _text(value, "method")
    return lambda item, facts: (
        (isinstance(item, LoggedExchange) and fits(item.log.method)) or own(item, facts)
    )


def _amount(value: str) -> EntryTest:
    compare, bound = read_bound(value)
    if not _AMOUNT.fullmatch(bound):
        raise UnknownWord("not an amount; as in amount:>1000 or amount:25.50")
    wanted = Decimal(bound.replace(",", ""))

    def fits(amount: object) -> bool:
        try:
            number = Decimal(str(amount))
        except InvalidOperation:
            return False
        return number.is_finite() and compare(number, wanted)

    return _own("amount", fits)


def _took(value: str) -> EntryTest:
    compare, bound = read_bound(value)
    if compare is operator.eq:
        raise UnknownWord("say longer or shorter than what; as in took:>1s or took:<20ms")
    wanted = duration(bound)
    return lambda item, _: (
        isinstance(item, LoggedExchange) and item.seconds is not None and compare(item.seconds, wanted)
    )


def _fault(value: str) -> EntryTest:
    low = value.lower()
    if low == "any":
        return lambda item, _: isinstance(item, LoggedExchange) and item.log.fault is not None
    kind, fits = re.split(r":|(?<=\*)", low)[0], glob(low)
    if not any(map(glob(kind), FAULTS)):
        raise UnknownWord(f"no such fault ({near(low, ('any', *FAULTS))})")

    def test(item: Item, _: RecordFacts) -> bool:
        fault = item.log.fault if isinstance(item, LoggedExchange) else None
        return fault is not None and (fits(fault) or fits(fault.partition(":")[0]))

    return test


def _key(value: str, fold: Callable[[str], str] = str.lower) -> EntryTest:
    fits = glob(value, fold)
    return lambda item, _: (
        isinstance(item, LoggedExchange)
        and (fits(item.log.idempotency_key or "") or fits(item.log.key or ""))
    )


def _id(value: str) -> EntryTest:
    fits = glob(value)

    def test(item: Item, facts: RecordFacts) -> bool:
        if isinstance(item, LoggedExchange):
            return fits(item.log.request_id) or any(map(fits, item.records))
        record = _record(item)
        own = isinstance(item, WebhookTried) and fits(item.webhook_id)
        return own or fits(record) or fits(facts.root(record))

    return test


def _event(value: str) -> EntryTest:
    events = _names(value, EVENTS, "event")
    return lambda item, _: getattr(item, "event", None) in events


def _is(value: str) -> EntryTest:
    kind = value.lower()
    if kind in KINDS:
        return lambda item, facts: kind in kinds_of(item, facts)
    if kind == "replayed":
        return lambda item, _: isinstance(item, LoggedExchange) and item.log.replayed
    if kind not in MARKS:
        raise UnknownWord(f"no such kind ({near(kind, (*KINDS, *MARKS))})")
    return lambda item, facts: isinstance(item, LoggedExchange) and facts.was_retried(item)


KINDS = ("request", "record", "webhook", "failed")
"""The values of `is:` that are tabs."""
MARKS = ("retried", "replayed")
"""Its other values: sent again with the same idempotency key, and answered from the first answer."""


def kinds_of(item: Item, facts: RecordFacts) -> tuple[str, ...]:
    """The kinds of an entry."""
    if isinstance(item, LoggedExchange):
        log = item.log
        is_ok = 200 <= log.status < 300 and (log.fault is None or outcome_of(log.status, log.fault) == "ok")
        return ("request",) if is_ok else ("request", "failed")
    if isinstance(item, Change):
        return ("record", "failed") if item.after == "failed" else ("record",)
    if isinstance(item, Delivery):  # once it was tried, the try stands for it
        return () if facts.was_tried(item.record_id, item.event) else ("webhook",)
    is_failed = not item.accepted and not facts.was_delivered(item.webhook_id)
    return ("webhook", "failed") if is_failed else ("webhook",)


def _word(value: str) -> EntryTest:
    """The test for a text, as it is and as JSON writes it: in addresses, ids, events, names and bodies."""
    low = value.lower()
    ways = tuple({low, *(json.dumps(text)[1:-1].lower() for text in (value, low))})
    is_number, is_ascii = low.isdecimal(), low.isascii()
    coded, known = tuple(way.encode() for way in ways), dict[str, bool]()

    def is_in(text: str) -> bool:
        small = text.lower()
        return low in small or (len(ways) > 1 and any(map(small.__contains__, ways)))

    def is_in_body(body: bytes) -> bool:
        if not (is_ascii or body.isascii()):
            return is_in(body.decode("utf-8", "replace"))
        return any(map(body.lower().__contains__, coded))  # a text costs five times as much

    is_in_state = cache(is_in)

    def test(item: Item, facts: RecordFacts) -> bool:
        if isinstance(item, LoggedExchange):
            log, answer = item.log, item.answer
            said = f"{log.method} {log.path} {log.request_id} {log.operation or ''} {log.fault or ''}"
            return (
                is_in(f"{said} {log.idempotency_key or ''}")
                or (answer is not None and (is_in_body(item.body or b"") or is_in_body(answer.body)))
                or (is_number and low == str(_http(item)))
            )
        record, state = (item.id, item.after) if isinstance(item, Change) else (item.record_id, item.event)
        hit = known.get(record)  # a record has several entries
        if hit is None:
            hit = known[record] = is_in(f"{record} {facts.root(record)} {facts.name(record)}")
        return hit or is_in_state(state) or (isinstance(item, WebhookTried) and is_in(item.webhook_id))

    return test


@attrs.frozen
class TermKind:
    """A term of the language: an example, a sentence, and how its value is read; `UnknownWord`."""

    example: str
    meaning: str
    read: Callable[[str], EntryTest] = attrs.field(repr=False)


TERMS: Mapping[str, TermKind] = {
    "status": TermKind("status:5xx", "HTTP status, or status of a record; none for no answer", _status),
    "op": TermKind("op:payouts.*", "operation of a request", _operation),
    "ref": TermKind("ref:june*", "reference of a record", partial(_text, field="reference")),
    "amount": TermKind("amount:>1000", "amount of a record", _amount),
    "currency": TermKind("currency:GHS", "currency of a record", partial(_text, field="currency")),
    "customer": TermKind(
        "customer:ada*", "e-mail address, name or id of a record's customer", partial(_text, field="customer")
    ),
    "method": TermKind("method:mobile*", "method of a record, or HTTP method", _method),
    "took": TermKind("took:>1s", "time until the answer", _took),
    "fault": TermKind("fault:any", "fault that you made the sandbox simulate", _fault),
    "key": TermKind("key:order-7*", "idempotency key, or fingerprint of the API key", _key),
    "id": TermKind("id:po_…", "id of a request, record or webhook", _id),
    "event": TermKind("event:payout.*", "event of a webhook", _event),
    "is": TermKind("is:failed", "request, record, webhook, failed, retried or replayed", _is),
}
_COSTLY = ("amount", "currency", "customer", "method", "ref", "")
"""Terms that take long to test. They come last."""


def _record(item: Item) -> str:
    """The record that an entry is about, which is no request."""
    assert not isinstance(item, LoggedExchange)
    return item.id if isinstance(item, Change) else item.record_id


def _sent(item: LoggedExchange) -> Mapping[str, object]:
    """The body of a request that creates a record; empty for any other."""
    if not (item.log.operation or "").endswith(".create"):
        return {}
    try:
        value = decode(item.body or b"")
    except RequestRefused:
        return {}
    return value if isinstance(value, dict) else {}
