"""The journal: the latest events in order, each with a sequence number; bounded in entries and in bytes.

Bodies, headers and long addresses of requests have a budget in bytes. When it is spent, they are dropped,
oldest first; the entry stays. Not safe for threads by itself: the sandbox's lock is held around every call.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from itertools import islice, takewhile

import attrs
import msgspec

from ._common.values import Answer, Change, Delivery, LoggedRequest
from ._webhooks.address_guard import NotSent
from ._webhooks.webhook import Webhook, WebhookTry

ENTRIES = 200_000
"""How many entries are kept: a payout has some four."""

BODY_BYTES = 64 * 1024 * 1024
"""How many bytes of requests are kept with them: bodies, request headers, addresses."""

_PAIR = 64
"""Bytes of memory that a header takes besides its characters."""

_LONGEST = 200
"""How many characters of an address and an idempotency key stay when the rest is dropped."""

_ID = re.compile(r"/([a-z]{2}_[A-Za-z0-9]+)", re.ASCII)
"""The id of a record in an address."""


class LoggedExchange(msgspec.Struct, eq=False, gc=False):
    """One request to the API and its answer.

    Once its bytes were dropped, `body` and `answer` are None, and `log` has no headers.
    """

    log: LoggedRequest
    real: float
    """The time in seconds of the machine's own clock, which also runs while the sandbox's is frozen."""
    body: bytes | None
    answer: Answer | None
    retry_after: str | None = None
    """The answer's `Retry-After`."""
    caused: int = 0
    """How many of the entries right before this one the request caused."""
    seconds: float | None = None
    """Seconds of the machine's time until the answer was handed over, or its caller gone; None before."""
    records: tuple[str, ...] = ()
    """Ids of the records in its address, and of those it created."""

    def __repr__(self) -> str:  # no account data
        return f"LoggedExchange(log={self.log!r}, real={self.real!r}, records={self.records!r})"

    @property
    def is_whole(self) -> bool:
        """True if the bytes are still kept."""
        return self.answer is not None

    @property
    def size(self) -> int:
        """The bytes that can be dropped."""
        log = self.log
        headers = sum(len(name) + len(value) + _PAIR for name, value in log.headers.items())
        bodies = len(self.body or b"") + (len(self.answer.body) if self.answer else 0)
        return bodies + headers + len(log.path) + len(log.method)

    def drop_bytes(self) -> None:
        """Drop all bytes that a line of the log does not need."""
        log, key = self.log, self.log.idempotency_key
        self.body = self.answer = None
        self.log = msgspec.structs.replace(
            log,
            method=log.method[:_LONGEST],
            path=log.path[:_LONGEST],
            idempotency_key=key and key[:_LONGEST],
            headers={},
        )


@attrs.frozen
class WebhookTried:
    """A webhook was tried once, or refused. `status` is what its receiver answered, None for nothing."""

    at: float
    webhook_id: str
    record_id: str
    event: str
    status: int | None
    error: str | None
    """The reason of a failure that the status does not show."""
    forged: bool = False
    only_listened: bool = False
    """True if the receiver declared that it only listens."""
    number: int = 1
    """Which of the webhook's tries it is."""

    @property
    def accepted(self) -> bool:
        """True if the receiver took it."""
        return self.error is None and self.status is not None and 200 <= self.status < 300


Item = LoggedExchange | WebhookTried | Change | Delivery


class JournalEntry(msgspec.Struct, frozen=True, gc=False):
    """One event, with its number (1 is the first)."""

    seq: int
    item: Item


class Journal:
    """The latest `entries` events, whose requests and answers keep up to `body_bytes` of bytes."""

    def __init__(self, entries: int = ENTRIES, body_bytes: int = BODY_BYTES) -> None:
        self._size = entries
        self._entries: deque[JournalEntry] = deque(maxlen=entries)
        self._bodies: deque[tuple[LoggedExchange, int]] = deque()
        self._room = self._budget = body_bytes
        self._cleared_to = 0
        self.last: int = 0
        """The number of the newest entry; 0 before the first."""
        self.changes: int = 0
        """How many times the journal has changed: entries, ends of requests, `clear`."""

    @property
    def first(self) -> int:
        """The number of the oldest entry that is kept."""
        return self.last - len(self._entries) + 1

    @property
    def gone(self) -> int:
        """How many entries had to make room."""
        return self.first - 1 - self._cleared_to

    def add(self, item: Item) -> None:
        """Add an event."""
        self.last += 1
        self.changes += 1
        self._entries.append(JournalEntry(self.last, item))

    def add_exchange(
        self, log: LoggedRequest, real: float, body: bytes, answer: Answer, caused: int = 0
    ) -> LoggedExchange:
        """Add an answered request and the count of entries it caused. Keeps its bytes while there is room."""
        retry_after = answer.headers.get("Retry-After") if answer.status == 429 else None
        exchange = LoggedExchange(log, real, body, answer, retry_after, caused)
        named = _ID.findall(log.path[:_LONGEST])
        exchange.records = tuple(dict.fromkeys([*named, *self._created(log.at, caused)]))
        size = exchange.size
        self._bodies.append((exchange, size))
        self._room -= size
        while self._room < 0 or len(self._bodies) > self._size:
            oldest, freed = self._bodies.popleft()
            oldest.drop_bytes()
            self._room += freed
        self.add(exchange)
        return exchange

    def end(self, exchange: LoggedExchange, seconds: float) -> None:
        """Note that the answer to a request, or its caller, has left."""
        exchange.seconds = seconds
        self.changes += 1

    def since(self, seq: int) -> list[JournalEntry]:
        """The entries after number `seq`, oldest first."""
        return list(takewhile(lambda entry: entry.seq > seq, reversed(self._entries)))[::-1]

    def newest_exchanges(self) -> Iterator[LoggedExchange]:
        """The requests, newest first; read while the journal stays as it is."""
        return (entry.item for entry in reversed(self._entries) if isinstance(entry.item, LoggedExchange))

    def with_causes(self, request_id: str) -> tuple[LoggedExchange, list[JournalEntry]]:
        """The request of this id, and the entries that it caused with its own; `LookupError`."""
        for entry in reversed(self._entries):
            item = entry.item
            if isinstance(item, LoggedExchange) and item.log.request_id == request_id:
                later = self.since(entry.seq - item.caused - 1)
                return item, [one for one in later if one.seq <= entry.seq]
        raise LookupError(f"no request {request_id!r} in the journal")

    def clear(self) -> None:
        """Drop every entry; the numbers continue."""
        self._entries.clear()
        self._bodies.clear()
        self._room, self._cleared_to = self._budget, self.last
        self.changes += 1

    def _created(self, at: float, caused: int) -> list[str]:
        """Ids of the records that were made at this moment among the latest `caused` entries."""
        latest = (entry.item for entry in islice(reversed(self._entries), caused))
        return [one.id for one in latest if isinstance(one, Change) and one.before is None and one.at == at]


def tried(webhook: Webhook, result: WebhookTry | NotSent, now: float) -> WebhookTried:
    """Make the entry of one try, whose result comes now; a refused address was never contacted."""
    status, error, at = (
        (None, str(result), now) if isinstance(result, NotSent) else (result.status, result.error, result.at)
    )
    return WebhookTried(
        at,
        webhook.id,
        webhook.record_id,
        webhook.event,
        status,
        error,
        forged=webhook.origin == "forged",
        only_listened=isinstance(result, WebhookTry) and result.only_listened,
        number=max(1, len(webhook.tries)),
    )
