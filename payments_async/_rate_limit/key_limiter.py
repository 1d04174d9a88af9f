"""All rate limiters of one secret key. Chooses those that a request passes and those that a 429 closes.

A request passes the narrow limiter first (one record's, then the class's). A 429 for a live operation (sync,
requery, inspect) closes the record's limiter. The class closes too when another record is closed at that
time, or when the request was the class's probe. Limiters of records are forgotten when they are idle and
were not used for a minute.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..errors import ConfigurationError
from .limiter import ORDINARY, RateLimiter, TokenBucket
from .limits import WINDOW, BucketClass, LimitClass, LimitSnapshot, RateLimits

if TYPE_CHECKING:
    from .store_client import LimitStoreClient

CLASSES: Final[tuple[LimitClass, ...]] = ("write", "read", "diagnostic", "refund_availability")
SWEEP_FROM: Final = 256
"""Number of records' limiters from which idle ones are dropped; next at twice the number that stayed."""


Grants = Sequence[tuple[RateLimiter, int]]
"""The limiters that a request has passed, the narrow one first, each with its grant."""


class RecordLimiters:
    """A limiter for each attempt, intent or payout that live operations ask about; idle ones are forgotten.

    Thread-safe.
    """

    def __init__(self, limits: RateLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._limiters: dict[str, tuple[RateLimiter, float]] = {}  # (limiter, time of the last fetch)
        self._refused: dict[RateLimiter, float] = {}  # end of the refusal
        self._sweep_at = SWEEP_FROM

    def fetch(self, record: str, now: float) -> RateLimiter:
        with self._lock:
            known = self._limiters.get(record)
            if known is None and len(self._limiters) >= self._sweep_at:
                self._sweep(now)
            limiter = make_limiter(self._limits, "record") if known is None else known[0]
            self._limiters[record] = limiter, now
        return limiter

    def refuses_others(self, limiter: RateLimiter, now: float, seconds: float) -> bool:
        """Note that this record is refused for `seconds`; returns whether other records are refused, too."""
        with self._lock:
            others = {
                other: until for other, until in self._refused.items() if until > now and other is not limiter
            }
            until = max(self._refused.get(limiter, now), now + seconds)
            self._refused = {**others, limiter: until}
        return bool(others)

    def resize(self, limits: RateLimits) -> None:
        with self._lock:
            self._limits = limits
            for limiter, _ in self._limiters.values():
                limiter.resize(limits.of("record"), limits.capacity("record"))

    def all(self) -> list[RateLimiter]:
        with self._lock:
            return [limiter for limiter, _ in self._limiters.values()]

    def forked(self) -> None:
        """Start a forked child with no limiters and a free lock."""
        self._lock = threading.Lock()
        for limiter in self.all():
            limiter.forked()
        self._limiters = {}
        self._refused = {}

    def _sweep(self, now: float) -> None:
        """Drop idle limiters, except those that a caller may have fetched and not entered yet."""
        self._limiters = {
            record: (limiter, fetched)
            for record, (limiter, fetched) in self._limiters.items()
            if now - fetched < WINDOW or not limiter.idle(now)
        }
        self._sweep_at = max(SWEEP_FROM, 2 * len(self._limiters))


class KeyLimiter:
    """All limiters of one secret key at one service address. Thread-safe, shared by every event loop."""

    def __init__(self, limits: RateLimits | None = None, place: tuple[str, str] = ("", "")) -> None:
        """`limits`: None means the service's own, until a client asks for others.

        `place`: the service's normalised address and the key's fingerprint.
        """
        self.limits: RateLimits = limits or RateLimits()
        """The limits in force, requests a minute."""
        self.store: LimitStoreClient | None = None
        """The client of the store through which processes share the limits; None without one."""
        self._place = place
        self._asked_for = limits is not None
        self._warned = False
        self._lock = threading.Lock()
        self._records = RecordLimiters(self.limits)
        self._classes: dict[LimitClass, RateLimiter]
        self._make_limiters()

    def limiters(self, kind: LimitClass, record: str | None, now: float) -> tuple[RateLimiter, ...]:
        """The limiters that a request has to pass, the narrow one first (Rate limits).

        `record` names the attempt, intent or payout of a live operation; other classes do not use it.
        """
        if record is None or kind != "diagnostic":
            return self._ways[kind]
        return (self._records.fetch(record, now), *self._ways[kind])

    def close_after_429(self, held: Grants, now: float, seconds: float) -> None:
        """End the grants after a 429: the narrow limiter closes for `seconds` (Errors, rule 1).

        The wide limiter closes too when this was its probe, or when the service refuses other records as
        well.
        """
        (narrow, grant), *rest = held
        narrow.close_after_429(grant, now, seconds)
        for limiter, grant in rest:
            live = limiter is self._classes["diagnostic"]
            if (live and self._records.refuses_others(narrow, now, seconds)) or grant > ORDINARY:
                limiter.close_after_429(grant, now, seconds)
            else:
                limiter.release(grant, now)

    def agree(self, limits: RateLimits) -> bool:
        """Apply the limits that a client asks for; returns true, once, when another client asked for others.

        The first client gets its limits; when they differ, the lower limit of each class is used.
        """
        with self._lock:
            differs = self._asked_for and limits != self.limits
            self._resize(limits.lower_of(self.limits) if differs else limits)
            self._asked_for = True
            warn = differs and not self._warned
            self._warned = self._warned or differs
        return warn

    def share(self, store: LimitStoreClient, workers: int | None, now: float) -> None:
        """Take permits from a store from now on; of several clients' numbers of processes the highest holds.

        What was sent in the last minute still counts. Raises ConfigurationError for another store.
        """
        with self._lock:
            if self.store is not None and self.store is not store:
                raise ConfigurationError(
                    "the clients of one key in one process use different limit stores: give them one address"
                )
            store.workers = max(store.workers or 0, workers or 0) or None
            if self.store is None:
                self.store, sent = store, self.snapshot(now)
                self._make_limiters()
                for kind, limiter in self._classes.items():
                    limiter.count(now, sent[kind].used)
            else:
                self._resize(self.limits)

    def idle(self, now: float) -> bool:
        """Return whether no caller waits and nothing counts, so that a new limiter would behave the same."""
        return all(limiter.idle(now) for limiter in (*self._classes.values(), *self._records.all()))

    def snapshot(self, now: float) -> dict[LimitClass, LimitSnapshot]:
        """The state of each class, for `client.limits_snapshot()`."""
        return {kind: limiter.snapshot(now) for kind, limiter in self._classes.items()}

    def forked(self) -> None:
        """Start a forked child with new limiters. The parent's grants end at the old ones."""
        self._lock = threading.Lock()
        for limiter in self._classes.values():
            limiter.forked()
        self._records.forked()
        self._make_limiters()

    def _make_limiters(self) -> None:
        if self.store is None:
            self._classes = {kind: make_limiter(self.limits, kind) for kind in CLASSES}
        else:
            from .store_client import SharedLimiter  # most programs use no store

            self._classes = {
                kind: SharedLimiter(self.store, self._place, kind, self.limits) for kind in CLASSES
            }
        self._ways: dict[LimitClass, tuple[RateLimiter, ...]] = {
            kind: (self._classes[kind],) for kind in CLASSES
        }
        self._ways["refund_availability"] += self._ways["read"]

    def _resize(self, limits: RateLimits) -> None:
        self.limits = limits
        for kind, limiter in self._classes.items():
            limiter.resize(limits.of(kind), limits.capacity(kind))
        self._records.resize(limits)


def make_limiter(limits: RateLimits, kind: BucketClass) -> RateLimiter:
    return RateLimiter(TokenBucket(limits.of(kind), limits.capacity(kind)))


def give_up(held: Grants, now: float, *, sent: bool) -> None:
    """End grants without an answer; a request that was never sent does not count."""
    for limiter, grant in held:
        if sent:
            limiter.release(grant, now, answered=False)
        else:
            limiter.put_back(grant)
