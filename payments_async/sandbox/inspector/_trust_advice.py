"""Advice on trust: unsigned webhooks, and keys where others can read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from .._journal import Tried
from ._evidence import Finding, Scene, Seen, grouped, ids

_READ_BACK_WITHIN = 60.0
"""Seconds of sandbox time in which a delivery that was accepted should have been read back."""

_FINAL_EVENTS = ("completed", "failed", "expired", "refunded")
_BROWSER = ("origin", "sec-fetch-site")
"""Headers that browsers add and no server's HTTP library does."""


def webhook_not_read_back(scene: Scene) -> Iterator[Finding]:
    """A delivery that was accepted while nobody read the record afterwards."""
    final = [one for one in scene.accepted.values() if one.event.rpartition(".")[2] in _FINAL_EVENTS]
    due = [one for one in final if scene.until >= one.at + _READ_BACK_WITHIN]
    reads = _reads(scene) if due else None
    for record, told in _by_record(due).items():
        unread = [
            one for one in told if reads and not reads(record, min(one.at, scene.finals.get(record, one.at)))
        ]
        if unread:
            yield Finding(
                "webhook_trusted",
                "money",
                f"{_listed(one.event for one in unread)} accepted, and {record} never read back",
                "Deliveries are not signed: anybody who knows the address can say that a payment was made.",
                "Events, rule 3",
                "Take only the id from a delivery and read the record through the API before acting on it.",
                (),
                record,
                tuple(one.webhook_id for one in unread),
            )


def _by_record(tries: Iterable[Tried]) -> dict[str, list[Tried]]:
    """Tries by the record that they tell of, in order."""
    groups: dict[str, list[Tried]] = {}
    for one in tries:
        groups.setdefault(one.record_id, []).append(one)
    return groups


def _listed(events: Iterable[str]) -> str:
    names = list(dict.fromkeys(events))
    return f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'}"


def key_in_a_browser(scene: Scene) -> Iterator[Finding]:
    """Requests to the API that a browser sent."""
    sent = (seen for seen in scene.requests if _from_browser(seen))
    for where, seen in grouped(sent, lambda one: one.log.headers.get("origin", "a page")).items():
        yield Finding(
            "key_in_browser",
            "secret",
            f"{len(seen)} request{'s' if len(seen) > 1 else ''} to the API from a browser ({where[:80]})",
            "Whoever opens the page can read the secret key, and a key moves money.",
            "Authentication, rule 6",
            "Call the API from your server; give the browser checkout.url only. Rotate an exposed key.",
            ids(seen),
            where[:80],
        )


def _from_browser(seen: Seen) -> bool:
    headers = seen.log.headers
    # somebody who opens an address of the API to look at it sends no key
    if not any(name in headers for name in _BROWSER) or headers.get("sec-fetch-mode") == "navigate":
        return False
    # a preflight carries no key itself; it says that the page is about to send one
    if seen.log.method == "OPTIONS":
        return "authorization" in seen.log.headers.get("access-control-request-headers", "").lower()
    return True


def _reads(scene: Scene) -> Callable[[str, float], bool]:
    """Whether a record was read at a time or after it."""
    latest: dict[str, float] = {}
    for seen in scene.requests:
        if (seen.log.method == "GET" or seen.is_live) and seen.log.status == 200:
            for record in (*seen.path_ids, *seen.shown):
                latest[record] = max(seen.log.at, latest.get(record, seen.log.at))
    return lambda record, since: record in latest and latest[record] >= since
