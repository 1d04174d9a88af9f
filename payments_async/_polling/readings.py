"""What the waits of one secret key have read: shared by its clients, event loops and threads of a process.

A transaction is read no more often than every five seconds, however many wait for it (Limits, Polling
guidance). So a list has one reader at a time, who reads for all, and a record that was just read is not read
again.

The reader whose turn was last lets the others go first: short waits of one client cannot keep another's from
reading. A reader whose event loop stands still makes way after 120 s. A forked child begins without readings.
An error ends the waits of the client that met it, and no others.
"""

from __future__ import annotations

import asyncio
import os
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
from .schedule import FLOOR, PAGES_AT_ONCE, PollSchedule

READER_PATIENCE: Final = 15.0
"""Seconds without a page after which a list's reader, stuck somewhere, makes way for another."""
BUSY: Final = 1.0
"""Seconds after which to look again while another reads the list."""
YIELD: Final = 1.0
"""Seconds for which a list's last reader, and who came after its reading, let the others go first."""


@attrs.define(eq=False, repr=False)
class Subscription:
    """One caller waiting for one record. Made on the caller's event loop, shown readings on any."""

    id: str
    created_at: datetime | None
    ends: Callable[[Any], bool]
    """Whether the record, as just read, ends the wait."""
    future: asyncio.Future[Any]
    last: Any = None
    """The record as last read."""
    seen: bool = False
    """Whether it was read since the watch began."""
    until: float = NEVER
    """When the wait's time is over, on the monotonic clock."""

    @property
    def is_unknown(self) -> bool:
        """Whether nothing of the record is known but its id, as the caller wrote it."""
        return self.last is None and self.created_at is None

    def give_up(self) -> None:
        """The time is over: the future's result is None."""
        self._settle(None)

    def show(self, record: Any) -> bool:
        """Take a reading; whether it is news."""
        news: bool = record != self.last
        self.last, self.seen = record, True
        if self.ends(record):
            self._on_its_loop(self._settle, record)
        return news

    def fail(self, error: Exception) -> None:
        """End the wait with an error."""
        self._on_its_loop(self._refuse, error)

    def is_over(self, now: float) -> bool:
        """Whether the caller is gone, though it has not said so: its loop was closed, or stands still."""
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
    """The readings of one list: who waits for its records, when it was last read, who reads it now.

    Thread-safe. Times are the runtime's monotonic seconds.
    """

    def __init__(self) -> None:
        self.trouble: Exception | None = None
        """Why the latest reading came to nothing, or not to the list's end."""
        self.page_at = -NEVER
        """When its reader last began, or had a page."""
        self._watches: set[Subscription] = set()
        self._reader: object | None = None
        self._pages = 0
        self._schedule = PollSchedule()
        # Re-entrant: the garbage collector may close a forgotten wait at any point, and its `finally` leaves.
        self._lock = threading.RLock()

    def join(
        self, watch: Subscription, now: float, chance: float, *, just_read: bool, unchanged: bool
    ) -> None:
        """Show this watch every reading until it leaves. See `Sweep.join`; `chance` is for the jitter."""
        with self._lock:
            if not self._watches:
                self.trouble = None
                if just_read:
                    self._schedule.note_record(now, chance)
            self._watches.add(watch)
            if not unchanged:
                self._schedule.begin_anew()

    def leave(self, watch: Subscription) -> None:
        """The watch is over."""
        with self._lock:
            self._watches.discard(watch)

    def begin(self, reader: object, own: int, since: float, now: float) -> float:
        """Seconds for a reader to rest; 0.0 if it is to read the list now, and `end` then.

        It has `own` watches, and has waited `since` its last reading, or since it came.
        """
        with self._lock:
            if self._reader is not None and now - self.page_at < READER_PATIENCE:
                return BUSY
            due = self._schedule.due
            if since >= self._schedule.read_at and len(self._watches) > own:
                due += YIELD
            if now < due:
                return due - now
            self._reader, self.page_at, self._pages = reader, now, 0
            for watch in list(self._watches):
                if watch.is_over(now):
                    self._watches.discard(watch)
            return 0.0

    def watches(self) -> list[Subscription]:
        """Everyone's watches as they are now."""
        with self._lock:
            return list(self._watches)

    def had_page(self, pages: int, now: float) -> None:
        """The reader is alive, and has read so many pages."""
        with self._lock:
            self._pages, self.page_at = pages, now

    def end(self, reader: object, now: float, chance: float, *, news: bool | None) -> None:
        """The reading is over; `news`: whether a record had changed, None for one that was broken off."""
        with self._lock:
            if self._reader is reader:
                self._reader = None
            pages = min(self._pages, PAGES_AT_ONCE)  # the reading rested for the others itself
            self._schedule.note(now, chance, pages=pages, news=news)


@attrs.define(eq=False, repr=False)
class Reading:
    """One reading of one record."""

    began: float
    record: Any = None
    """None while it is under way, and when it failed."""


class RecordReadings:
    """The records that were read by themselves in the last five seconds. Thread-safe."""

    def __init__(self) -> None:
        self._readings: OrderedDict[tuple[str, ...], Reading] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, what: tuple[str, ...], since: float) -> Any:
        """The record, if a reading of it that began at `since` or later has ended; else None."""
        with self._lock:
            reading = self._readings.get(what)
        return None if reading is None or reading.began < since else reading.record

    def begin(self, what: tuple[str, ...], now: float) -> Reading | None:
        """A reading to be made now, its `record` filled in when it ends; None when it would be too early."""
        with self._lock:
            while self._readings and next(iter(self._readings.values())).began + FLOOR <= now:
                self._readings.popitem(last=False)
            if what in self._readings:
                return None
            reading = self._readings[what] = Reading(now)
            return reading


class Readings:
    """All that one key's waits share."""

    def __init__(self) -> None:
        self.payouts = ListReadings()
        self.intents = ListReadings()
        self.records = RecordReadings()


_READINGS: Final[WeakKeyDictionary[KeyLimiter, Readings]] = WeakKeyDictionary()


def readings_of(limiter: KeyLimiter) -> Readings:
    """What the waits of this limiter's key share; a forked child begins anew."""
    return _READINGS.setdefault(limiter, Readings())


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has no fork
    os.register_at_fork(after_in_child=_READINGS.clear)
