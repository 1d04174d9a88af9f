"""Readings that the waits of one secret key share, across the clients, event loops and threads of a process.

A record is read at most every five seconds, however many waits there are (Limits, Polling guidance). So a
list has one reader at a time, which reads for all, and a record that was just read is not read again.

The last reader lets the others go first: short waits of one client cannot keep another client from reading.
A reader that gets no page for 15 s is replaced. A forked child begins without readings. An error ends
the waits of the client that had it, and no others.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, Final
from weakref import WeakKeyDictionary

import attrs

from .._rate_limit.key_limiter import KeyLimiter
from .._rate_limit.waiters import NEVER, running_loop
from .._runtime import event_loop, renewed_in_child
from .schedule import FLOOR, PAGES_AT_ONCE, PollSchedule

READER_PATIENCE: Final = 15.0
"""Seconds without a page after which another poller may read the list."""
BUSY: Final = 1.0
"""Seconds between two checks while another poller reads the list."""
YIELD: Final = 1.0
"""Seconds for which a list's last reader, and those that came after its reading, let the others go first."""


@attrs.define(eq=False, repr=False)
class Subscription:
    """One caller's wait for one record. Made on the caller's event loop; gets readings from any."""

    id: str
    created_at: datetime | None
    ends: Callable[[Any], bool]
    """Returns whether the record, as just read, ends the wait."""
    last: Any = None
    """The record as last read, or as the caller knows it."""
    seen: bool = False
    """True if the record was read since the subscription began."""
    until: float = NEVER
    """End of the wait's time, on the monotonic clock."""
    future: asyncio.Future[Any] = attrs.field(factory=lambda: event_loop().create_future())

    @property
    def is_unknown(self) -> bool:
        """True if only the record's id is known, as the caller wrote it."""
        return self.last is None and self.created_at is None

    def give_up(self) -> None:
        """End the wait without the record: its time is over."""
        self._settle(None)

    def show(self, record: Any) -> bool:
        """Take a reading; returns whether the record has changed."""
        news: bool = record != self.last
        self.last, self.seen = record, True
        if self.ends(record):
            self._on_its_loop(self._settle, record)
        return news

    def fail(self, error: Exception) -> None:
        """End the wait with an error."""
        self._on_its_loop(self._refuse, error)

    def is_over(self, now: float) -> bool:
        """Return whether the caller is gone without `leave`: its event loop was closed, or is stuck."""
        return now > self.until or self.future.get_loop().is_closed()

    def _on_its_loop(self, act: Callable[[Any], None], value: Any) -> None:
        loop = self.future.get_loop()
        if loop is running_loop():
            act(value)
        else:
            with suppress(RuntimeError):  # the loop was closed a moment ago
                loop.call_soon_threadsafe(act, value)

    def _settle(self, value: Any) -> None:
        if not self.future.done():
            self.future.set_result(value)

    def _refuse(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class ListReadings:
    """The readings of one list: its subscriptions, its schedule, and which poller reads it now.

    Thread-safe. Times are the runtime's monotonic seconds.
    """

    def __init__(self) -> None:
        self.problem: Exception | None = None
        """The error of the latest reading, or the reason why it did not reach the list's end."""
        self.page_at = -NEVER
        """Time at which the reader last began, or got a page."""
        self._subscriptions: set[Subscription] = set()
        self._reader: object | None = None
        self._pages = 0
        self._schedule = PollSchedule()
        # Re-entrant: the garbage collector may close a forgotten wait at any point, and its `finally` leaves.
        self._lock = threading.RLock()

    def join(
        self, subscription: Subscription, now: float, chance: float, *, just_read: bool, unchanged: bool
    ) -> None:
        """Add a subscription. See `ListPoller.join`; `chance` sets the jitter."""
        with self._lock:
            if not self._subscriptions:
                self.problem = None
                if just_read:
                    self._schedule.note_record(now, chance)
            self._subscriptions.add(subscription)
            if not unchanged:
                self._schedule.begin_anew()

    def leave(self, subscription: Subscription) -> None:
        """Remove a subscription."""
        with self._lock:
            self._subscriptions.discard(subscription)

    def begin(self, reader: object, own: int, since: float, now: float) -> float:
        """Seconds for a poller to wait; 0.0 if it is to read the list now, and to call `end` afterwards.

        Args:
            reader: identifies the poller.
            own: number of the poller's subscriptions.
            since: end of the poller's last reading, or its start.
            now: the time.
        """
        with self._lock:
            if self._reader is not None and now - self.page_at < READER_PATIENCE:
                return BUSY
            due = self._schedule.due
            if since >= self._schedule.read_at and len(self._subscriptions) > own:
                due += YIELD
            if now < due:
                return due - now
            self._reader, self.page_at, self._pages = reader, now, 0
            for subscription in list(self._subscriptions):
                if subscription.is_over(now):
                    self._subscriptions.discard(subscription)
            return 0.0

    def subscriptions(self) -> list[Subscription]:
        """All subscriptions as they are now."""
        with self._lock:
            return list(self._subscriptions)

    def had_page(self, pages: int, now: float) -> None:
        """Note that the reader is alive, and how many pages it has read."""
        with self._lock:
            self._pages, self.page_at = pages, now

    def end(self, reader: object, now: float, chance: float, *, news: bool | None) -> None:
        """End a reading; `news`: whether a record had changed, None for an interrupted reading."""
        with self._lock:
            if self._reader is reader:
                self._reader = None
            pages = min(self._pages, PAGES_AT_ONCE)  # the reading itself paused for the others
            self._schedule.note(now, chance, pages=pages, news=news)


@attrs.define(eq=False, repr=False)
class Reading:
    """One reading of one record."""

    began: float
    record: Any = None
    """The record; None while the reading is under way, and when it failed."""


class RecordReadings:
    """Records that were read singly in the last five seconds. Thread-safe."""

    def __init__(self) -> None:
        self._readings: OrderedDict[tuple[str, ...], Reading] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, what: tuple[str, ...], since: float) -> Any:
        """The record, if a reading that began at `since` or later has ended; otherwise None."""
        with self._lock:
            reading = self._readings.get(what)
        return None if reading is None or reading.began < since else reading.record

    def begin(self, what: tuple[str, ...], now: float) -> Reading | None:
        """Begin a reading; None when it would be too early. The caller sets its `record`."""
        with self._lock:
            while self._readings and next(iter(self._readings.values())).began + FLOOR <= now:
                self._readings.popitem(last=False)
            if what in self._readings:
                return None
            reading = self._readings[what] = Reading(now)
            return reading


class Readings:
    """The readings that all waits of one key share."""

    def __init__(self) -> None:
        self.payouts = ListReadings()
        self.intents = ListReadings()
        self.records = RecordReadings()


_READINGS: Final[WeakKeyDictionary[KeyLimiter, Readings]] = WeakKeyDictionary()


def readings_of(limiter: KeyLimiter) -> Readings:
    """The readings of this limiter's key; a forked child starts with none."""
    return _READINGS.setdefault(limiter, Readings())


renewed_in_child(_READINGS.clear)
