"""The money ledger: finds faults in a program's handling of money, from its requests and the books.

    paid_again           a payout sent again under another identity while the first was in doubt, or two equal
                         ones without references to tell them apart
    key_reused           one idempotency key under two bodies (gap R)
    posted_without_key   a POST repeated without an idempotency key (Limits, Idempotency)
    reference_refused    a payout requested again after the service had refused its reference as taken
    collected_twice      two payments collected for one `entity_id`, or one by two attempts

Two equal payouts under two references, the first of them answered, are two payouts, such as salaries.
Pure: takes entries and books, returns findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, TypeVar

import attrs

from ..sandbox import PaymentEntry, PayoutEntry
from ..sandbox._common.values import Change
from ..sandbox._journal import JournalEntry, LoggedExchange
from ..sandbox._same_payout import UNNAMED, is_unnamed, payment_of
from ..sandbox.advisor._evidence import ObservedRequest, grouped, observe
from ._request_log import shown

T = TypeVar("T")

_COLLECTED: Final = frozenset({"completed", "partially_refunded"})
"""Statuses of payments whose money was collected and not refunded in full."""


@attrs.frozen
class MoneyFault:
    """A fault in a program's handling of money."""

    rule: str
    """Name of the rule in `RULES`."""
    text: str
    """The fault in words, with the requests and references, without account data."""


@attrs.frozen
class Evidence:
    """A program's requests, and their records in the service's books."""

    requests: Sequence[ObservedRequest]
    reads: Sequence[int]
    """Numbers in the journal of the program's reads of the list of payouts."""
    payouts: Sequence[PayoutEntry]
    payments: Sequence[PaymentEntry]
    completed_attempts: frozenset[str]


def evidence(
    entries: Sequence[JournalEntry],
    tenants: frozenset[str],
    payouts: Sequence[PayoutEntry],
    payments: Sequence[PaymentEntry],
) -> Evidence:
    """Collect the requests and records of some keys."""
    ended = frozenset(
        entry.item.id
        for entry in entries
        if isinstance(entry.item, Change) and (entry.item.kind, entry.item.after) == ("attempt", "completed")
    )
    sent = [
        (entry.seq, entry.item)
        for entry in entries
        if isinstance(entry.item, LoggedExchange) and entry.item.log.key in tenants
    ]
    whole = (observe(exchange, seq) for seq, exchange in sent if exchange.is_whole)
    requests = [request for request in whole if request.creates]
    lists = [(seq, exchange.log) for seq, exchange in sent if exchange.log.operation == "payouts.list"]
    reads = [seq for seq, log in lists if log.status == 200]
    return Evidence(requests, reads, payouts, payments, ended)


def findings(seen: Evidence) -> list[MoneyFault]:
    """Find every fault, rule by rule."""
    return [MoneyFault(name, text) for name, rule in RULES.items() for text in rule(seen)]


def _paid_again(seen: Evidence) -> Iterator[str]:
    failed = {(entry.key, entry.idempotency_key) for entry in seen.payouts if entry.status == "failed"}
    made = [each for each in seen.requests if each.log.operation == "payouts.create" and each.made]
    for alike in _groups(made, _payment_of):
        unanswered: list[ObservedRequest] = []
        for later in alike:
            for first in unanswered:
                if None in first.name or first.name not in failed:  # a failed one moved no money
                    yield from _same_again(seen.requests, first, later)
            if not later.answered or later.text("reference") is None:
                unanswered.append(later)


def _same_again(
    requests: Iterable[ObservedRequest], first: ObservedRequest, later: ObservedRequest
) -> Iterator[str]:
    names = first.text("reference"), later.text("reference")
    if is_unnamed(*names, answered=first.answered):
        yield f"{_described(first)} and {_described(later)} are one payout twice: {UNNAMED}"
    elif not _had_answer(requests, first, before=later):
        yield f"{_described(later)} pays anew what {_described(first)} had paid; its answer never arrived"


def _payment_of(request: ObservedRequest) -> Hashable:
    return request.log.key, payment_of(request.fields)


def _key_reused(seen: Evidence) -> Iterator[str]:
    for first, *others in _groups(
        [each for each in seen.requests if None not in each.name], attrgetter("name")
    ):
        body = first.log.operation, first.body
        other = next((each for each in others if (each.log.operation, each.body) != body), None)
        if other is not None:
            yield f"{_described(first)} and {_described(other)} differ under one idempotency key"


def _posted_without_key(seen: Evidence) -> Iterator[str]:
    bare = [each for each in seen.requests if None in each.name]
    for same in _groups(bare, lambda each: (each.log.key, each.log.operation, each.body)):
        yield f"{_described(same[0])} was sent {len(same)} times without an idempotency key"


def _reference_refused(seen: Evidence) -> Iterator[str]:
    payouts = [each for each in seen.requests if each.log.operation == "payouts.create"]
    named = [each for each in payouts if each.text("reference")]
    for same in _groups(named, lambda each: (each.log.key, each.text("reference"))):
        first = next((each for each in same if each.made), None)
        refused = next((each for each in same if first and _is_refusal(each, first)), None)
        if first is not None and refused is not None:
            for later in payouts:
                if later.seq > refused.seq and later.name != first.name and _asks_again(seen, refused, later):
                    yield f"{_described(later)} came after the reference of {_described(refused)} was refused"


def _is_refusal(later: ObservedRequest, first: ObservedRequest) -> bool:
    """Return whether the caller was told that the reference of `first` is taken."""
    return later.log.status == 409 and later.log.fault is None and later.name != first.name


def _asks_again(seen: Evidence, refused: ObservedRequest, later: ObservedRequest) -> bool:
    """Return whether a request is for the same payout: by its reference, or equal and nothing read before."""
    if (later.log.key, later.text("reference")) == (refused.log.key, refused.text("reference")):
        return True
    has_read = any(refused.seq < seq < later.seq for seq in seen.reads)
    return later.made and not has_read and _payment_of(later) == _payment_of(refused)


def _collected_twice(seen: Evidence) -> Iterator[str]:
    for payment in seen.payments:
        completed = [attempt for attempt in payment.attempts if attempt in seen.completed_attempts]
        if len(completed) > 1:
            yield f"payment {payment.id} was collected by {len(completed)} attempts"
    made = [each for each in seen.requests if None not in each.name and each.made]
    entities = {each.name: each.text("entity_id") for each in made}
    collected = Counter(
        (payment.key, entity)
        for payment in seen.payments
        if payment.status in _COLLECTED and (entity := entities.get((payment.key, payment.idempotency_key)))
    )
    for (_, entity), count in collected.items():
        if count > 1:
            yield f"{count} payments were collected for the entity {shown(entity)}"


def _had_answer(
    requests: Iterable[ObservedRequest], first: ObservedRequest, *, before: ObservedRequest
) -> bool:
    """Return whether a repeat of `first`, under its key, had been answered when the caller sent `before`."""
    repeats = (each for each in requests if each.name == first.name and each.seq < before.seq)
    return None not in first.name and any(each.answered for each in repeats)


def _groups(items: Iterable[T], key: Callable[[T], Hashable]) -> Iterator[list[T]]:
    """Group the items that share a key with another, oldest first."""
    return (same for same in grouped(items, key).values() if len(same) > 1)


def _described(request: ObservedRequest) -> str:
    reference, log = request.text("reference"), request.log
    return f"{log.request_id} ({log.operation}{f', reference {shown(reference)}' if reference else ''})"


RULES: Final = {
    "paid_again": _paid_again,
    "key_reused": _key_reused,
    "posted_without_key": _posted_without_key,
    "reference_refused": _reference_refused,
    "collected_twice": _collected_twice,
}
"""Each rule, by the name with which a test may allow it."""

REMEDIES: Final = {
    "paid_again": "give each payout a reference of its own, and call client.resolve(error) after an"
    " OutcomeUnknown, before anything is sent anew",
    "key_reused": "use an idempotency key for one request; without one, the client makes its own",
    "posted_without_key": "send the repeat under the first one's X-Idempotency-Key, as the clients here do",
    "reference_refused": "a reference that is taken has its payout: client.payouts.find(reference)",
    "collected_twice": "keep the order's first payment, and read it back before you make another",
}
"""The right thing to do, by rule."""
