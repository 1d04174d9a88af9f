"""Joins the deliveries of a URL: one reading of the record and one handler call for all waiting ones.

    deliveries of one URL ── wait together ──▶ the record is read ──▶ one of them hands it to the handler,
                                                                     and the outcome answers the others

A delivery that comes during a reading waits for the next one, five seconds later for each request made, so
that it gets the record's newest state. Where that is more than six seconds away, it is answered 503. Few
deliveries wait: the others are answered 503 at once, so a million repeats take no memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import attrs

from .._polling.schedule import FLOOR
from ..errors import PaymentsError
from ..models import Payout
from ._deduplication import SeenStore, awaited, state_of
from ._lookup import PATIENCE, Lookup
from ._page_queue import LookupResult, WantedRecord
from ._payload import PayloadHint
from ._tokens import TokenClaims
from ._values import DONE, FAILED, REFUSED, Trusted, TrustedDelivery, WebhookResponse, busy

if TYPE_CHECKING:
    from datetime import datetime

    from .._runtime import Runtime

JITTER: Final = 0.04
"""Largest part of random extra time; a hundredth at least, as clocks round."""
MOST_WAITING: Final = 16
"""The most deliveries of one URL that wait for the same reading."""
MOST_URLS: Final = 10_000
"""The most URLs whose deliveries wait at a time."""

log = logging.getLogger("payments.webhooks")


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


Result = WebhookResponse | HandOver


@attrs.define(eq=False)
class WaitingDelivery:
    """One delivery that waits for a reading."""

    delivery: ReceivedDelivery
    hint: PayloadHint
    future: asyncio.Future[Result] = attrs.field(factory=lambda: asyncio.get_running_loop().create_future())

    def resolve(self, result: Result) -> None:
        """End the delivery's wait."""
        if not self.future.done():
            self.future.set_result(result)


class DeliveryCoalescer:
    """The deliveries under way on one event loop."""

    def __init__(self, runtime: Runtime, payouts: Lookup, payments: Lookup, store: SeenStore) -> None:
        self._runtime = runtime
        self._payouts, self._payments = payouts, payments
        self._store = store
        self._waiting: dict[str, list[WaitingDelivery]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._due: dict[str, float] = {}
        """Time at which the record of a URL may be read again, if it was just read."""

    async def join(self, delivery: ReceivedDelivery, hint: PayloadHint) -> Result:
        """Wait for the next reading of this delivery's record."""
        if wait := self._refusal(delivery.token):
            return busy(wait)
        waiter = WaitingDelivery(delivery, hint)
        waiting = self._waiting.get(delivery.token)
        if waiting is None:
            waiting = self._waiting[delivery.token] = []
            task = asyncio.get_running_loop().create_task(self._serve(delivery.token, waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        waiting.append(waiter)
        try:
            return await waiter.future
        except asyncio.CancelledError:
            if not waiter.future.cancelled() and isinstance(result := waiter.future.result(), HandOver):
                result.abandon()
            raise
        finally:
            if waiter in waiting:
                waiting.remove(waiter)

    def _refusal(self, token: str) -> float:
        """Seconds after which the service should try again; 0 when the delivery can wait here."""
        now = self._runtime.monotonic()
        while self._due and self._due[oldest := next(iter(self._due))] <= now:
            del self._due[oldest]
        left = self._due.get(token, now) - now
        if left > PATIENCE:
            return left
        waiting = self._waiting.get(token)
        full = len(self._waiting) >= MOST_URLS if waiting is None else len(waiting) >= MOST_WAITING
        return FLOOR if full else 0.0

    async def _serve(self, token: str, waiting: list[WaitingDelivery]) -> None:
        """Read the record until no delivery waits."""
        batch: list[WaitingDelivery] = []
        try:
            while waiting and (delay := self._delay(token)) <= PATIENCE:
                if delay > 0:
                    await self._runtime.sleep(delay)
                batch, waiting[:] = list(waiting), []
                if batch:
                    await self._answer(await self._look(token, batch), batch)
            _resolve_all(waiting, busy(self._delay(token)))  # the last lookup made many requests
        finally:
            del self._waiting[token]
            _resolve_all([*batch, *waiting], FAILED)

    def _delay(self, token: str) -> float:
        """Seconds until the record of a URL may be read again; negative if it may be read now."""
        return self._due.get(token, 0.0) - self._runtime.monotonic()

    async def _answer(self, found: LookupResult | WebhookResponse, waiters: list[WaitingDelivery]) -> None:
        """Answer each delivery, after the handler was called if the record's state is new."""
        if isinstance(found, WebhookResponse):
            _resolve_all(waiters, found)
            return
        record = found.record
        if record is None:
            _resolve_all(
                [each for each in waiters if each.hint.record_id == found.foreign_id is not None], REFUSED
            )
            _resolve_all(waiters, busy(FLOOR))
            return
        own = [each for each in waiters if each.hint.record_id in (None, record.id)]
        named = _named(waiters)
        others = [each for each in waiters if each not in own]
        _resolve_all(
            [each for each in others if isinstance(record, Payout) or each.hint.record_id == named], REFUSED
        )
        _resolve_all(others, busy(FLOOR))  # a payment that shares the URL has a reading of its own
        try:
            if await awaited(self._store.seen(state_of(record))):
                _resolve_all(own, DONE)
            else:
                await self._hand_over(record, own)
        except Exception:
            log.exception("the store of seen webhook deliveries failed: the service will try again")
            _resolve_all(own, FAILED)

    async def _look(self, token: str, waiters: list[WaitingDelivery]) -> LookupResult | WebhookResponse:
        """Read the record, and note when it may be read again: after five seconds for each request made."""
        claims = waiters[0].delivery.claims
        named = _named(waiters)
        lookup = self._payouts if claims.kind == "payout" else self._payments
        want = WantedRecord(claims, token, named)
        if (wait := lookup.wait(want)) > PATIENCE:
            return busy(wait)
        found: LookupResult | WebhookResponse
        try:
            found = await lookup.read(want)
            requests = found.requests
        except PaymentsError as error:
            log.warning("a webhook delivery could not be checked, the service will try again: %s", error)
            found, requests = busy(FLOOR), max(1, len(error.attempts))
        except Exception:
            log.exception("a webhook delivery could not be checked: the service will try again")
            found, requests = FAILED, 1
        self._due.pop(token, None)
        rest = FLOOR * requests * (1.01 + JITTER * self._runtime.random())
        self._due[token] = self._runtime.monotonic() + rest
        return found

    async def _hand_over(self, record: Trusted, own: list[WaitingDelivery]) -> None:
        """Let one waiting delivery call the handler with the record; the result answers all of them."""
        chosen = next((each for each in own if not each.future.done()), None)
        if chosen is None:  # all callers were cancelled: the service will try again
            return
        delivery = chosen.delivery
        claims = delivery.claims
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


def _named(waiters: Iterable[WaitingDelivery]) -> str | None:
    """The id that is looked up: the first that a delivery names."""
    return next((each.hint.record_id for each in waiters if each.hint.record_id), None)


def _resolve_all(waiters: Iterable[WaitingDelivery], result: WebhookResponse) -> None:
    for waiter in waiters:
        waiter.resolve(result)
