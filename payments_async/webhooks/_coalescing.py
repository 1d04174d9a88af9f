"""Joins the deliveries of a URL: one reading of the record and one handler call for all waiting ones.

    deliveries of one URL ── wait together ──▶ the record is read ──▶ one of them hands it to the handler,
                                                                     and the outcome answers the others

A delivery that comes during a reading waits for the next one, five seconds later for each request made, so
that it gets the record's newest state. Where that is more than six seconds away, it is answered 503. Few
deliveries wait: the others are answered 503 at once, so a million repeats take no memory. A state that the
handler has seen is in the `SeenStore`, and is answered without it.

The interface shows no single read of a payout or payment, and normal reads come first (Limits, Polling
guidance): the list is read around the day on which the URL was made (`_waits/sweep.py`). A payout that lies
further back is read by `payouts.sync`, a live operation. A lookup gives the URL's own record or none.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Iterable
from datetime import UTC, datetime, timedelta
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

LONGEST: Final = 18.0
"""Seconds that a lookup may take in the list."""
PAYOUT_PAGES: Final = 5
"""Pages read for a payout whose id is known before it is read by `sync`."""
_SLACK: Final = timedelta(hours=1)
"""By which a record may seem older than its URL: the service has another clock."""
_EARLIER: Final = timedelta(days=1)
"""Clocks may differ."""
_LATER: Final = timedelta(days=2)
"""A record is made within a day of its URL."""

log = logging.getLogger("payments.webhooks")


@attrs.frozen
class LookupResult:
    """The result of one lookup."""

    record: ListedRecord | None
    """The URL's own record; None when it was not found."""
    was_synced: bool = False
    """True if it was read by itself, too."""
    foreign_id: str | None = None
    """The id that the delivery named, when it is another URL's record."""


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
    return LookupResult(wanted.last)  # perhaps another payment of the URL


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
    return Days((made - _EARLIER).date(), (made + _LATER).date(), made - _SLACK)


def _warn(wanted: Wanted) -> None:
    """Log why a lookup may not have found its record."""
    days: Any = wanted.days
    if wanted.problem is not None:
        reason = f"the list cannot be read to its end ({wanted.problem})"
    elif wanted.is_unread:
        reason = "the list of these days goes on: its time was over"
    else:
        reason = "it is not listed (was it created with its URL, and has this process the service's time?)"
    log.warning(
        "a webhook delivery's record was not on the %d pages read of those created %s to %s:"
        " the service will try again; %s",
        wanted.pages,
        days.since,
        days.until,
        reason,
    )


T = TypeVar("T")
KEPT: Final = 10_000
"""States that a `MemoryStore` keeps by default."""
PATIENCE: Final = 6.0
"""Seconds that a delivery waits for its record to be read; if more, the service is to try again."""
JITTER: Final = 0.04
"""Largest part of random extra time; a hundredth at least, as clocks round."""
MOST_WAITING: Final = 16
"""The most deliveries of one URL that wait for the same reading."""
MOST_URLS: Final = 10_000
"""The most URLs whose deliveries wait at a time."""


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
class ReceivedDelivery:
    """A delivery to one of our URLs."""

    token: str = attrs.field(repr=False)
    claims: TokenClaims
    received_at: datetime


class HandOver:
    """A record for the handler, and the answer once the handler has returned."""

    def __init__(self, delivery: TrustedDelivery[Any]) -> None:
        loop = asyncio.get_running_loop()
        self.delivery = delivery
        self.verdict: asyncio.Future[bool] = loop.create_future()
        self.answer: asyncio.Future[WebhookResponse] = loop.create_future()

    async def finish(self, handled: bool) -> WebhookResponse:
        """Note whether the handler succeeded; returns the response."""
        if self.verdict.done():  # the event loop has ended, or the reading was cancelled
            return FAILED
        self.verdict.set_result(handled)
        return await self.answer

    def abandon(self) -> None:
        """Note that the handler will not be called, or was cancelled."""
        if not self.verdict.done():
            self.verdict.set_result(False)


@attrs.define(eq=False)
class WaitingDelivery:
    """One delivery that waits for a reading."""

    delivery: ReceivedDelivery
    hint: PayloadHint
    future: asyncio.Future[WebhookResponse | HandOver] = attrs.field(
        factory=lambda: asyncio.get_running_loop().create_future()
    )

    def resolve(self, result: WebhookResponse | HandOver) -> None:
        """End the delivery's wait."""
        if not self.future.done():
            self.future.set_result(result)


class DeliveryCoalescer:
    """The deliveries under way on one event loop. Made on it."""

    def __init__(self, client: AsyncPayments, store: SeenStore) -> None:
        self._client, self._runtime = client, client._internal.runtime
        self._payouts, self._payments = client._internal.waiting.sweeps()
        self._store = store
        self._waiting: dict[str, list[WaitingDelivery]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._due: dict[str, float] = {}
        """Time at which the record of a URL may be read again, if it was just read."""

    async def join(self, delivery: ReceivedDelivery, hint: PayloadHint) -> WebhookResponse | HandOver:
        """Wait for the next reading of this delivery's record."""
        if wait := self._refusal(delivery.token):
            return busy(wait)
        own = WaitingDelivery(delivery, hint)
        waiting = self._waiting.get(delivery.token)
        if waiting is None:
            waiting = self._waiting[delivery.token] = []
            task = asyncio.get_running_loop().create_task(self._serve(delivery.token, waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        waiting.append(own)
        try:
            return await own.future
        except asyncio.CancelledError:
            if not own.future.cancelled() and isinstance(result := own.future.result(), HandOver):
                result.abandon()
            raise
        finally:
            if own in waiting:
                waiting.remove(own)

    def _refusal(self, token: str) -> float:
        """Seconds after which the service should try again; 0 when the delivery can wait here."""
        now = self._runtime.monotonic()
        while self._due and self._due[oldest := next(iter(self._due))] <= now:
            del self._due[oldest]
        left = self._due.get(token, now) - now
        if left > PATIENCE:
            return left
        waiting = self._waiting.get(token)
        is_full = len(self._waiting) >= MOST_URLS if waiting is None else len(waiting) >= MOST_WAITING
        return FLOOR if is_full else 0.0

    async def _serve(self, token: str, waiting: list[WaitingDelivery]) -> None:
        """Read the record until no delivery waits."""
        deliveries: list[WaitingDelivery] = []
        try:
            while waiting and (delay := self._delay(token)) <= PATIENCE:
                if delay > 0:
                    await self._runtime.sleep(delay)
                deliveries, waiting[:] = list(waiting), []
                if deliveries:
                    await self._answer(await self._look(token, deliveries), deliveries)
            _resolve_all(waiting, busy(self._delay(token)))  # the last lookup made many requests
        finally:
            del self._waiting[token]
            _resolve_all([*deliveries, *waiting], FAILED)

    def _delay(self, token: str) -> float:
        """Seconds until the record of a URL may be read again; negative if it may be read now."""
        return self._due.get(token, 0.0) - self._runtime.monotonic()

    async def _look(self, token: str, deliveries: list[WaitingDelivery]) -> LookupResult | WebhookResponse:
        """Read the record, and note when it may be read again: after five seconds for each request made."""
        result: LookupResult | WebhookResponse
        try:
            claims = deliveries[0].delivery.claims
            sweep = self._payouts if claims.kind == "payout" else self._payments
            now = self._runtime.monotonic()
            result = await look_up(self._client, sweep, claims, token, _named(deliveries), now)
            requests = 1 + result.was_synced
        except PaymentsError as error:
            log.warning("a webhook delivery could not be checked, the service will try again: %s", error)
            result, requests = busy(FLOOR), max(1, len(error.attempts))
        except Exception:
            log.exception("a webhook delivery could not be checked: the service will try again")
            result, requests = FAILED, 1
        self._due.pop(token, None)
        rest = FLOOR * requests * (1.01 + JITTER * self._runtime.random())
        self._due[token] = self._runtime.monotonic() + rest
        return result

    async def _answer(
        self, result: LookupResult | WebhookResponse, deliveries: list[WaitingDelivery]
    ) -> None:
        """Answer each delivery, after the handler was called if the record's state is new."""
        if isinstance(result, WebhookResponse):
            _resolve_all(deliveries, result)
            return
        record = result.record
        if record is None:
            own, foreign_id = [], result.foreign_id
        else:
            own = [waiting for waiting in deliveries if waiting.hint.record_id in (None, record.id)]
            foreign_id = _named(deliveries)
        for other in [waiting for waiting in deliveries if waiting not in own]:
            is_foreign = isinstance(record, Payout) or other.hint.record_id == foreign_id is not None
            # a payment may share the URL: it is read next
            other.resolve(REFUSED if is_foreign else busy(FLOOR))
        if record is None:
            return
        try:
            if await awaited(self._store.seen(state_of(record))):
                _resolve_all(own, DONE)
            else:
                await self._hand_over(record, own)
        except Exception:
            log.exception("the store of seen webhook deliveries failed: the service will try again")
            _resolve_all(own, FAILED)

    async def _hand_over(self, record: ListedRecord, own: list[WaitingDelivery]) -> None:
        """Let one waiting delivery call the handler with the record; the result answers all of them."""
        chosen = next((waiting for waiting in own if not waiting.future.done()), None)
        if chosen is None:  # all callers were cancelled: the service will try again
            return
        delivery, claims = chosen.delivery, chosen.delivery.claims
        hand_over = HandOver(
            TrustedDelivery(claims.kind, claims.reference, record, chosen.hint.event, delivery.received_at)
        )
        chosen.resolve(hand_over)
        answer = FAILED
        try:
            if await hand_over.verdict:
                await awaited(self._store.add(state_of(record)))
                answer = DONE
        finally:
            hand_over.abandon()
            hand_over.answer.set_result(answer)
        _resolve_all(own, answer)


def _named(deliveries: Iterable[WaitingDelivery]) -> str | None:
    """The id that is looked up: the first that a delivery names."""
    return next((waiting.hint.record_id for waiting in deliveries if waiting.hint.record_id), None)


def _resolve_all(deliveries: Iterable[WaitingDelivery], result: WebhookResponse) -> None:
    for waiting in deliveries:
        waiting.resolve(result)
