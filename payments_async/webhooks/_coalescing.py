"""One look and one hand-over for all deliveries of a URL that came before it; five seconds to the next.

    a delivery ── joins ──▶ the URL's case ── a look at the record ──▶ one of those who wait is offered it,
                                                                       and its verdict answers the others

A delivery that comes while a look is under way joins the next one, so that the last state is never missed.
Few wait: the others are told at once to come again later, and a million repeats take no memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import attrs

from .._polling.schedule import FLOOR
from ..errors import PaymentsError
from ._deduplication import SeenStore, settled, state_of
from ._lookup import PATIENCE, Lookup
from ._page_queue import LookupResult, WantedRecord
from ._payload import PayloadHint
from ._tokens import TokenClaims
from ._values import DONE, FAILED, REFUSED, Trusted, TrustedDelivery, WebhookResponse, busy

if TYPE_CHECKING:
    from datetime import datetime

    from .._runtime import Runtime

JITTER: Final = 0.04
"""Up to this part longer, and a hundredth at least: clocks round."""
MOST_WAITING: Final = 16
"""Deliveries of one URL that wait for the same look."""
MOST_CASES: Final = 10_000
"""URLs whose deliveries are looked into at a time."""

log = logging.getLogger("payments.webhooks")


@attrs.frozen
class ReceivedDelivery:
    """A delivery to one of our URLs."""

    token: str = attrs.field(repr=False)
    claims: TokenClaims
    received_at: datetime


class HandOver:
    """A record to be handed over by whoever holds this, and the answer that comes of it."""

    def __init__(self, delivery: TrustedDelivery[Any]) -> None:
        loop = asyncio.get_running_loop()
        self.delivery = delivery
        self.verdict: asyncio.Future[bool] = loop.create_future()
        self.answer: asyncio.Future[WebhookResponse] = loop.create_future()

    async def settle(self, handled: bool) -> WebhookResponse:
        """Say whether the handler took it; gives what to answer."""
        if self.verdict.done():  # its loop has ended, or the round was cut
            return FAILED
        self.verdict.set_result(handled)
        return await self.answer

    def abandon(self) -> None:
        """Nobody will hand it over."""
        if not self.verdict.done():
            self.verdict.set_result(False)


Result = WebhookResponse | HandOver


@attrs.define(eq=False)
class WaitingDelivery:
    """One delivery that waits for a look."""

    ticket: ReceivedDelivery
    hint: PayloadHint
    future: asyncio.Future[Result] = attrs.field(factory=lambda: asyncio.get_running_loop().create_future())

    def tell(self, met: Result) -> None:
        """Answer it, if it still waits."""
        if not self.future.done():
            self.future.set_result(met)


class DeliveryCoalescer:
    """What is under way on one event loop."""

    def __init__(self, runtime: Runtime, payouts: Lookup, payments: Lookup, store: SeenStore) -> None:
        self._runtime = runtime
        self._payouts, self._payments = payouts, payments
        self._store = store
        self._cases: dict[str, list[WaitingDelivery]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._due: dict[str, float] = {}
        """When each URL's record may be read again, of those read a moment ago."""

    async def join(self, ticket: ReceivedDelivery, hint: PayloadHint) -> Result:
        """Wait for the look that this delivery asks for."""
        if wait := self._refusal(ticket.token):
            return busy(wait)
        waiter = WaitingDelivery(ticket, hint)
        waiting = self._cases.get(ticket.token)
        if waiting is None:
            waiting = self._cases[ticket.token] = []
            task = asyncio.get_running_loop().create_task(self._serve(ticket.token, waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        waiting.append(waiter)
        try:
            return await waiter.future
        except asyncio.CancelledError:
            if not waiter.future.cancelled() and isinstance(met := waiter.future.result(), HandOver):
                met.abandon()
            raise
        finally:
            if waiter in waiting:
                waiting.remove(waiter)

    def _refusal(self, token: str) -> float:
        """Seconds after which a delivery is to come again; 0 when it can wait here."""
        now = self._runtime.monotonic()
        while self._due and self._due[oldest := next(iter(self._due))] <= now:
            del self._due[oldest]
        left = self._due.get(token, now) - now
        if left > PATIENCE:
            return left
        waiting = self._cases.get(token)
        full = len(self._cases) >= MOST_CASES if waiting is None else len(waiting) >= MOST_WAITING
        return FLOOR if full else 0.0

    async def _serve(self, token: str, waiting: list[WaitingDelivery]) -> None:
        """Round after round, until nobody waits."""
        batch: list[WaitingDelivery] = []
        try:
            while waiting:
                delay = self._due.get(token, 0.0) - self._runtime.monotonic()
                if delay > 0:
                    await self._runtime.sleep(delay)
                batch, waiting[:] = list(waiting), []
                if batch:
                    await self._answer(await self._look(token, batch), batch)
        finally:
            del self._cases[token]
            _tell([*batch, *waiting], FAILED)

    async def _answer(self, found: LookupResult | WebhookResponse, waiters: list[WaitingDelivery]) -> None:
        """Say to each delivery what the look came to, and have the record handed over when it is news."""
        if isinstance(found, WebhookResponse):
            _tell(waiters, found)
            return
        record = found.record
        if record is None:
            _tell([each for each in waiters if each.hint.record_id == found.foreign_id is not None], REFUSED)
            _tell(waiters, busy(FLOOR))
            return
        own = [each for each in waiters if each.hint.record_id in (None, record.id)]
        _tell([each for each in waiters if each not in own], REFUSED)
        try:
            if await settled(self._store.seen(state_of(record))):
                _tell(own, DONE)
            else:
                await self._hand_over(record, own)
        except Exception:
            log.exception("the store of seen webhook deliveries failed: the service will try again")
            _tell(own, FAILED)

    async def _look(self, token: str, waiters: list[WaitingDelivery]) -> LookupResult | WebhookResponse:
        """Read the record, and note when it may be read again: five seconds later for each request made."""
        claims = waiters[0].ticket.claims
        named = next((each.hint.record_id for each in waiters if each.hint.record_id), None)
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
        """Offer the record to one of those who wait; its verdict answers all of them."""
        chosen = next((each for each in own if not each.future.done()), None)
        if chosen is None:  # all of them hung up: the service will try again
            return
        ticket = chosen.ticket
        claims = ticket.claims
        offer = HandOver(
            TrustedDelivery(claims.kind, claims.reference, record, chosen.hint.event, ticket.received_at)
        )
        chosen.tell(offer)
        answer = FAILED
        try:
            if await offer.verdict:
                await settled(self._store.add(state_of(record)))
                answer = DONE
        finally:
            offer.abandon()
            offer.answer.set_result(answer)
        _tell(own, answer)


def _tell(waiters: Iterable[WaitingDelivery], met: WebhookResponse) -> None:
    for waiter in waiters:
        waiter.tell(met)
