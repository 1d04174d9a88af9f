"""Advice on trust: unsigned webhooks, and keys where others can read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile

from .._common.values import LoggedRequest
from .._journal import LoggedExchange, WebhookTried
from ._evidence import AdvisorEvidence, Finding, ObservedRequest, grouped, ids, observe

READ_BACK_WITHIN = 60.0
"""Seconds of sandbox time in which a delivery that was accepted should have been read back."""

_FINAL_EVENTS = ("completed", "failed", "expired", "refunded")
_BROWSER = ("origin", "sec-fetch-site")
"""Headers that browsers add and no server's HTTP library does."""


def webhook_not_read_back(evidence: AdvisorEvidence) -> Iterator[Finding]:
    """A delivery that was accepted, and its record not read afterwards."""
    due = [one for one in _accepted(evidence) if evidence.until >= one.at + READ_BACK_WITHIN]
    for record, unread in grouped(_unread(evidence, due), lambda one: one.record_id).items():
        yield Finding(
            "webhook_trusted",
            "money",
            f"{_listed(one.event for one in unread)} accepted, and {record} never read back",
            "Deliveries are not signed: everyone who knows the address can claim that a payment was made.",
            "Events, rule 3",
            "Take only the id from a delivery and read the record through the API before acting on it.",
            (),
            record,
            tuple(one.webhook_id for one in unread),
        )


def watched(evidence: AdvisorEvidence) -> int:
    """How many accepted deliveries may still be read back in time."""
    young = [one for one in _accepted(evidence) if evidence.until < one.at + READ_BACK_WITHIN]
    return len(_unread(evidence, young))


def _accepted(evidence: AdvisorEvidence) -> list[WebhookTried]:
    """The accepted deliveries about a final status."""
    return [one for one in evidence.accepted.values() if one.event.rpartition(".")[2] in _FINAL_EVENTS]


def _unread(evidence: AdvisorEvidence, tries: Sequence[WebhookTried]) -> list[WebhookTried]:
    """Those whose record was not read after its end."""
    if not tries:
        return []
    reads = _reads(evidence)
    return [
        one
        for one in tries
        if not reads(one.record_id, min(one.at, evidence.finals.get(one.record_id, one.at)))
    ]


def _listed(events: Iterable[str]) -> str:
    names = list(dict.fromkeys(events))
    return f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'}"


def key_in_a_browser(evidence: AdvisorEvidence) -> Iterator[Finding]:
    """Requests to the API that a browser sent."""
    from_browser = (sent for sent in evidence.requests if _from_browser(sent))
    for where, requests in grouped(from_browser, lambda one: one.log.headers.get("origin", "a page")).items():
        yield Finding(
            "key_in_browser",
            "secret",
            f"{_requests(len(requests))} to the API from a browser ({where[:80]})",
            "Everyone who opens the page can read the secret key, and a key moves money.",
            "Authentication, rule 6",
            "Call the API from your server; give the browser checkout.url only. Rotate an exposed key.",
            ids(requests),
            where[:80],
        )


def _requests(count: int) -> str:
    return f"{count} request{'s' if count > 1 else ''}"


def _from_browser(sent: ObservedRequest) -> bool:
    headers = sent.log.headers
    # a person who opens an address of the API sends no key
    if not any(name in headers for name in _BROWSER) or headers.get("sec-fetch-mode") == "navigate":
        return False
    # a preflight carries no key itself; it says that the page is about to send one
    if sent.log.method == "OPTIONS":
        return "authorization" in sent.log.headers.get("access-control-request-headers", "").lower()
    return True


def _reads(evidence: AdvisorEvidence) -> Callable[[str, float], bool]:
    """True if a record was read at a time or after it."""
    latest: dict[str, float] = {}
    for sent in evidence.requests:
        if _is_read(sent):
            for record in (*sent.path_ids, *sent.shown):
                latest[record] = max(sent.log.at, latest.get(record, sent.log.at))
    return lambda record, since: record in latest and latest[record] >= since


def _is_read(sent: ObservedRequest) -> bool:
    return (sent.log.method == "GET" or sent.is_live) and sent.log.status == 200


def first_read(newest: Iterable[LoggedExchange], record_id: str, since: float) -> LoggedRequest | None:
    """The first read of a record within a minute of a time; `newest` are the requests, newest first."""
    found = None
    for exchange in takewhile(lambda one: one.log.at >= since, newest):
        if exchange.log.at > since + READ_BACK_WITHIN:
            continue
        sent = observe(exchange)
        if _is_read(sent) and record_id in (*sent.path_ids, *sent.shown):
            found = sent.log
    return found
