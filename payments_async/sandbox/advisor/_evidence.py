"""The evidence for findings: requests with the facts that rules ask for, and what became of the records."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final, TypeVar

import attrs

from .._api.responses import KEY_REUSED
from .._common.json import decode
from .._common.masking import mask
from .._common.operations import OPERATIONS, find_operation
from .._common.values import Change, LoggedRequest, RequestRefused
from .._journal import JournalEntry, LoggedExchange, WebhookTried

G = TypeVar("G")
T = TypeVar("T")

_CREATIONS: Final = frozenset(operation.name for operation in OPERATIONS if operation.creates)
_LIVE: Final = frozenset(operation.name for operation in OPERATIONS if operation.record)
_ID: Final = re.compile(r'"id":"([A-Za-z0-9_-]{1,128})"')
_SAME_PAYOUT: Final = ("amount", "currency", "method", "instrument")
"""Two payouts in which these are equal pay the same sum to one person, the same way."""
_SHORT: Final = 40  # characters of a reference or an order's id in a text


@attrs.frozen
class Finding:
    """One break of the guidance: the mistake, its effect, and the fix."""

    rule: str
    """Its name, such as `paid_again`."""
    text: str
    """The mistake in words, with the requests and references, without account data."""
    why: str
    fix: str
    subject: str
    """The record, address or key that it is about."""
    requests: tuple[str, ...] = ()
    """Ids of the requests that show it, oldest first."""
    webhooks: tuple[str, ...] = ()
    """Ids of the deliveries that show it."""


@attrs.define(eq=False)  # not frozen, which takes twice the time to make
class ObservedRequest:
    seq: int  # number in the journal: a later request has a higher one
    log: LoggedRequest
    real: float
    body: bytes
    answer: bytes
    records: tuple[str, ...]
    """Ids of the records in its address, and of those it created."""

    @property
    def name(self) -> tuple[str | None, str | None]:
        """Its identity at the service: fingerprint of the API key, and idempotency key."""
        return self.log.key, self.log.idempotency_key

    @property
    def creates(self) -> bool:
        """True if the request is to create a record."""
        return self.log.operation in _CREATIONS

    @property
    def made(self) -> bool:
        """True if the request created a record, even when its sender did not get the answer."""
        return self.creates and 200 <= self.log.status < 300 and not self.log.replayed

    @property
    def answered(self) -> bool:
        """True if its sender got the answer that the record exists."""
        return 200 <= self.log.status < 300 and not self.in_doubt

    @property
    def in_doubt(self) -> bool:
        """True if its sender got no definite answer: none, a broken one, 429 or 5xx. A late one is one."""
        broken = self.log.fault is not None and self.log.fault.partition(":")[0] != "slow"
        return broken or self.log.status in (0, 429) or self.log.status >= 500

    @property
    def was_duplicate(self) -> bool:
        """True if its sender was told that its reference is taken."""
        is_conflict = self.creates and self.log.status == 409 and self.log.fault is None
        return is_conflict and not self.reuses_a_key

    @property
    def moved_nothing(self) -> bool:
        """True if its sender knows that it moved no money: it was refused, or kept out by a limit."""
        return self.log.status == 429 or (self.log.status >= 400 and not self.in_doubt)

    @property
    def reuses_a_key(self) -> bool:
        """True if its idempotency key was found to be another request's, in any of its forms (gap R)."""
        return self.log.replayed or KEY_REUSED.encode() in self.answer

    @cached_property
    def fields(self) -> Mapping[str, object]:
        """The fields of the record that it creates; empty for a body that is no JSON object."""
        try:
            body = decode(self.body) if self.creates else None
        except RequestRefused:
            return {}
        return body if isinstance(body, dict) else {}

    @property
    def reference(self) -> str | None:
        """The merchant's own name for the transaction: a payout's `reference`, a payment's `entity_id`."""
        name = self.fields.get("reference") or self.fields.get("entity_id")
        return name if isinstance(name, str) else None

    @cached_property
    def payment(self) -> Hashable:
        """What a payout pays, to whom and how: equal for two payouts that may be one payout twice."""
        return self.log.key, _comparable({name: self.fields.get(name) for name in _SAME_PAYOUT})

    @cached_property
    def path_ids(self) -> tuple[str, ...]:
        path = self.log.path.partition("?")[0]
        matched = find_operation(self.log.method, path) if self.log.operation else None
        return tuple(matched[1].values()) if matched else ()

    @property
    def shown(self) -> frozenset[str]:
        """Ids of the records in the answer."""
        return frozenset(_ID.findall(self.answer.decode("utf-8", "replace")))

    @property
    def reads(self) -> bool:
        """True if its sender got to know the state of records."""
        return (self.log.method == "GET" or self.log.operation in _LIVE) and self.log.status == 200

    @property
    def subject(self) -> str:
        return self.reference or self.log.path

    @property
    def words(self) -> str:
        """Its id, operation and reference, without account data."""
        named = f", reference {shown_name(self.reference)}" if self.reference else ""
        return f"{self.log.request_id} ({self.log.operation}{named})"


def shown_name(name: str) -> str:
    """A reference or an order's id in a text: short, quoted, account data masked."""
    return repr(str(mask(name))[:_SHORT])


def _comparable(value: object) -> Hashable:
    """Convert a JSON value to one that can be compared and hashed; null counts as absent."""
    if isinstance(value, Mapping):
        return frozenset((name, _comparable(item)) for name, item in value.items() if item is not None)
    if isinstance(value, list):
        return tuple(_comparable(item) for item in value)
    return value if isinstance(value, Hashable) else None


@attrs.frozen(eq=False)
class AdvisorEvidence:
    """The journal, sorted for the rules."""

    requests: Sequence[ObservedRequest]
    reached: Mapping[tuple[str, str], float]
    """When each record reached each of its statuses first, in sandbox time."""
    accepted: Mapping[tuple[str, str], WebhookTried]
    """By record and event: the first try that was answered with success."""
    until: float
    """The sandbox time at the end of the evidence, of the last entry at least."""


def evidence_from(entries: Sequence[JournalEntry], now: float = 0.0) -> AdvisorEvidence:
    """The evidence in a journal up to `now`.

    Requests and accepted webhooks up to the last request whose bytes the journal dropped are left out: what
    they were about is not known. Statuses are known without bytes, and stay.
    """
    requests: list[ObservedRequest] = []
    reached: dict[tuple[str, str], float] = {}
    accepted: dict[tuple[str, str], WebhookTried] = {}
    until = now
    for entry in entries:
        item = entry.item
        if isinstance(item, Change):
            until = max(until, item.at)
            reached.setdefault((item.id, item.after), item.at)
        elif isinstance(item, LoggedExchange) and not item.is_whole:
            requests.clear()
            accepted.clear()
        elif isinstance(item, LoggedExchange):
            until = max(until, item.log.at)
            requests.append(observe(item, entry.seq))
        elif isinstance(item, WebhookTried) and item.accepted and not (item.forged or item.only_listened):
            accepted.setdefault((item.record_id, item.event), item)
    return AdvisorEvidence(requests, reached, accepted, until)


def observe(exchange: LoggedExchange, seq: int = 0) -> ObservedRequest:
    """A request with the facts that rules ask for; `seq` is its number in the journal."""
    answer = exchange.answer.body if exchange.answer else b""
    return ObservedRequest(seq, exchange.log, exchange.real, exchange.body or b"", answer, exchange.records)


def grouped(items: Iterable[T], by: Callable[[T], G]) -> dict[G, list[T]]:
    """Requests or tries by the result of `by`, in order."""
    groups: dict[G, list[T]] = {}
    for item in items:
        groups.setdefault(by(item), []).append(item)
    return groups


def seconds_between(earlier: ObservedRequest, later: ObservedRequest) -> float:
    """Seconds between two requests, on the clock that shows more of them.

    So a frozen or fast clock never makes a patient program look hasty.
    """
    return max(later.log.at - earlier.log.at, later.real - earlier.real)


def ids(requests: Iterable[ObservedRequest]) -> tuple[str, ...]:
    return tuple(request.log.request_id for request in requests)
