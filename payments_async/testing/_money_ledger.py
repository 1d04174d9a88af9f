"""The money ledger: what no program should do, found in what one asked for and what the books say.

    paid_again           a payout sent anew under another identity while the first was in doubt, or two alike
                         without references to tell them apart
    key_reused           one idempotency key under two bodies (gap R)
    posted_without_key   a POST repeated without an idempotency key (Limits, Idempotency)
    reference_refused    a payout asked for under a reference that the caller knew to be taken
    collected_twice      two payments collected for one `entity_id`, or one by two attempts

Two payouts alike under two references, the first of them answered, are two payouts: salaries look so.
Pure: entries and books in, findings out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

import attrs

from payments_async.sandbox import PaymentEntry, PayoutEntry
from payments_async.sandbox._journal import JournalEntry
from payments_async.sandbox.common.values import Change

from ._requests import CreateRequest, asks_in, canonical, shown

T = TypeVar("T")

_SAME_PAYOUT: Final = ("amount", "currency", "method", "instrument")
"""Two payouts with these alike go to one person: the same sum, the same way."""

_COLLECTED: Final = frozenset({"completed", "partially_refunded"})
"""Payments whose money is here; one refunded in full was given back."""


@attrs.frozen
class Finding:
    """One thing that a program should not do with money."""

    rule: str
    """Its name in `RULES`."""
    text: str
    """What happened, with the requests and references, and without account data."""


@attrs.frozen
class Evidence:
    """What a program asked for, and what the service's books say came of it."""

    asks: Sequence[CreateRequest]
    payouts: Sequence[PayoutEntry]
    payments: Sequence[PaymentEntry]
    completed_attempts: frozenset[str]


def evidence(
    entries: Sequence[JournalEntry],
    tenants: frozenset[str],
    payouts: Sequence[PayoutEntry],
    payments: Sequence[PaymentEntry],
) -> Evidence:
    """What the journal and the books tell about some keys."""
    ended = frozenset(
        entry.item.id
        for entry in entries
        if isinstance(entry.item, Change) and (entry.item.kind, entry.item.after) == ("attempt", "completed")
    )
    return Evidence(asks_in(entries, tenants), payouts, payments, ended)


def findings(seen: Evidence) -> list[Finding]:
    """Everything that is wrong, rule by rule."""
    return [Finding(name, text) for name, rule in RULES.items() for text in rule(seen)]


def _paid_again(seen: Evidence) -> Iterator[str]:
    failed = {(entry.key, entry.idempotency_key) for entry in seen.payouts if entry.status == "failed"}
    made = [ask for ask in seen.asks if ask.operation == "payouts.create" and ask.made]
    for alike in _groups(made, _payment_of):
        open_to_doubt: list[CreateRequest] = []
        for later in alike:
            for first in open_to_doubt:
                if first.key is None or first.name not in failed:  # a failed one moved no money
                    yield from _same_again(seen.asks, first, later)
            if not later.told or later.text("reference") is None:
                open_to_doubt.append(later)


def _same_again(asks: Iterable[CreateRequest], first: CreateRequest, later: CreateRequest) -> Iterator[str]:
    if first.text("reference") is None or later.text("reference") is None:
        yield f"{_told(first)} and {_told(later)} are one payout twice: no references tell them apart"
    elif not _was_told(asks, first, before=later):
        yield f"{_told(later)} pays anew what {_told(first)} had paid; its answer never arrived"


def _payment_of(ask: CreateRequest) -> Hashable:
    return ask.tenant, canonical({name: ask.body.get(name) for name in _SAME_PAYOUT})


def _key_reused(seen: Evidence) -> Iterator[str]:
    for same in _groups([ask for ask in seen.asks if ask.key is not None], lambda ask: ask.name):
        first = same[0]
        other = next((ask for ask in same if (ask.operation, ask.raw) != (first.operation, first.raw)), None)
        if other is not None:
            yield f"{_told(first)} and {_told(other)} differ under one idempotency key"


def _posted_without_key(seen: Evidence) -> Iterator[str]:
    bare = [ask for ask in seen.asks if ask.key is None]
    for same in _groups(bare, lambda ask: (ask.tenant, ask.operation, ask.raw)):
        yield f"{_told(same[0])} was sent {len(same)} times without an idempotency key"


def _reference_refused(seen: Evidence) -> Iterator[str]:
    asked = [ask for ask in seen.asks if ask.operation == "payouts.create" and ask.text("reference")]
    for same in _groups(asked, lambda ask: (ask.tenant, ask.text("reference"))):
        first = next((ask for ask in same if ask.made), None)
        for later in same:
            refused = later.status == 409 and not later.disturbed
            if first and refused and later.key != first.key and _was_told(seen.asks, first, before=later):
                yield f"{_told(later)} has the reference of {_told(first)}, which was answered"


def _collected_twice(seen: Evidence) -> Iterator[str]:
    for payment in seen.payments:
        completed = [attempt for attempt in payment.attempts if attempt in seen.completed_attempts]
        if len(completed) > 1:
            yield f"payment {payment.id} was collected by {len(completed)} attempts"
    entities = {ask.name: ask.text("entity_id") for ask in seen.asks if ask.key is not None and ask.made}
    collected = Counter(
        (payment.key, entity)
        for payment in seen.payments
        if payment.status in _COLLECTED and (entity := entities.get((payment.key, payment.idempotency_key)))
    )
    for (_, entity), count in collected.items():
        if count > 1:
            yield f"{count} payments were collected for the entity {shown(entity)}"


def _was_told(asks: Iterable[CreateRequest], first: CreateRequest, *, before: CreateRequest) -> bool:
    """Whether the caller knew what came of `first` when it sent `before`."""
    return first.told or any(
        ask.told and first.key is not None and ask.name == first.name and ask.seq < before.seq for ask in asks
    )


def _groups(items: Iterable[T], key: Callable[[T], Hashable]) -> Iterator[list[T]]:
    """The items that share a key with another, oldest first."""
    found: defaultdict[Hashable, list[T]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return (same for same in found.values() if len(same) > 1)


def _told(ask: CreateRequest) -> str:
    reference = ask.text("reference")
    return f"{ask.request_id} ({ask.operation}{f', reference {shown(reference)}' if reference else ''})"


RULES: Final = {
    "paid_again": _paid_again,
    "key_reused": _key_reused,
    "posted_without_key": _posted_without_key,
    "reference_refused": _reference_refused,
    "collected_twice": _collected_twice,
}
"""Each rule by the name under which a test may allow it."""

REMEDIES: Final = {
    "paid_again": "give each payout a reference of its own, and call client.resolve(error) after an"
    " OutcomeUnknown, before anything is sent anew",
    "key_reused": "use an idempotency key for one request; without one, the client makes its own",
    "posted_without_key": "send the repeat under the first one's X-Idempotency-Key, as the clients here do",
    "reference_refused": "a reference that is taken has its payout: client.payouts.find(reference)",
    "collected_twice": "keep the order's first payment, and read it back before you make another",
}
"""What a program does instead, rule by rule."""
