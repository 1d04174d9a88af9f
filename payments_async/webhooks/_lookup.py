"""Looks up the records of deliveries, once for all deliveries of a URL that wait, and handled once.

    deliveries of one URL ── take turns ──▶ the first reads the record and hands it to the handler;
                                           those that came before that reading go by its result

A delivery that comes during a reading waits for the next one, five seconds later for each request made, so
that it gets the record's newest state. Where that is more than six seconds away, it is answered 503. Few
deliveries wait: the others are answered 503 at once, so a million repeats take no memory. A state that the
handler has seen is in the `SeenStore`, and is answered without it.

A delivery's record is the URL's own or none. The interface shows no single read of a payout or payment, and
normal reads come first (Limits, Polling guidance): the list is read around the day on which the URL was made
(`_waits/sweep.py`). A payout that lies further back is read by `payouts.sync`, a live operation.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import OrderedDict
from collections.abc import Awaitable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import attrs

from .._waits.schedule import FLOOR
from .._waits.sweep import PAGE_DEADLINE, Days, ListSweep, Wanted, keys_of
from ..errors import NotFoundError, PaymentsError
from ..models import Payout
from ._delivery import (
    DONE,
    FAILED,
    REFUSED,
    ListedRecord,
    PayloadHint,
    TrustedDelivery,
    WebhookResponse,
    busy,
)
from ._tokens import TokenClaims

if TYPE_CHECKING:
    from ..client import AsyncPayments

log = logging.getLogger("payments.webhooks")

T = TypeVar("T")
KEPT: Final = 10_000  # states that a `MemoryStore` keeps by default
PATIENCE: Final = 6.0
"""Seconds that a delivery waits for its record to be read; if more, the service is to try again."""
JITTER: Final = 0.04
"""Largest part of random extra time; a hundredth at least, as clocks round."""
MOST_WAITING: Final = 16
"""The most deliveries of one URL that wait for the same reading."""
MOST_URLS: Final = 10_000  # the most URLs that are looked into at a time
WARNED_EVERY: Final = 60.0  # seconds between two warnings of refused deliveries, at least
LONGEST: Final = 18.0  # seconds that a lookup may take in the list
PAYOUT_PAGES: Final = 5
"""Pages read for a payout whose id is known before it is read by `sync`."""
_EARLIER: Final = timedelta(days=1)  # clocks may differ
_LATER: Final = timedelta(days=2)  # a record is made within a day of its URL


class SeenStore(Protocol):
    """Remembers the states that were handled; several processes may share one store.

    Both methods may be plain or coroutine functions. When one raises, the service tries again. A state is at
    most 700 characters of ASCII, and a week of them is enough.
    """

    def seen(self, state: str) -> bool | Awaitable[bool]:
        """Return whether this state of a record was handled."""

    def add(self, state: str) -> Awaitable[None] | None:
        """Remember that this state was handled."""


class MemoryStore:
    """Remembers the latest states handled in this process, 10,000 by default."""

    def __init__(self, most: int = KEPT) -> None:
        """Keep at most `most` states."""
        self._most = most
        self._states: OrderedDict[str, None] = OrderedDict()

    def seen(self, state: str) -> bool:
        """Return whether this state of a record was handled."""
        return state in self._states

    def add(self, state: str) -> None:
        """Remember that this state was handled; the oldest one is forgotten when there are too many."""
        self._states[state] = None
        while len(self._states) > self._most:
            self._states.popitem(last=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._states)} of {self._most})"


async def awaited(value: T | Awaitable[T]) -> T:
    """Return a function's result, awaited if it is awaitable."""
    return await value if inspect.isawaitable(value) else value


def state_of(record: ListedRecord) -> str:
    """A record's state as text: the handler gets the record again when the text differs.

    It has the status, which of the ends have a time (forms may lack the status, gap I), and for a payment the
    active attempt and its status.
    """
    ends = [name for name in ("completed_at", "failed_at", "expired_at") if getattr(record, name, None)]
    parts = [record.id, record.status, *ends]
    if not isinstance(record, Payout) and (attempt := record.active_attempt) is not None:
        parts += [attempt.id, attempt.status]
    return " ".join(ascii(part)[1:-1][:128] if part else "-" for part in parts)


@attrs.frozen
class LookupResult:
    record: ListedRecord | None  # the URL's own record; None when it was not found
    was_synced: bool = False  # True if it was read by itself, too
    foreign_id: str | None = None
    """The id that was looked up, when a record was found: no record of the URL has it but that one."""


@attrs.frozen
class ReceivedDelivery:
    token: str = attrs.field(repr=False)
    claims: TokenClaims
    received_at: datetime


class HandOver:
    """A record for the handler. Other deliveries to its URL wait until `finish` was called."""

    def __init__(self, delivery: TrustedDelivery[Any], url: UrlTurns, store: SeenStore) -> None:
        self.delivery = delivery
        self._url, self._store = url, store

    async def finish(self, handled: bool) -> WebhookResponse:
        """Note whether the handler succeeded; returns the response."""
        try:
            if not handled:
                return FAILED
            await awaited(self._store.add(state_of(self.delivery.record)))
            return DONE
        except Exception:
            _log_store_failure()
            return FAILED
        finally:
            self._url.end_turn()


@attrs.define(eq=False)
class UrlTurns:
    """The deliveries to one URL, on one event loop: one at a time has the turn."""

    turn: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    waiting: int = 0  # deliveries that wait for a reading
    begun: int = 0  # readings that have begun
    ended: int = 0
    """Number of the reading that `result` is of. A delivery shares one that began after it came."""
    due: float = float("-inf")  # time at which the record may be read again
    result: LookupResult | WebhookResponse = FAILED

    def end_turn(self) -> None:
        """Let the next delivery have the turn."""
        if not self.waiting:
            self.result = FAILED  # no delivery shares it
        self.turn.release()

    def is_over(self, now: float) -> bool:
        """Return whether nothing of it is of use any more."""
        return not self.waiting and not self.turn.locked() and self.due <= now


class DeliveryCoalescer:
    """The deliveries under way on one event loop. Made on it."""

    def __init__(self, client: AsyncPayments, store: SeenStore) -> None:
        self._client, self._runtime = client, client._internal.runtime
        self._payouts, self._payments = client._internal.waiting.sweeps()
        self._store = store
        self._urls: OrderedDict[str, UrlTurns] = OrderedDict()
        self._refused, self._warned_at = 0, float("-inf")

    async def join(self, delivery: ReceivedDelivery, hint: PayloadHint) -> WebhookResponse | HandOver:
        """Wait for the next reading of this delivery's record."""
        self._forget_oldest(self._runtime.monotonic())
        url = self._urls.get(delivery.token) or UrlTurns()
        if url.waiting >= MOST_WAITING or (not url.waiting and len(self._urls) >= MOST_URLS):
            self._warn_of_refusal(self._runtime.monotonic())
            return busy(FLOOR)
        self._urls[delivery.token] = url
        begun = url.begun
        with ExitStack() as turn:
            url.waiting += 1
            try:
                await url.turn.acquire()
                turn.callback(url.end_turn)
                if url.ended <= begun and (delay := url.due - self._runtime.monotonic()) > 0:
                    if delay > PATIENCE:  # the last lookup made many requests
                        return busy(delay)
                    await self._runtime.sleep(delay)
            finally:
                url.waiting -= 1
            if url.ended <= begun:
                await self._read(url, delivery, hint)
            answer = await self._answer(url, delivery, hint)
            if isinstance(answer, HandOver):
                turn.pop_all()  # `HandOver.finish` ends the turn
            return answer

    def _warn_of_refusal(self, now: float) -> None:
        self._refused += 1
        if now - self._warned_at >= WARNED_EVERY:
            told = "no room for %d webhook deliveries, which will come again: too many wait for a look-up"
            log.warning(told, self._refused)
            self._refused, self._warned_at = 0, now

    def _forget_oldest(self, now: float) -> None:
        """Forget URLs without deliveries: of the oldest two, since each delivery brings one at most."""
        for token in list(islice(self._urls, 2)):
            if self._urls[token].is_over(now):
                del self._urls[token]
            else:
                self._urls.move_to_end(token)

    async def _read(self, url: UrlTurns, delivery: ReceivedDelivery, hint: PayloadHint) -> None:
        """Read the record, and note when it may be read again: after five seconds for each request made."""
        url.begun = number = url.begun + 1
        sweep = self._payouts if delivery.claims.kind == "payout" else self._payments
        requests = 1
        try:
            now = self._runtime.monotonic()
            found = await look_up(self._client, sweep, delivery.claims, delivery.token, hint.record_id, now)
            url.result, requests = found, 1 + found.was_synced
        except PaymentsError as error:
            log.warning("a webhook delivery could not be checked, the service will try again: %s", error)
            url.result, requests = busy(FLOOR), max(1, len(error.attempts))
        except Exception:
            log.exception("a webhook delivery could not be checked: the service will try again")
            url.result = FAILED
        finally:  # also when the caller gave up: the next delivery reads anew
            rest = FLOOR * requests * (1.01 + JITTER * self._runtime.random())
            url.due = self._runtime.monotonic() + rest
        url.ended = number

    async def _answer(
        self, url: UrlTurns, delivery: ReceivedDelivery, hint: PayloadHint
    ) -> WebhookResponse | HandOver:
        """Answer by the latest reading; a record whose state is new is for the handler."""
        result = url.result
        if not isinstance(result, LookupResult):
            return result
        record = result.record
        if record is None or hint.record_id not in (None, record.id):
            is_foreign = isinstance(record, Payout) or hint.record_id == result.foreign_id is not None
            # a payment may share the URL: it is read next
            return REFUSED if is_foreign else busy(FLOOR)
        try:
            if await awaited(self._store.seen(state_of(record))):
                return DONE
        except Exception:
            _log_store_failure()
            return FAILED
        claims = delivery.claims
        trusted = TrustedDelivery(claims.kind, claims.reference, record, hint.event, delivery.received_at)
        return HandOver(trusted, url, self._store)


def _log_store_failure() -> None:
    log.exception("the store of seen webhook deliveries failed: the service will try again")


# The record of a URL


async def look_up(
    client: AsyncPayments,
    sweep: ListSweep,
    claims: TokenClaims,
    token: str,
    record_id: str | None,
    now: float,
) -> LookupResult:
    """Find the record of a URL in its list. Raises PaymentsError.

    `record_id` is what the delivery names; `now` is monotonic seconds.
    """
    is_payout = claims.kind == "payout"
    wanted = Wanted(
        [("token", token), ("reference", claims.reference)],
        record_id=None if is_payout else record_id,  # payments may share a URL
        days=days_of(claims),
        most_pages=PAYOUT_PAGES if is_payout and record_id is not None else None,
        is_lookup=True,
    )
    record = await sweep.find(wanted, now + LONGEST)
    if record is None and is_payout and record_id is not None:
        return await _synced(client, wanted, record_id)
    if wanted.last is None:
        _warn(wanted)
        return LookupResult(None)
    return LookupResult(wanted.last, foreign_id=record_id)  # perhaps another payment of the URL


async def _synced(client: AsyncPayments, wanted: Wanted, record_id: str) -> LookupResult:
    try:
        payout = await client.payouts.sync(record_id, deadline=PAGE_DEADLINE)
    except NotFoundError:
        return LookupResult(None, was_synced=True)
    if payout.id == record_id and not set(wanted.keys).isdisjoint(keys_of(payout)):
        return LookupResult(payout, was_synced=True)
    return LookupResult(None, was_synced=True, foreign_id=record_id)


def days_of(claims: TokenClaims) -> Days:
    """The days on which the record of a URL may have been created."""
    made = datetime.fromtimestamp(claims.made_at, UTC)
    return Days((made - _EARLIER).date(), (made + _LATER).date())


def _warn(wanted: Wanted) -> None:
    """Log why a lookup may not have found its record."""
    position, days = wanted.position, wanted.days
    if position.problem is not None:
        reason = f"the list cannot be read to its end ({position.problem})"
    elif not position.is_over:
        reason = "the list of these days goes on: its time was over"
    else:
        reason = "it is not listed (was it created with its URL, and has this process the service's time?)"
    log.warning(
        "a webhook delivery's record was not on the %d pages read of those created %s to %s:"
        " the service will try again; %s",
        position.pages,
        days.since,
        days.until,
        reason,
    )
