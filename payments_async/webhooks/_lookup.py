"""Finding the records that deliveries ask about: the pages of a list, for everybody who waits for one.

Normal reads come first (Limits, Polling guidance). The interface shows no single read of a payout or
payment, so the list is walked around the day on which the URL was made, one page for all who wait for it. So
many pages are read at once at most, and after them one for each rest; the newest and the others by turns
(`_page_queue`): no look holds up the others, and no crowd of looks those who come later. A look that was cut
off is gone on with in the next one (`_page_queue`). A payout that lies further back than a few pages is read
by `payouts.sync`, a live operation. What is given is the URL's own record or none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from .._assumptions import NO_END
from .._polling.schedule import PER_PAGE
from .._request.pages import PAYMENT_INTENTS, PAYOUTS, ListReader
from ..errors import NotFoundError, UnprocessableError
from ..models import Page, Payout
from ._page_queue import (
    LookupInProgress,
    LookupResult,
    PageOf,
    PageQueue,
    PageWalk,
    Position,
    Positions,
    WantedRecord,
)
from ._values import Trusted

if TYPE_CHECKING:
    from ..client import AsyncPayments

DEADLINE: Final = 15.0
"""Seconds for one reading, its retries and its place in the line included."""
PATIENCE: Final = 6.0
"""Seconds a delivery may have to wait for its look; a longer wait is the service's."""
_INSTANT: Final = 1e-6
"""Seconds: less is a sum's rounding."""
_EARLIER: Final = timedelta(days=1)
"""Clocks may differ."""
_LATER: Final = timedelta(days=2)
"""A record is made within a day of its URL."""
_CUT_OFF: Final = (
    "a webhook delivery's record was not on the %d pages read of those created %s to %s: the service will try"
    " again, and the next look goes on from there (max_pages reads more at a time)"
)
_NOT_THERE: Final = (
    "a webhook delivery's record is not listed: %d pages read, created %s to %s: the service will try again"
    " (was it created with its URL, and has this process the service's time?)"
)
_NO_END: Final = (
    "a webhook delivery's record was not on the %d pages read of those created %s to %s: the service will try"
    f" again, but the list cannot be read to its end ({NO_END})"
)

log = logging.getLogger("payments.webhooks")


class Lookup:
    """The looks at one list, on one event loop."""

    def __init__(self, client: AsyncPayments, *, payouts: bool, max_pages: int) -> None:
        self._client = client
        self._runtime = client._internal.runtime
        self._list: ListReader[Any] = client._internal.reader(PAYOUTS if payouts else PAYMENT_INTENTS)
        self._payouts = payouts
        self._max_pages = max_pages
        self._line = PageQueue()
        self._pages = 0
        """Asked for so far."""
        self._task: asyncio.Task[None] | None = None
        self._rested_at = float("-inf")
        """When there has been a rest for every page."""
        self._places = Positions()

    def wait(self, want: WantedRecord) -> float:
        """Seconds until it is its turn, for those before it and the rests."""
        return self._wait((want.day, self._way(want).cursor))

    def _wait(self, page: PageOf) -> float:
        busy = max(0.0, self._rested_at - self._runtime.monotonic())
        return max(0.0, busy + PER_PAGE * (self._line.ahead_of(page) + 1 - self._max_pages))

    async def read(self, want: WantedRecord) -> LookupResult:
        """Look for a record. Raises PaymentsError."""
        until = self._runtime.monotonic() + PATIENCE + PER_PAGE * self._max_pages
        look = LookupInProgress(want, self._way(want), self._pages, until)
        self._line.enter(look)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        reading = await look.future
        if reading.record is None and self._payouts and want.record_id is not None:
            return await self._synced(want, want.record_id, reading.requests)
        return reading

    def _way(self, want: WantedRecord) -> PageWalk:
        return PageWalk(self._places.of(want.token), self._max_pages, want.claims.minted_at)

    async def _run(self) -> None:
        """Read as long as anybody waits: so many pages at once, and then one for each rest."""
        try:
            while self._line:
                now = self._runtime.monotonic()
                busy = self._rested_at - now + PER_PAGE * (1 - self._max_pages)
                if busy > _INSTANT:
                    await self._runtime.sleep(busy)
                elif same := self._line.turn():
                    self._rested_at = max(self._rested_at, now) + PER_PAGE
                    await self._serve(same)
        finally:
            self._task = None

    async def _serve(self, same: Sequence[LookupInProgress]) -> None:
        """Read a page for those who wait for it; the looks that are not over wait for their next ones."""
        try:
            await self._read(same)
        except Exception as error:  # whatever it is, it is theirs who wait for this page; others go on
            for look in same:
                if not look.future.done():
                    look.future.set_exception(error)
        for look in same:
            if look.future.done():
                continue
            # twice: those who keep coming for the newest page have every other turn
            if self._runtime.monotonic() + 2 * self._wait(look.page) <= look.until:
                self._line.queue(look)
            else:
                self._miss(look)

    async def _read(self, same: Sequence[LookupInProgress]) -> None:
        """One page for those who wait for it; it may have the record of others, too."""
        day, cursor = same[0].page
        self._pages += 1
        number = self._pages
        page = await self._page(day, cursor, may_be_forgotten=any(look.way.is_from_before for look in same))
        for record in page or ():
            for look in self._line.after(day, key_of(record)):
                if look.since < number:
                    self._places.note(look.want.token, Position(found=cursor))
                    look.future.set_result(LookupResult(record, look.way.pages + 1))
        for look in same:
            if look.future.done():
                continue
            if page is not None:
                look.way.passed(_oldest(page), page.next_cursor, is_last=page.is_last)
            elif look.way.is_from_before:
                look.way.forgotten()
            if look.way.is_over:
                self._miss(look)

    def _miss(self, look: LookupInProgress) -> None:
        """Tell somebody whose record was not there."""
        want, way = look.want, look.way
        self._places.note(want.token, way.place)
        if not self._payouts or want.record_id is None:
            since, until = _window(want.day)
            missed = _NO_END if way.is_unproven else _CUT_OFF if way.is_cut_off else _NOT_THERE
            log.warning(missed, way.pages, since, until)
        look.future.set_result(LookupResult(None, way.pages))

    async def _page(self, day: int, cursor: str | None, *, may_be_forgotten: bool) -> Page[Any] | None:
        """One page; None when the service does not take an earlier look's cursor any more."""
        since, until = _window(day)
        filters = {"created_on_or_after": since, "created_on_or_before": until, "deadline": DEADLINE}
        try:
            return await self._list.page(filters, cursor)
        except UnprocessableError:
            if may_be_forgotten:
                return None
            raise

    async def _synced(self, want: WantedRecord, record_id: str, requests: int) -> LookupResult:
        try:
            payout = await self._client.payouts.sync(record_id, deadline=DEADLINE)
        except NotFoundError:
            return LookupResult(None, requests + 1)
        if key_of(payout) in want.keys and payout.id == record_id:
            return LookupResult(payout, requests + 1)
        return LookupResult(None, requests + 1, foreign_id=record_id)


def _oldest(page: Page[Any]) -> float | None:
    """When its last record was created; None where it does not say so (gap AC)."""
    created_at = page.items[-1].created_at if page.items else None
    return None if created_at is None else created_at.timestamp()


def _window(day: int) -> tuple[date, date]:
    """The days on which the record of a URL made on this one may have been created."""
    made = datetime.fromtimestamp(day * 86_400, UTC).date()
    return made - _EARLIER, made + _LATER


def key_of(record: Trusted) -> str:
    """By what a record is known to belong to a URL.

    A payout by its reference, which is unique in the project; a payment by the URL itself, or, where the
    service leaves that out, by `reference` in its metadata.
    """
    token = (record.webhook_url or "").rpartition("/")[2]
    if isinstance(record, Payout):
        own = record.reference
    else:
        metadata: Mapping[str, Any] = record.metadata or {}
        own = None if token else metadata.get("reference")
    return f"token {token}" if own is None else f"reference {own}"
