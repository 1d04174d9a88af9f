"""Finds the record of a URL in the pages of a list.

Normal reads come first (Limits, Polling guidance). The interface shows no single read of a payout or
payment, so the list is read around the day on which the URL was made. One page serves all lookups that need
it. A few pages are read at once, and after them one for each rest (`_page_queue` says which). A lookup that
has read its share of pages ends, and the URL's next one continues from there. A payout that lies further
back is read by `payouts.sync`, a live operation. A lookup gives the URL's own record or none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

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
"""Seconds for one request, with its retries and its wait for the rate limit."""
PATIENCE: Final = 6.0
"""Seconds that a delivery may wait here; if it would wait longer, the service is to try again."""
_INSTANT: Final = 1e-6
"""Seconds: less is a sum's rounding."""
_EARLIER: Final = timedelta(days=1)
"""Clocks may differ."""
_LATER: Final = timedelta(days=2)
"""A record is made within a day of its URL."""
_CUT_OFF: Final = (
    "a webhook delivery's record was not on the %d pages read of those created %s to %s: the service will try"
    " again, and the next lookup continues from there (max_pages reads more at a time)"
)
_NOT_THERE: Final = (
    "a webhook delivery's record is not listed: %d pages read, created %s to %s: the service will try again"
    " (was it created with its URL, and has this process the service's time?)"
)
_NO_END: Final = (
    "a webhook delivery's record was not on the %d pages read of those created %s to %s: the service will try"
    " again, but the list cannot be read to its end (%s)"
)

log = logging.getLogger("payments.webhooks")


class Lookup:
    """The lookups in one list, on one event loop."""

    def __init__(self, client: AsyncPayments, *, payouts: bool, max_pages: int) -> None:
        self._client = client
        self._runtime = client._internal.runtime
        self._list: ListReader[Any] = client._internal.reader(PAYOUTS if payouts else PAYMENT_INTENTS)
        self._payouts = payouts
        self._max_pages = max_pages
        self._queue = PageQueue()
        self._pages = 0
        """Requests made so far."""
        self._task: asyncio.Task[None] | None = None
        self._rested_at = float("-inf")
        """Time at which the intervals for all pages read so far are over."""
        self._positions = Positions()

    def wait(self, want: WantedRecord) -> float:
        """Seconds until the first page for this record is read."""
        return self._wait((want.day, self._walk(want).cursor))

    def _wait(self, page: PageOf) -> float:
        busy = max(0.0, self._rested_at - self._runtime.monotonic())
        return max(0.0, busy + PER_PAGE * (self._queue.ahead_of(page) + 1 - self._max_pages))

    async def read(self, want: WantedRecord) -> LookupResult:
        """Find a record. Raises PaymentsError."""
        until = self._runtime.monotonic() + PATIENCE + PER_PAGE * self._max_pages
        lookup = LookupInProgress(want, self._walk(want), self._pages, until)
        self._queue.enter(lookup)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        reading = await lookup.future
        if reading.record is None and self._payouts and want.record_id is not None:
            return await self._synced(want, want.record_id, reading.requests)
        return reading

    def _walk(self, want: WantedRecord) -> PageWalk:
        return PageWalk(self._positions.of(want.place), self._max_pages, want.claims.made_at)

    async def _run(self) -> None:
        """Read while lookups wait: a few pages at once, and then one for each rest."""
        try:
            while self._queue:
                now = self._runtime.monotonic()
                busy = self._rested_at - now + PER_PAGE * (1 - self._max_pages)
                if busy > _INSTANT:
                    await self._runtime.sleep(busy)
                elif lookups := self._queue.next():
                    self._rested_at = max(self._rested_at, now) + PER_PAGE
                    await self._serve(lookups)
        finally:
            self._task = None

    async def _serve(self, lookups: Sequence[LookupInProgress]) -> None:
        """Read a page for the lookups that wait for it; those that are not over wait for their next pages."""
        try:
            await self._read(lookups)
        except Exception as error:  # it concerns only the lookups that need this page
            for lookup in lookups:
                if not lookup.future.done():
                    lookup.future.set_exception(error)
        for lookup in lookups:
            if lookup.future.done():
                continue
            # twice: new lookups, which read the newest page, have every other turn
            if self._runtime.monotonic() + 2 * self._wait(lookup.page) <= lookup.until:
                self._queue.queue(lookup)
            else:
                self._miss(lookup)

    async def _read(self, lookups: Sequence[LookupInProgress]) -> None:
        """Read one page for these lookups; it may have the records of others, too."""
        day, cursor = lookups[0].page
        self._pages += 1
        number = self._pages
        page = await self._page(
            day, cursor, may_be_forgotten=any(lookup.walk.is_earlier for lookup in lookups)
        )
        for record in page or ():
            for lookup in self._queue.wanting(day, key_of(record)):
                if lookup.since >= number:
                    continue
                if self._payouts or lookup.want.record_id in (None, record.id):
                    self._positions.note(lookup.want.place, Position(found=cursor))
                    lookup.future.set_result(LookupResult(record, lookup.walk.pages + 1))
                else:  # another payment of the same reference: the one that the delivery names may follow
                    lookup.other = lookup.other or record
        for lookup in lookups:
            if lookup.future.done():
                continue
            if page is not None:
                lookup.walk.advance(_oldest(page), page.next_cursor, is_last=page.is_last)
            elif lookup.walk.is_earlier:
                lookup.walk.drop_earlier()
            if lookup.walk.is_over:
                self._miss(lookup)

    def _miss(self, lookup: LookupInProgress) -> None:
        """End a lookup that has not found its record."""
        want, walk = lookup.want, lookup.walk
        self._positions.note(want.place, walk.position)
        if lookup.other is None and (not self._payouts or want.record_id is None):
            since, until = _window(want.day)
            read = walk.pages, since, until
            if walk.problem is not None:
                log.warning(_NO_END, *read, walk.problem)
            else:
                log.warning(_CUT_OFF if walk.is_cut_off else _NOT_THERE, *read)
        lookup.future.set_result(LookupResult(lookup.other, walk.pages))

    async def _page(self, day: int, cursor: str | None, *, may_be_forgotten: bool) -> Page[Any] | None:
        """One page; None when the service no longer takes the cursor of an earlier lookup."""
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
    """Creation time of the page's last record; None when it has none (gap AC)."""
    created_at = page.items[-1].created_at if page.items else None
    return None if created_at is None else created_at.timestamp()


def _window(day: int) -> tuple[date, date]:
    """The days on which the record of a URL made on this one may have been created."""
    made = datetime.fromtimestamp(day * 86_400, UTC).date()
    return made - _EARLIER, made + _LATER


def key_of(record: Trusted) -> str:
    """The text by which a record belongs to a URL.

    For a payout that is its reference, which is unique in the project. For a payment it is the URL itself, or
    `reference` in its metadata where the service leaves the URL out.
    """
    token = (record.webhook_url or "").rpartition("/")[2]
    if isinstance(record, Payout):
        own = record.reference
    else:
        metadata: Mapping[str, Any] = record.metadata or {}
        own = None if token else metadata.get("reference")
    return f"token {token}" if own is None else f"reference {own}"
