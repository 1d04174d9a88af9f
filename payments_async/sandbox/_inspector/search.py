"""The search language of the log: a text is read into terms, and entries are tested against them. Pure.

    status:5xx op:payouts.create ref:june* amount:>1000 -fault:any "two words"

An entry must fit every term. For a term that cannot be read, a sentence says why.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Protocol

import attrs

from .._common.json import decode
from .._common.operations import NAMES
from .._common.scenario_words import FAULTS, UnknownWord, duration, near
from .._common.values import Change, Delivery, RequestRefused
from .._journal import Item, LoggedExchange, WebhookTried
from .._records.emit_webhook import ATTEMPT_EVENTS, PAYMENT_EVENTS, PAYOUT_EVENTS
from .._records.records import ATTEMPT_STATES, PAYMENT_STATES, PAYOUT_STATES
from .._traffic import outcome_of
from .patterns import glob, glob_parts, read_bound, unescaped

EVENTS = (*PAYMENT_EVENTS, *ATTEMPT_EVENTS, *PAYOUT_EVENTS)
STATUSES = tuple(sorted({*PAYOUT_STATES, *PAYMENT_STATES, *ATTEMPT_STATES}))
"""Statuses of records. As texts they are in nearly every body, as in `completed_at`."""

LONGEST = 400
"""Characters of a search, at most."""

MOST = 12
"""Terms of a search, at most: each is tested with every entry."""

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

    def amount(self, record_id: str) -> Decimal | None:
        """The amount, None for an unknown record."""

    def was_tried(self, record_id: str, event: str) -> bool:
        """True if a webhook of this record and event was tried."""

    def was_delivered(self, webhook_id: str) -> bool:
        """True if a receiver accepted the webhook at last."""


EntryTest = Callable[[Item, RecordFacts], bool]


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

    def tester(self, facts: RecordFacts) -> Callable[[Item], bool] | None:
        """Make the test of an entry; None when every entry fits."""
        tests = [
            (term.test, term.excludes) for term in sorted(self.terms, key=lambda term: term.name in _COSTLY)
        ]
        if not tests:
            return None
        if len(tests) == 1:
            test, excludes = tests[0]
            return lambda item: test(item, facts) is not excludes
        return lambda item: all(test(item, facts) is not excludes for test, excludes in tests)


def read_query(text: str) -> SearchQuery:
    """Read a search."""
    if len(text) > LONGEST:
        return SearchQuery(faults=(f"A search has at most {LONGEST} characters, not {len(text):,}.",))
    terms: list[SearchTerm] = []
    faults: list[str] = []
    tokens = [token for token in _TOKEN.finditer(text) if token[0]]
    # several words look through one entry after the other, a single one as far as it has to
    texts_of = _texts if len(tokens) == 1 else lru_cache(1)(lambda *of: tuple(_texts(*of)))
    for token in tokens:
        try:
            terms.append(_term(token[0], bool(token[1]), (token[2] or "").lower(), token[3], texts_of))
        except UnknownWord as unknown:
            faults.append(f"{token[0]}: {unknown}.")
    if len(terms) > MOST:
        faults.append(f"A search has at most {MOST} terms, not {len(terms)}.")
    return SearchQuery(tuple(terms), tuple(faults))


def _term(
    text: str, excludes: bool, name: str, said: str, texts_of: Callable[..., Iterable[str]]
) -> SearchTerm:
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
        test = _word(unescaped(value) if quoted else value, texts_of)
    elif name == "key" and quoted:
        test = _key(value, str)  # the key itself, in which capitals count
    else:
        test = TERMS[name].read(value)
    return SearchTerm(name, value, text, excludes, test)


def _is_kind(term: SearchTerm) -> bool:
    return term.name == "is" and not term.excludes


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


def _reference(value: str) -> EntryTest:
    fits, literal = glob(value), max(glob_parts(value), key=len).lower()

    def test(item: Item, facts: RecordFacts) -> bool:
        if not isinstance(item, LoggedExchange):
            return fits(facts.name(_record(item)))
        if any(fits(facts.name(record)) for record in item.records):
            return True
        body = item.body or b""
        if literal not in _small(body) and b"\\" not in body:
            return False  # saves most of the time: reading the JSON takes ten times as long
        sent = _sent(item, body)
        name = sent.get("reference") or sent.get("entity_id")
        return isinstance(name, str) and fits(name)

    return test


def _amount(value: str) -> EntryTest:
    compare, bound = read_bound(value)
    if not _AMOUNT.fullmatch(bound):
        raise UnknownWord("not an amount; as in amount:>1000 or amount:25.50")
    wanted = Decimal(bound.replace(",", ""))

    def test(item: Item, facts: RecordFacts) -> bool:
        amounts = _amounts(item, facts)
        return any(compare(amount, wanted) for amount in amounts if amount is not None)

    return test


def _amounts(item: Item, facts: RecordFacts) -> list[Decimal | None]:
    if not isinstance(item, LoggedExchange):
        return [facts.amount(_record(item))]
    if item.records:
        return [facts.amount(record) for record in item.records]
    amount = _sent(item, item.body or b"").get("amount")
    try:
        sent = Decimal(str(amount))
    except InvalidOperation:
        return []
    return [sent] if sent.is_finite() else []


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
    if value.lower() not in KINDS:
        raise UnknownWord(f"no such kind ({near(value.lower(), tuple(KINDS))})")
    return KINDS[value.lower()]


def _failed(item: Item, facts: RecordFacts) -> bool:
    if isinstance(item, LoggedExchange):
        return outcome_of(item.log.status, item.log.fault) != "ok"
    if isinstance(item, Change):
        return item.after == "failed"
    return isinstance(item, WebhookTried) and not item.accepted and not facts.was_delivered(item.webhook_id)


def _is_webhook(item: Item, facts: RecordFacts) -> bool:
    """True for a try, and for what is due and was not tried: once it was, the try stands for it."""
    if isinstance(item, Delivery):
        return not facts.was_tried(item.record_id, item.event)
    return isinstance(item, WebhookTried)


KINDS: Mapping[str, EntryTest] = {
    "request": lambda item, _: isinstance(item, LoggedExchange),
    "record": lambda item, _: isinstance(item, Change),
    "webhook": _is_webhook,
    "failed": _failed,
}


def _texts(item: Item, facts: RecordFacts) -> Iterator[str]:
    """What is looked through for a word, in small letters: address, ids, event, the record's name, bodies."""
    if isinstance(item, LoggedExchange):
        log, answer = item.log, item.answer
        said = (log.method, log.path, log.request_id, log.idempotency_key, log.operation, log.fault)
        yield " ".join(filter(None, said)).lower()
        yield _small(item.body or b"")
        yield _small(answer.body if answer else b"")
    else:
        record = _record(item)
        state = item.after if isinstance(item, Change) else item.event
        own = item.webhook_id if isinstance(item, WebhookTried) else ""
        yield f"{own} {record} {state} {facts.root(record)} {facts.name(record)}".lower()


def _small(body: bytes) -> str:
    return body.decode("utf-8", "replace").lower()


def _word(value: str, texts_of: Callable[..., Iterable[str]]) -> EntryTest:
    """The test for a text, as it is and as JSON writes it."""
    low = value.lower()
    ways = tuple({low, *(json.dumps(text)[1:-1].lower() for text in (value, low))})
    is_number = low.isdecimal()

    def test(item: Item, facts: RecordFacts) -> bool:
        if is_number and isinstance(item, LoggedExchange) and low == str(_http(item)):
            return True
        for text in texts_of(item, facts):  # no generator: it costs a third of a search
            for one in ways:
                if one in text:
                    return True
        return False

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
    "ref": TermKind("ref:june*", "reference of a record", _reference),
    "amount": TermKind("amount:>1000", "amount of a record", _amount),
    "took": TermKind("took:>1s", "time until the answer", _took),
    "fault": TermKind("fault:any", "fault that you made the sandbox simulate", _fault),
    "key": TermKind("key:order-7*", "idempotency key, or fingerprint of the API key", _key),
    "id": TermKind("id:po_…", "id of a request, record or webhook", _id),
    "event": TermKind("event:payout.*", "event of a webhook", _event),
    "is": TermKind("is:failed", "kind of entry: request, record, webhook or failed", _is),
}
_COSTLY = ("amount", "ref", "")
"""Terms that take long to test. They come last."""


def _record(item: Item) -> str:
    """The record that an entry is about, which is no request."""
    assert not isinstance(item, LoggedExchange)
    return item.id if isinstance(item, Change) else item.record_id


def _sent(item: LoggedExchange, body: bytes) -> Mapping[str, object]:
    """The body of a request that creates a record; empty for any other."""
    if not (item.log.operation or "").endswith(".create"):
        return {}
    try:
        value = decode(body)
    except RequestRefused:
        return {}
    return value if isinstance(value, dict) else {}
