"""Rate limiter of one limit class whose permits come from a store.

`StoreAccess` is what limiters see of the store client, and `StoreUser` what it sees of them: it calls these
methods on its own thread.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

import attrs

from ..errors import ConfigurationError
from .compare_and_set import LimitStore
from .limiter import RateLimiter
from .limits import LimitClass, Outage, RateLimits
from .permit_bucket import LAG, PermitBucket, PlannedRequest
from .store import LimitRow, PermitRequest, Reservation
from .waiters import ASKED, NEVER

AFTER_ATTEMPT: Final = 5.0
"""Seconds after an attempt's timeout in which its request may still be counted."""


class StoreUser(Protocol):
    """What the store client needs of those for whom it asks, such as limiters."""

    @property
    def has_waiters(self) -> bool:
        """True if a caller waits."""

    @property
    def has_reports(self) -> bool:
        """True if the store is to be told something before the process ends."""

    def plan(self, now: float) -> float:
        """When to be served next; `NEVER` while nothing is needed."""

    def dismiss(self) -> None:
        """Forget the plan, and call the store client again when something is needed."""

    async def exchange(self, store: LimitStore, monotonic: Callable[[], float]) -> None:
        """Tell and ask all that is due. Raises `StoreUnavailable`, ConfigurationError."""

    def lose(self, now: float, *, again: bool = False) -> None:
        """The store cannot be reached (`again`: still not)."""


class StoreAccess(Protocol):
    """What users of a store need of the store client."""

    worker: str
    """Random name of this process."""
    outage: Outage | None
    """Why the store cannot be reached."""

    def call(self, user: StoreUser) -> None:
        """Look at a user soon; from any thread."""

    def end(self) -> None:
        """End its thread as soon as no caller waits."""


@attrs.define(eq=False)
class Fleet:
    """What a process knows of those that share its limits through a store."""

    store: StoreAccess
    workers: int | None
    """Number of processes, if known: each takes its part while the store cannot be reached."""
    timeout: float
    """Longest seconds of an attempt."""

    def join(self, other: Fleet) -> None:
        """Take the cautious figures of both. Raises ConfigurationError for another store."""
        if other.store is not self.store:
            raise ConfigurationError(
                "the clients of one key in one process use different limit stores: give them one address"
            )
        self.workers = max(self.workers or 0, other.workers or 0) or None
        self.timeout = max(self.timeout, other.timeout)


class StoreLimiter(RateLimiter):
    """Lets requests through while a store grants permits."""

    __slots__ = ("_fleet", "_permits", "row")

    lag: float = LAG
    has_reports = False

    def __init__(
        self,
        fleet: Fleet,
        place: tuple[str, str],
        kind: LimitClass,
        limits: RateLimits,
        before: tuple[float, int],
    ) -> None:
        """`place`: address and fingerprint. `before`: until when so many requests, sent without the store,
        may still count.
        """
        sizes = limits.of(kind), limits.capacity(kind)
        self._permits = PermitBucket(*sizes, self._call_store, workers=fleet.workers, lingering=before)
        super().__init__(self._permits)
        self._fleet = fleet
        self.row: LimitRow = LimitRow(*place, kind)

    @property
    def outage(self) -> Outage | None:
        """Why the store cannot be reached."""
        return self._fleet.store.outage

    @property
    def part(self) -> int | None:
        """Requests a minute to which this process keeps in an outage; None when calls wait."""
        return self._permits.part

    def resize(self, limit: int, capacity: int) -> None:
        """Change the limits, and the number of processes as the fleet now knows it."""
        self._permits.workers = self._fleet.workers
        super().resize(limit, capacity)

    # For the store client: a StoreUser

    @property
    def has_waiters(self) -> bool:
        """True if a caller waits."""
        with self._lock:
            return self._queue.first() is not None

    def plan(self, now: float) -> float:
        """When to ask next; `NEVER` while nothing is needed."""
        with self._lock:
            permits = self._permits
            if permits.is_lost:
                permits.planned = ASKED
                return now
            planned = self._planned_request(now)
            is_news = permits.closing is not None or permits.ended_probe is not None
            permits.planned = now if is_news else NEVER if planned is None else planned.due
            return permits.planned

    def dismiss(self) -> None:
        """Forget the plan: the next caller without a permit calls the store client."""
        with self._lock:
            self._permits.planned = NEVER

    async def exchange(self, store: LimitStore, monotonic: Callable[[], float]) -> None:
        """Report, and reserve permits. Raises `StoreUnavailable`, ConfigurationError."""
        await self._report(store, monotonic())
        asked = monotonic()
        if (request := self._ask(asked)) is not None:
            answer = await store.reserve(self.row, request)
            self._take_answer(answer, request, asked, monotonic())

    async def _report(self, store: LimitStore, now: float) -> None:
        """Tell the store of a 429, or of a probe's end."""
        permits = self._permits
        with self._lock:
            closing, ended = permits.closing, permits.ended_probe
        if closing is not None:
            opens, pause = closing
            if opens > now:
                await store.close_after_429(self.row, opens - now, pause=pause)
            with self._lock:
                if permits.closing == closing:
                    permits.closing = None
        if ended is not None:
            await store.end_probe(self.row, ended[0], answered=ended[1])
            with self._lock:
                permits.ended_probe = None if permits.ended_probe is ended else permits.ended_probe

    def _ask(self, now: float) -> PermitRequest | None:
        """What to ask the store for now; None when nothing is due. In an outage it is asked in any case."""
        with self._lock:
            planned = self._planned_request(now)
            if self._permits.is_lost:
                planned = planned or PlannedRequest(now, 0, interactive=True)
            elif planned is None or planned.due > now:
                return None
            self._permits.planned = ASKED
            last, then = self._permits.last
            return PermitRequest(
                worker=self._fleet.store.worker,
                limit=self._permits.limit,
                wanted=planned.wanted,
                held=self._permits.held(now),
                lifetime=self._fleet.timeout + AFTER_ATTEMPT,
                interactive=planned.interactive,
                last=last,
                ago=now - then,
            )

    def _take_answer(self, answer: Reservation, request: PermitRequest, asked: float, now: float) -> None:
        """Pass on the store's answer."""
        with self._lock:
            self._permits.take_answer(answer, request, asked, now)
            self._call_all()

    def lose(self, now: float, *, again: bool = False) -> None:
        """The store cannot be reached (`again`: still not). Callers who wait look at why, and come back."""
        with self._lock:
            if again or not self._permits.is_lost:
                self._permits.lose(now)
                for waiter in (*self._queue.interactive, *self._queue.bulk):
                    self._queue.leave(waiter)
                    with suppress(RuntimeError):  # its loop was closed meanwhile
                        waiter.group.loop.call_soon_threadsafe(waiter.wake)

    def _call_store(self) -> None:
        self._fleet.store.call(self)

    def _planned_request(self, now: float) -> PlannedRequest | None:
        self._queue.first()  # leaves out the callers of loops that have ended
        return self._permits.planned_request(now, len(self._queue.interactive), len(self._queue.bulk))
