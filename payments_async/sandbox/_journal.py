"""The journal: all events in order, each with a sequence number; bounded in entries and in bytes.

A ring of the latest requests, and one of the changes, deliveries and tries, since a payout has several of
them for one request. Requests without success (refused, failed, faulted, unanswered) move on to a ring of
their own, since thousands of payouts would push them out. Bodies, headers and long addresses of requests have
a budget in bytes. When it is spent, they are dropped, oldest first; the entry stays. Not safe for threads by
itself: the sandbox's lock is held around every call.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, islice, takewhile
from operator import attrgetter

import attrs
import msgspec

from ._common.values import Answer, Change, Delivery, LoggedRequest
from ._webhooks.address_guard import NotSent
from ._webhooks.webhook import Webhook, WebhookTry

ENTRIES = 50_000
"""How many of the latest requests are kept, of other entries, and of older requests without success."""

_UNREAD = 15_000
"""How many entries the Advisor reads at once, at most: it keeps the service waiting."""

BODY_BYTES = 24 * 1024 * 1024
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


_SEQ = attrgetter("seq")


class JournalRing:
    """The latest `size` events of some kinds, each with its number."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.items: deque[Item] = deque()
        self.numbers: deque[int] = deque()
        self.gone = 0
        """How many events had to make room."""
        self.gone_to = 0
        """The number up to which events are gone."""

    def add(self, number: int, item: Item) -> Item | None:
        """Add the newest event. Returns the oldest if it had to make room."""
        oldest = self._drop() if len(self.items) == self.size else None
        self.items.append(item)
        self.numbers.append(number)
        return oldest

    def since(self, number: int) -> Iterator[JournalEntry]:
        """Those from this number on, newest first."""
        newest = map(JournalEntry, reversed(self.numbers), reversed(self.items))
        return takewhile(lambda entry: entry.seq >= number, newest)

    def clear(self, last: int) -> None:
        """Drop all of them; the number of the newest was `last`."""
        self.items.clear()
        self.numbers.clear()
        self.gone, self.gone_to = 0, last

    def _drop(self) -> Item:
        oldest = self.items.popleft()
        self.gone_to = self.numbers.popleft()
        self.gone += 1
        return oldest


class Journal:
    """The latest `entries` requests, as many other events, and as many earlier requests without success.

    Requests and answers keep up to `body_bytes` of bytes, older ones without success a quarter more.
    """

    def __init__(self, entries: int = ENTRIES, body_bytes: int = BODY_BYTES) -> None:
        self._entries = entries
        self._requests, self._others = self._rings = JournalRing(entries), JournalRing(entries)
        self._without_success: deque[JournalEntry] = deque(maxlen=entries)
        """Those that have left the ring of requests."""
        self._bodies: deque[tuple[LoggedExchange, int]] = deque()
        self._room = self._budget = body_bytes
        self._aside: deque[tuple[LoggedExchange, int]] = deque()
        """Older requests without success that keep their bytes."""
        self._aside_room = self._aside_budget = body_bytes // 4
        self._bytes = 0
        """The bytes kept of all requests so far."""
        self._read_to = self._read_bytes = 0
        self._wakers: dict[object, Callable[[], object]] = {}
        self.last: int = 0
        """The number of the newest entry; 0 before the first."""
        self.changes: int = 0
        """How many times the journal has changed: entries, ends of requests, `clear`."""

    @property
    def first(self) -> int:
        """The number of the entry from which on all are kept."""
        return max(ring.gone_to for ring in self._rings) + 1

    def add(self, item: Item) -> None:
        """Add an event."""
        self.last += 1
        self.changes += 1
        if not isinstance(item, LoggedExchange):
            self._others.add(self.last, item)
        elif oldest := self._requests.add(self.last, item):
            assert isinstance(oldest, LoggedExchange)  # as all in this ring
            if not oldest.is_success:
                self._without_success.append(JournalEntry(self._requests.gone_to, oldest))
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
            self._room += freed
            if oldest.is_success:
                oldest.drop_bytes()
            else:
                self._set_aside(oldest, freed)
        self.add(exchange)
        return exchange

    def _set_aside(self, exchange: LoggedExchange, size: int) -> None:
        """Keep the bytes of a request without success for longer, which say why; drop the oldest of these."""
        self._aside.append((exchange, size))
        self._aside_room -= size
        while self._aside_room < 0 or len(self._aside) > self._entries:
            oldest, freed = self._aside.popleft()
            oldest.drop_bytes()
            self._aside_room += freed

    def end(self, exchange: LoggedExchange, seconds: float) -> None:
        """Note that the answer to a request, or its caller, has left."""
        exchange.seconds = seconds
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
        start = max(seq + 1, self.first)
        entries = sorted(chain(*(islice(ring.since(start), limit) for ring in self._rings)), key=_SEQ)
        return entries if limit is None else entries[max(0, len(entries) - limit) :]

    @property
    def gone(self) -> int:
        """How many entries had to make room."""
        return self._requests.gone - len(self._without_success) + self._others.gone

    def kept(self) -> tuple[list[int], list[Item]]:
        """The numbers of all entries, oldest first, and the entries: from `first` on without a gap."""
        by_number = {entry.seq: entry.item for entry in self._without_success}
        for ring in self._rings:
            by_number.update(zip(ring.numbers, ring.items, strict=True))
        numbers = sorted(by_number)
        return numbers, [by_number[number] for number in numbers]

    def newest_exchanges(self) -> Iterator[LoggedExchange]:
        """The requests, newest first; read while the journal stays as it is."""
        return (entry.item for entry in self._newest() if isinstance(entry.item, LoggedExchange))

    def with_causes(self, request_id: str) -> tuple[LoggedExchange, list[JournalEntry]]:
        """The request of this id, and the entries that it caused with its own; `LookupError`."""
        for entry in self._newest():
            item = entry.item
            if isinstance(item, LoggedExchange) and item.log.request_id == request_id:
                first = entry.seq - item.caused
                caused = [one for one in self._others.since(first) if one.seq < entry.seq]
                return item, [*reversed(caused), entry]
        raise LookupError(f"no request {request_id!r} in the journal")

    def _newest(self) -> Iterator[JournalEntry]:
        """The requests, newest first."""
        return chain(self._requests.since(0), reversed(self._without_success))

    def clear(self) -> None:
        """Drop every entry; the numbers continue."""
        for ring in self._rings:
            ring.clear(self.last)
        self._without_success.clear()
        self._bodies.clear()
        self._aside.clear()
        self._room, self._aside_room = self._budget, self._aside_budget
        self.changes += 1
        self.wake()

    def _created(self, at: float, caused: int) -> list[str]:
        """Ids of the records that were made at this moment among the latest `caused` entries."""
        latest = islice(reversed(self._others.items), caused)
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
