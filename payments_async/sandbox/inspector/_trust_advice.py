"""Advice on trust: unsigned webhooks, and keys where others can read them."""

from __future__ import annotations

from collections.abc import Iterator

from ._evidence import Finding, Scene, Seen, grouped, ids

_READ_BACK_WITHIN = 60.0
"""Seconds of sandbox time in which a delivery that was accepted should have been read back."""

_FINAL_EVENTS = ("completed", "failed", "expired", "refunded")
_BROWSER = ("origin", "sec-fetch-site")
"""Headers that browsers add and no server's HTTP library does."""


def webhook_not_read_back(scene: Scene) -> Iterator[Finding]:
    """A delivery that was accepted while nobody read the record afterwards."""
    for (record, event), at in scene.accepted.items():
        told = event.rpartition(".")[2]
        if told not in _FINAL_EVENTS or scene.until < at + _READ_BACK_WITHIN:
            continue
        since = min(at, scene.finals.get(record, at))
        if not any(seen.log.at >= since and _shows(seen, record) for seen in scene.requests):
            yield Finding(
                "webhook_trusted",
                "money",
                f"{event} was accepted, and {record} was never read back",
                "Deliveries are not signed: anybody who knows the address can say that a payment was made.",
                "Events, rule 3",
                "Take only the id from a delivery and read the record through the API before acting on it.",
                (),
                record,
            )


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


def _shows(seen: Seen, record: str) -> bool:
    read = seen.log.method == "GET" or seen.is_live
    return read and seen.log.status == 200 and (record in seen.path_ids or record in seen.shown)
