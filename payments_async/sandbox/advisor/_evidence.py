"""The evidence for findings: requests with the facts that rules ask for, and when records became final."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal, TypeVar

import attrs

from .._api.responses import KEY_REUSED
from .._common.json import decode
from .._common.operations import OPERATIONS, find_operation
from .._common.values import Change, LoggedRequest, RequestRefused
from .._journal import JournalEntry, LoggedExchange, WebhookTried
from .._records.records import ATTEMPT_STATES, PAYMENT_STATES, PAYOUT_STATES

Severity = Literal["money", "limits", "secret", "request"]
G = TypeVar("G")
T = TypeVar("T")

_TABLES: Mapping[str, Mapping[str, frozenset[str]]] = {
    "payout": PAYOUT_STATES,
    "payment": PAYMENT_STATES,
    "attempt": ATTEMPT_STATES,
}
_CREATIONS = frozenset(operation.name for operation in OPERATIONS if operation.creates)
_LIVE = frozenset(operation.name for operation in OPERATIONS if operation.record)
_RETRIED_FAULTS = frozenset({"slow"})
_ID = re.compile(r'"id":"([A-Za-z0-9_-]{1,128})"')
REPLAY_HEADER = "x-sandbox-replay-of"
"""Marks a request that the inspector sent again, with the id of the first one."""


@attrs.frozen
class Finding:
    """One break of the guidance: the mistake, its effect, the rule's place in the guidance, and the fix."""

    rule: str
    severity: Severity
    title: str
    why: str
    section: str
    fix: str
    requests: tuple[str, ...]
    """Ids of the requests that show it, oldest first."""
    subject: str
    """The record, address or key it is about."""
    webhooks: tuple[str, ...] = ()
    """Ids of the deliveries that show it."""


@attrs.define(eq=False)  # not frozen, which takes twice the time to make
class ObservedRequest:
    """One request as the Advisor and the money ledger of tests see it."""

    seq: int
    """Number in the journal: a later request has a higher one."""
    log: LoggedRequest
    real: float
    body: bytes
    answer: bytes
    retry_after: str | None

    @property
    def name(self) -> tuple[str | None, str | None]:
        """Its identity at the service: fingerprint of the API key, and idempotency key."""
        return self.log.key, self.log.idempotency_key

    @property
    def creates(self) -> bool:
        """True if the request creates a record."""
        return self.log.operation in _CREATIONS

    @property
    def is_live(self) -> bool:
        """True if the request is a live status or diagnostic operation."""
        return self.log.operation in _LIVE

    @property
    def is_list(self) -> bool:
        """True if the request reads a list."""
        return (self.log.operation or "").endswith(".list")

    @property
    def in_doubt(self) -> bool:
        """True if its sender got no definite answer: none, a broken one, 429 or 5xx."""
        broken = self.log.fault is not None and self.log.fault.partition(":")[0] not in _RETRIED_FAULTS
        return broken or self.log.status == 0 or self.log.status == 429 or self.log.status >= 500

    @property
    def was_refused(self) -> bool:
        """True if the request was definitely refused, so that sending it anew is a new request."""
        return not self.in_doubt and self.log.status >= 400

    @property
    def was_duplicate(self) -> bool:
        """True if the request was refused only because its reference was taken."""
        return self.creates and self.log.status == 409

    @property
    def reuses_a_key(self) -> bool:
        """True if its idempotency key was found to be another request's, in any of its forms (gap R)."""
        return self.log.replayed or KEY_REUSED.encode() in self.answer

    @property
    def moved_nothing(self) -> bool:
        """True if its sender knows that it moved no money: it was refused, or kept out by a limit."""
        return self.was_refused or self.log.status == 429

    @property
    def reference(self) -> str | None:
        """The merchant's own name for the transaction: a payout's `reference`, a payment's `entity_id`."""
        name = self.fields.get("reference") or self.fields.get("entity_id")
        return name if isinstance(name, str) else None

    @cached_property
    def fields(self) -> Mapping[str, object]:
        """The fields of the record that it creates; empty for a body that is no JSON object."""
        try:
            body = decode(self.body) if self.creates else None
        except RequestRefused:
            return {}
        return body if isinstance(body, dict) else {}

    @property
    def made(self) -> bool:
        """True if the request created a record, even when its sender did not get the answer."""
        return self.creates and 200 <= self.log.status < 300 and not self.log.replayed

    @property
    def answered(self) -> bool:
        """True if its sender got the answer that the record exists."""
        return 200 <= self.log.status < 300 and self.log.fault is None

    def text(self, name: str) -> str | None:
        """A field of the body that is text, else None."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else None

    @cached_property
    def path_ids(self) -> tuple[str, ...]:
        """The ids in its path."""
        path = self.log.path.partition("?")[0]
        matched = find_operation(self.log.method, path) if self.log.operation else None
        return tuple(matched[1].values()) if matched else ()

    @property
    def record(self) -> str | None:
        """The record that a read is about: the last id of its path."""
        return self.path_ids[-1] if self.path_ids else None

    @property
    def shown(self) -> frozenset[str]:
        """Ids of the records in the answer."""
        return frozenset(_ID.findall(self.answer.decode("utf-8", "replace")))


@attrs.frozen(eq=False)
class AdvisorEvidence:
    """The journal, sorted for the rules."""

    requests: tuple[ObservedRequest, ...]
    finals: Mapping[str, float]
    """When each record became final, in sandbox time."""
    accepted: Mapping[tuple[str, str], WebhookTried]
    """By record and event: the first try that was answered with success."""
    failed: frozenset[str]
    """Ids of the payouts that failed, and so moved no money."""
    until: float
    """The sandbox time at the end of the evidence, of the last entry at least."""


def evidence_from(entries: Sequence[JournalEntry], now: float = 0.0) -> AdvisorEvidence:
    """The evidence in a journal up to `now`.

    Requests that the inspector replayed are left out, and all entries up to the last one whose bytes the
    journal dropped: their content is no longer known.
    """
    requests: list[ObservedRequest] = []
    finals: dict[str, float] = {}
    accepted: dict[tuple[str, str], WebhookTried] = {}
    failed: set[str] = set()
    until = now
    whole_from = _whole_from(entries)
    for index, entry in enumerate(entries):
        item = entry.item
        if index < whole_from and not isinstance(item, Change):
            continue
        if isinstance(item, LoggedExchange):
            until = max(until, item.log.at)
            if REPLAY_HEADER not in item.log.headers:
                requests.append(observe(item, entry.seq))
        elif isinstance(item, Change):
            until = max(until, item.at)
            _note_final(item, finals)
            if (item.kind, item.after) == ("payout", "failed"):
                failed.add(item.id)
        elif isinstance(item, WebhookTried) and item.accepted and not (item.forged or item.only_listened):
            accepted.setdefault((item.record_id, item.event), item)
    return AdvisorEvidence(tuple(requests), finals, accepted, frozenset(failed), until)


def _whole_from(entries: Sequence[JournalEntry]) -> int:
    """Find the index after the last request whose bytes the journal has dropped."""
    for index in range(len(entries) - 1, -1, -1):
        item = entries[index].item
        if isinstance(item, LoggedExchange) and not item.is_whole:
            return index + 1
    return 0


def _note_final(change: Change, finals: dict[str, float]) -> None:
    table = _TABLES.get(change.kind, {})
    ended = change.after in table and (not table[change.after] or change.after == "completed")
    if ended:
        finals.setdefault(change.id, change.at)


def observe(exchange: LoggedExchange, seq: int = 0) -> ObservedRequest:
    """A request with the facts that rules ask for; `seq` is its number in the journal."""
    answer = exchange.answer.body if exchange.answer else b""
    return ObservedRequest(
        seq, exchange.log, exchange.real, exchange.body or b"", answer, exchange.retry_after
    )


def grouped(items: Iterable[T], by: Callable[[T], G]) -> dict[G, list[T]]:
    """Requests or tries by the result of `by`, in order."""
    groups: dict[G, list[T]] = {}
    for item in items:
        groups.setdefault(by(item), []).append(item)
    return groups


def repeated(items: Iterable[T], by: Callable[[T], G | None]) -> dict[G, list[T]]:
    """The same of groups of two and more, without the items for which `by` gives None."""
    firsts: dict[G, T] = {}
    groups: dict[G, list[T]] = {}
    for item in items:
        if (name := by(item)) is not None and (first := firsts.setdefault(name, item)) is not item:
            groups.setdefault(name, [first]).append(item)
    return groups


def seconds_between(earlier: ObservedRequest, later: ObservedRequest) -> float:
    """Seconds between two requests, on the clock that shows more of them."""
    return max(later.log.at - earlier.log.at, later.real - earlier.real)


def runs(requests: Sequence[ObservedRequest], within: float) -> Iterator[list[ObservedRequest]]:
    """Find the longest runs of two or more requests with less than `within` seconds between neighbours."""
    return stretches(requests, lambda earlier, later: seconds_between(earlier, later) < within)


def stretches(
    requests: Sequence[ObservedRequest], joined: Callable[[ObservedRequest, ObservedRequest], bool]
) -> Iterator[list[ObservedRequest]]:
    """Find the longest runs of two or more requests in which each is joined to the one before it."""
    run: list[ObservedRequest] = []
    for request in requests:
        if run and not joined(run[-1], request):
            if len(run) > 1:
                yield run
            run = []
        run.append(request)
    if len(run) > 1:
        yield run


def ids_of(finding: Finding) -> tuple[str, ...]:
    """Ids of the evidence of a finding: requests and deliveries."""
    return (*finding.requests, *finding.webhooks)


def ids(requests: Iterable[ObservedRequest]) -> tuple[str, ...]:
    """The ids of requests."""
    return tuple(request.log.request_id for request in requests)
