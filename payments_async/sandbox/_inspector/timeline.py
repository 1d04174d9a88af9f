"""The timeline of a payment or payout: what happened to it, in order, each thing in its lane. Pure.

A program sends requests, the service changes states, a receiver answers webhooks, a payer pays. The journal
has the requests and changes. For changes that it has dropped, the times come from the record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal
from urllib.parse import parse_qsl

import attrs

from .._checkout.session_view import CANCELLED_CODE
from .._common.masking import mask_path
from .._common.operations import CONSOLE
from .._common.values import Change, Delivery
from .._journal import Item, JournalEntry, LoggedExchange, WebhookTried
from .._records.records import AttemptRecord, PaymentRecord, PayoutRecord
from .._traffic import outcome_of
from .._webhooks import Webhook
from ..advisor._evidence import observe
from .activity import caused_by
from .filters import got, marks_of, tone, tried_tone

Lane = Literal["program", "service", "receiver", "payer"]
Reason = Callable[[LoggedExchange], str | None]
"""Gives the reason of a request's failure."""

_RECORD_STATES: Final = ("completed", "failed", "expired")
_ATTEMPT_STATES: Final = ("action_required", *_RECORD_STATES)
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
"""A reference that JSON writes in one way only."""
_DONE: Final[Mapping[str | None, str]] = {
    "approve_on_phone": "Approves on the phone",
    "collect_otp": "Enters the code",
    "complete_with_sdk": "Confirms the card",
    "display_payment_instructions": "Transfers the money",
    "embed_iframe": "Approves at the bank",
    "redirect_to_url": "Approves at the bank",
    "scan_qr_code": "Confirms the scanned code",
}
"""What a payer does for each action."""
_BEFORE: Final = 10**12
"""What the journal no longer holds comes before what it holds."""


@attrs.frozen
class TimelineNode:
    """One thing that happened, in the lane of who did it."""

    lane: Lane
    at: float
    title: str
    href: str | None = None
    result: str = ""
    tone: str = "idle"
    """The colour of the result."""
    marks: Sequence[tuple[str, str]] = ()
    """Colours and texts."""
    details: Sequence[str] = ()
    is_lost: bool = False
    """True for a request whose answer did not arrive whole."""
    seconds: float | None = None
    """How long it took, in seconds of the machine."""
    since: float | None = None
    """Seconds after the node before; None for the first."""
    times: int = 1
    """How often it happened, one after the other with the same result."""
    last: TimelineNode | None = None
    """The last of those."""

    @property
    def until(self) -> float:
        """When it happened last."""
        return self.last.at if self.last else self.at


@attrs.frozen
class TimelineSubject:
    """What a timeline is about, as far as a request can name it, and what is known of it besides."""

    names: tuple[str, ...]
    """Its id, and that of its checkout session."""
    key: str
    idempotency_key: str | None
    reference: str | None
    """The program's own name for it."""
    states: tuple[Change, ...]
    """The states of which the record itself keeps the time, its creation first."""
    attempts: Mapping[str, AttemptRecord] = attrs.field(factory=dict)
    has_checkout: bool = False

    @property
    def indexed(self) -> Sequence[str]:
        """The names under which the journal has entries about it."""
        key = () if self.idempotency_key is None else (self.idempotency_key,)
        return *self.names, *self.attempts, *key


@attrs.frozen
class Timeline:
    """Nodes, oldest first, and what is missing among them."""

    nodes: Sequence[TimelineNode]
    is_whole: bool
    """True if the journal reaches back to the creation."""


def payout_subject(payout: PayoutRecord) -> TimelineSubject:
    """A payout, as the subject of a timeline."""
    times = (
        (payout.created_at, "pending"),
        (payout.initiated_at, "processing"),
        (payout.completed_at, "completed"),
        (payout.failed_at, "failed"),
    )
    states = tuple(Change(at, "payout", payout.id, None, state) for at, state in times if at is not None)
    return TimelineSubject((payout.id,), payout.key, payout.idempotency_key, payout.reference, states)


def payment_subject(payment: PaymentRecord) -> TimelineSubject:
    """A payment with its attempts, as the subject of a timeline."""
    states = [Change(payment.created_at, "payment", payment.id, None, "pending")]
    for attempt in payment.attempts:
        states.append(Change(attempt.created_at, "attempt", attempt.id, None, "processing"))
        states.extend(_own_states(attempt, "attempt", _ATTEMPT_STATES))
    return TimelineSubject(
        names=(payment.id, payment.session.id) if payment.session else (payment.id,),
        key=payment.key,
        idempotency_key=payment.idempotency_key,
        reference=None,  # the service's name for it, which no request has
        states=(*states, *_own_states(payment, "payment", _RECORD_STATES)),
        attempts={attempt.id: attempt for attempt in payment.attempts},
        has_checkout=payment.channel == "checkout",
    )


def _own_states(record: AttemptRecord | PaymentRecord, kind: str, names: Iterable[str]) -> Iterator[Change]:
    for name in names:
        if (at := getattr(record, f"{name}_at")) is not None:
            yield Change(at, kind, record.id, None, name)


def timeline(
    subject: TimelineSubject, about: Sequence[JournalEntry], webhooks: Iterable[Webhook], why: Reason
) -> Timeline:
    """Everything that these entries, the webhooks and the record itself tell about a record."""
    placed = [
        *_requests(about, why),
        *_changes(subject, about),
        *_tries(about, {webhook.id: webhook for webhook in webhooks}),
    ]
    created = subject.states[0]
    known = {(entry.item.id, entry.item.after) for entry in about if isinstance(entry.item, Change)}
    return Timeline(_in_order(placed), is_whole=(created.id, created.after) in known)


def bodies_from(subject: TimelineSubject, items: Sequence[Item]) -> float | None:
    """The time up to which requests have no bodies to search; None if all have since the record was made."""
    for item in reversed(items):
        if isinstance(item, LoggedExchange) and not item.is_whole:
            return item.log.at if item.log.at >= subject.states[0].at else None
    return None


_Placed = tuple[float, float, TimelineNode]
"""A node with its time and, among those of one time, its place."""


def _in_order(placed: Iterable[_Placed]) -> list[TimelineNode]:
    """Sort nodes, join those that repeat the one before, and note the time between them."""
    nodes: list[TimelineNode] = []
    for _, _, node in sorted(placed, key=lambda one: one[:2]):
        before = nodes[-1] if nodes else None
        if before is None:
            nodes.append(node)
        elif _repeats(before, node):
            nodes[-1] = attrs.evolve(before, times=before.times + 1, last=node)
        else:
            nodes.append(attrs.evolve(node, since=node.at - before.until))
    return nodes


def _repeats(before: TimelineNode, node: TimelineNode) -> bool:
    """True for a request like the one before it, if both had the same plain success."""
    alike = (before.lane, before.title, before.result) == (node.lane, node.title, node.result)
    return alike and node.lane == "program" and node.tone == "ok" and not (before.marks or node.marks)


# What an entry is about


def entries_about(
    subject: TimelineSubject, indexed: Iterable[JournalEntry], items: Sequence[Item], numbers: Sequence[int]
) -> list[JournalEntry]:
    """The entries about a record: those of the journal's index, and requests that name it in their bodies.

    `items` are all that the journal holds, and `numbers` their numbers.
    """
    search = _Search(subject)
    entries = {entry.seq: entry for entry in indexed if search.is_ours(entry.item)}
    for seq, item in zip(numbers, items, strict=True):
        if isinstance(item, LoggedExchange) and seq not in entries and search.is_named(item):
            entries[seq] = JournalEntry(seq, item)
    return [entries[seq] for seq in sorted(entries)]


class _Search:
    """Finds a record in requests and answers: by its ids and its reference."""

    def __init__(self, subject: TimelineSubject) -> None:
        self._subject = subject
        self._ids = [name.encode() for name in subject.names]
        reference = subject.reference or ""
        self._plain = reference.encode() if _PLAIN.fullmatch(reference) else b""

    def is_ours(self, item: Item) -> bool:
        """True for what the index has, but for another caller's request with the same idempotency key."""
        if not isinstance(item, LoggedExchange) or item.log.key == self._subject.key:
            return True
        return any(name in item.records for name in self._subject.names)

    def is_named(self, exchange: LoggedExchange) -> bool:
        """True if the bodies of a request, or its query, name the record."""
        answer, body = exchange.answer, exchange.body
        if answer is None or body is None:
            return False
        if any(one in answer.body or one in body for one in self._ids):
            return True
        log, reference = exchange.log, self._subject.reference
        if reference is None or log.key != self._subject.key:
            return False
        query = log.path.partition("?")[2]
        if "reference" in query and ("reference", reference) in parse_qsl(query):
            return True
        may_have_it = log.operation == "payouts.create" and self._plain in body
        return may_have_it and observe(exchange).reference == reference


# Nodes


def _requests(about: Iterable[JournalEntry], why: Reason) -> Iterator[_Placed]:
    for entry in about:
        if isinstance(entry.item, LoggedExchange):
            # before what it caused
            yield entry.item.log.at, entry.seq - entry.item.caused - 0.5, _request(entry.item, why)


def _request(exchange: LoggedExchange, why: Reason) -> TimelineNode:
    log = exchange.log
    reason, (result, colour) = why(exchange), got(log.status, log.fault)
    return TimelineNode(
        lane="program",
        at=log.at,
        title=log.operation or f"{log.method} {mask_path(log.path)}"[:80],
        href=f"{CONSOLE}requests/{log.request_id}",
        result=result,
        tone=colour,
        marks=marks_of(log),
        details=[reason] if reason else [],
        is_lost=outcome_of(log.status, log.fault) == "unanswered",
        seconds=exchange.seconds,
    )


def _changes(subject: TimelineSubject, about: Sequence[JournalEntry]) -> Iterator[_Placed]:
    """The states of the record and its attempts, the journal's or its own, with the payer's steps."""
    requested = {caused.seq for index in range(len(about)) for caused in caused_by(about, index)}
    held = [(entry.seq, entry.item) for entry in about if isinstance(entry.item, Change)]
    known = {(change.id, change.after) for _, change in held}
    own = [(index - _BEFORE, state) for index, state in enumerate(subject.states)]
    for seq, change in [*(one for one in own if (one[1].id, one[1].after) not in known), *held]:
        attempt = subject.attempts.get(change.id)
        is_asked = seq in requested or (seq < 0 and not subject.has_checkout)
        if attempt is not None and (step := _payer_step(attempt, change, is_asked=is_asked)):
            yield change.at, seq - 0.25, TimelineNode("payer", change.at, step)
        if change.before != change.after or attempt is None:  # a second refund of a part
            yield change.at, seq, _state(change, attempt, is_own=seq < 0)


def _payer_step(attempt: AttemptRecord, change: Change, *, is_asked: bool) -> str | None:
    """What a payer did to bring about a change of an attempt; `is_asked` if a request did."""
    if change.before == change.after:
        return "Asks for another message"
    if change.after == "processing":
        return None if is_asked or attempt.is_failover else f"Pays with {attempt.method}"
    if attempt.action_required_at is None:
        return None
    if change.after == "completed":
        return _DONE.get(attempt.plan.outcome.action, "Confirms")
    code = attempt.failure.code if attempt.failure else None
    steps = {CANCELLED_CODE: "Cancels", "CUSTOMER_DECLINED": "Declines"}
    return steps.get(code or "") if change.after == "failed" else None


def _state(change: Change, attempt: AttemptRecord | None, *, is_own: bool) -> TimelineNode:
    details = []
    if attempt is not None and change.after == "processing":
        details = [attempt.method, *(["failed over"] if attempt.is_failover else [])]
    if attempt is not None and change.after == "failed" and attempt.failure is not None:
        details = [attempt.failure.code]
    return TimelineNode(
        lane="service",
        at=change.at,
        title=change.kind,
        href=f"#{change.id}" if attempt is not None else None,
        result=change.after,
        tone=tone(change.after),
        marks=[("idle", "kept by the record")] if is_own else [],
        details=details,
    )


def _tries(about: Iterable[JournalEntry], webhooks: Mapping[str, Webhook]) -> Iterator[_Placed]:
    """The tries of the record's webhooks, of those too that only the journal still knows."""
    numbers: dict[tuple[str, float], int] = {}
    """By the event and time of a delivery, and the webhook and number of a try."""
    for entry in about:
        item = entry.item
        if isinstance(item, Delivery):
            numbers[item.event, item.at] = entry.seq
        elif isinstance(item, WebhookTried):
            numbers[item.webhook_id, item.number] = entry.seq
            if item.webhook_id not in webhooks:
                yield item.at, entry.seq, _forgotten(item)
    for webhook in webhooks.values():
        for number, one in enumerate(webhook.tries, 1):
            node = attrs.evolve(
                _webhook(webhook, one.at),
                result=str(one.status or "no answer"),
                tone=tried_tone(one.status, one.error),
                details=[*([f"try {number}"] if number > 1 else []), *([one.error] if one.error else [])],
                seconds=one.seconds,
            )
            yield one.at, numbers.get((webhook.id, number), _BEFORE), node
        if not webhook.tries:
            at = webhook.first_at
            yield at, numbers.get((webhook.event, at), _BEFORE), _webhook(webhook, at)


def _webhook(webhook: Webhook, at: float) -> TimelineNode:
    """A webhook that was not tried yet, at the time of its first try, or never will be."""
    return TimelineNode(
        lane="receiver",
        at=at,
        title=webhook.event,
        href=f"{CONSOLE}webhooks/{webhook.id}",
        result=webhook.state.replace("_", " "),
        tone="bad" if webhook.is_over else "idle",
        marks=[] if webhook.origin == "due" else [("idle", webhook.origin)],
        details=[webhook.reason] if webhook.reason else [],
    )


def _forgotten(tried: WebhookTried) -> TimelineNode:
    """A try of a webhook that is no longer kept."""
    return TimelineNode(
        lane="receiver",
        at=tried.at,
        title=tried.event,
        result=str(tried.status or "no answer"),
        tone=tried_tone(tried.status, tried.error),
        marks=[("idle", "forged")] if tried.forged else [],
        details=[tried.error] if tried.error else [],
    )
