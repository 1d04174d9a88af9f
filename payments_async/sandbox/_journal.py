"""The journal: all events in order, each with a sequence number; bounded in entries and in bytes.

A ring of the latest entries, in the order of their numbers, with an index by record. Requests without success
(refused, failed, faulted, unanswered) move from it to a ring of their own, since thousands of payouts would
push them out. Bodies, headers and long addresses of requests have a budget in bytes. When it is spent, they
are dropped, oldest first; the entry stays. Not safe for threads by itself: the sandbox's lock is held around
every call.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

import attrs
import msgspec

from ._common.values import Answer, Change, Delivery, LoggedRequest
from ._traffic import Traffic, outcome_of
from ._webhooks.address_guard import NotSent
from ._webhooks.webhook import Webhook, WebhookTry

ENTRIES = 50_000
"""How many of the latest entries are kept, and of requests without success before them."""

_UNREAD = 15_000
"""How many entries the Advisor reads at once, at most: it keeps the service waiting."""

BODY_BYTES = 24 * 1024 * 1024
"""How many bytes of requests and answers are kept with them: bodies, request headers, addresses."""

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
    def names(self) -> Sequence[str]:
        """What it is about: records, and its idempotency key."""
        key = self.log.idempotency_key
        if key is None or key[:_LONGEST] in self.records:
            return self.records
        return *self.records, key[:_LONGEST]

    @property
    def is_success(self) -> bool:
        """True for a 2xx that its caller got without a fault."""
        return self.log.fault is None and 200 <= self.log.status < 300

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

    @property
    def accepted(self) -> bool:
        """True if the receiver took it."""
        return self.error is None and self.status is not None and 200 <= self.status < 300

    @property
    def names(self) -> Sequence[str]:
        """What it is about: the webhook and its record."""
        return self.webhook_id, self.record_id


Item = LoggedExchange | WebhookTried | Change | Delivery


class JournalEntry(msgspec.Struct, frozen=True, gc=False):
    """One event, with its number (1 is the first)."""

    seq: int
    item: Item


class JournalIndex:
    """The numbers of entries by record, webhook or idempotency key. Bounded by the entries that are kept.

    A name leads to its latest entry, and each entry to the one before it of each of its names. So an entry
    costs a few numbers, which the garbage collector does not visit.
    """

    def __init__(self) -> None:
        self._latest: dict[str, int] = {}
        self._earlier: deque[tuple[int, ...]] = deque()
        """For each entry that is kept and each of its names, the number of the entry before; 0 for none."""

    def __len__(self) -> int:
        return len(self._latest)

    def add(self, number: int, names: Sequence[str]) -> None:
        """Add the newest entry under its names, which differ."""
        latest = self._latest
        self._earlier.append(tuple([latest.get(name, 0) for name in names]))
        for name in names:
            latest[name] = number

    def drop(self, number: int, names: Sequence[str]) -> None:
        """Drop the oldest entry, which was added under these names."""
        self._earlier.popleft()
        for name in names:
            if self._latest[name] == number:
                del self._latest[name]

    def latest(self, name: str) -> int:
        """The number of the latest entry of this name; 0 for none."""
        return self._latest.get(name, 0)

    def earlier(self, index: int, names: Sequence[str], name: str) -> int:
        """The number of the entry of this name before the one at this index among those kept; 0 for none."""
        return self._earlier[index][names.index(name)]

    def clear(self) -> None:
        """Drop every entry."""
        self._latest.clear()
        self._earlier.clear()


class Journal:
    """The latest `entries` events, and as many earlier requests without success.

    Requests and answers keep up to `body_bytes` of bytes.
    """

    def __init__(self, entries: int = ENTRIES, body_bytes: int = BODY_BYTES) -> None:
        self._entries = entries
        self._ring: deque[Item] = deque(maxlen=entries)
        self._without_success: deque[tuple[int, LoggedExchange]] = deque(maxlen=entries)
        """Requests that have left the ring, with their numbers."""
        self._bodies: deque[tuple[LoggedExchange, int]] = deque()
        self._room = self._budget = body_bytes
        self._bytes = 0
        """The bytes kept of all requests so far."""
        self._index = JournalIndex()
        self._read_to = self._read_bytes = 0
        self._wakers: dict[object, Callable[[], object]] = {}
        self.last: int = 0
        """The number of the newest entry; 0 before the first."""
        self.changes: int = 0
        """How many times the journal has changed: entries, ends of requests, `clear`."""
        self.traffic: Traffic = Traffic()
        """The counts of the last fifteen minutes."""

    @property
    def first(self) -> int:
        """The number of the entry from which on all are kept."""
        return self.last - len(self._ring) + 1

    def add(self, item: Item) -> None:
        """Add an event."""
        if len(self._ring) == self._entries:
            oldest = self._ring[0]
            self._index.drop(self.first, _names(oldest))
            if isinstance(oldest, LoggedExchange) and not oldest.is_success:
                self._without_success.append((self.first, oldest))
        self._ring.append(item)
        self.last += 1
        self._index.add(self.last, _names(item))
        self.changes += 1
        if self._wakers:
            self.wake()

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
        self._bytes += size
        while self._room < 0 or len(self._bodies) > self._entries:
            oldest, freed = self._bodies.popleft()
            oldest.drop_bytes()
            self._room += freed
        self.traffic.add_request(log.at, outcome_of(log.status, log.fault))
        self.add(exchange)
        return exchange

    def add_try(self, item: WebhookTried) -> None:
        """Add the try of a webhook."""
        self.traffic.add_try(item.at, accepted=item.accepted)
        self.add(item)

    def end(self, exchange: LoggedExchange, seconds: float) -> None:
        """Note that the answer to a request, or its caller, has left."""
        exchange.seconds = seconds
        self.traffic.add_duration(exchange.log.at, seconds)
        self.changes += 1
        self.wake()

    def mark_read(self) -> None:
        """Mark every entry so far as read by the Advisor."""
        self._read_to, self._read_bytes = self.last, self._bytes

    @property
    def is_mostly_unread(self) -> bool:
        """True if three quarters of the journal are newer than `mark_read`: read them before they go."""
        entries, size = self.last - self._read_to, self._bytes - self._read_bytes
        return entries > min(_UNREAD, self._entries * 3 // 4) or size * 4 > self._budget * 3

    def since(self, seq: int, limit: int | None = None) -> list[JournalEntry]:
        """The entries after number `seq`, oldest first; with `limit` the newest so many of them."""
        start = max(seq - self.first + 1, 0)
        if limit is not None:
            start = max(start, len(self._ring) - limit)
        wanted = len(self._ring) - start
        if wanted <= 0:
            return []
        newest = islice(reversed(self._ring), wanted)
        items = list(newest)
        items.reverse()
        return [JournalEntry(self.last - wanted + 1 + offset, item) for offset, item in enumerate(items)]

    def about(self, *names: str) -> list[JournalEntry]:
        """The entries about any of these records, webhooks and idempotency keys, oldest first."""
        first, ring = self.first, self._ring
        entries: dict[int, Item] = {}
        wanted = frozenset(names)
        for name in wanted:
            seq = self._index.latest(name)
            while seq >= first:
                item = entries[seq] = ring[seq - first]
                seq = self._index.earlier(seq - first, _names(item), name)
        older = [JournalEntry(*one) for one in self._without_success if not wanted.isdisjoint(one[1].names)]
        return [*older, *(JournalEntry(seq, entries[seq]) for seq in sorted(entries))]

    @property
    def oldest(self) -> Item | None:
        """The oldest entry from which on all are kept."""
        return self._ring[0] if self._ring else None

    def items(self) -> list[Item]:
        """All entries, oldest first: requests without success, then from the number `first` on all others."""
        return [*(exchange for _, exchange in self._without_success), *self._ring]

    def numbers(self) -> list[int]:
        """The numbers of `items`."""
        return [*(number for number, _ in self._without_success), *range(self.first, self.last + 1)]

    def newest(self) -> Iterator[tuple[int, Item]]:
        """All entries with their numbers, newest first; read while the journal stays as it is."""
        ring = zip(range(self.last, 0, -1), reversed(self._ring), strict=False)
        return chain(ring, reversed(self._without_success))

    def newest_exchanges(self) -> Iterator[LoggedExchange]:
        """The requests, newest first; read while the journal stays as it is."""
        return (item for _, item in self.newest() if isinstance(item, LoggedExchange))

    def with_causes(self, request_id: str) -> tuple[LoggedExchange, list[JournalEntry]]:
        """The request of this id, and the entries that it caused with its own; `LookupError`."""
        newest = self.newest()
        for number, item in newest:
            if isinstance(item, LoggedExchange) and item.log.request_id == request_id:
                first = number - item.caused  # what it caused may be gone: others stand in its places
                caused = [JournalEntry(*entry) for entry in islice(newest, item.caused) if entry[0] >= first]
                return item, [*reversed(caused), JournalEntry(number, item)]
        raise LookupError(f"no request {request_id!r} in the journal")

    def clear(self) -> None:
        """Drop every entry; the numbers continue."""
        self._ring.clear()
        self._without_success.clear()
        self._index.clear()
        self._bodies.clear()
        self._room = self._budget
        self.traffic.clear()
        self.changes += 1
        self.wake()

    def _created(self, at: float, caused: int) -> list[str]:
        """Ids of the records that were made at this moment among the latest `caused` entries."""
        latest = islice(reversed(self._ring), caused)
        return [one.id for one in latest if isinstance(one, Change) and one.before is None and one.at == at]

    def wake_once(self, ticket: object, wake: Callable[[], object]) -> None:
        """Call `wake` with the next entry, once; from whichever thread it comes."""
        self._wakers[ticket] = wake

    def forget(self, ticket: object) -> None:
        """Remove the wake-up of a `ticket`."""
        self._wakers.pop(ticket, None)

    def wake(self) -> None:
        """Wake who waits for an entry: one came, or the time has changed."""
        wakers, self._wakers = self._wakers, {}
        for wake in list(wakers.values()):  # a copy: another thread may be about to wait
            wake()


def _names(item: Item) -> Sequence[str]:
    """What an entry is about."""
    if isinstance(item, Change):
        return (item.id,)
    return (item.record_id,) if isinstance(item, Delivery) else item.names


def tried(webhook: Webhook, result: WebhookTry | NotSent, now: float) -> WebhookTried:
    """Make the entry of one try; a refused address was never contacted."""
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
    )
