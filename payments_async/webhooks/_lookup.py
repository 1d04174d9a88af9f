"""Finding the records that deliveries ask about: one walk of a list for everybody who waits for one.

Normal reads come first (Limits, Polling guidance). The interface shows no single read of a payout or
payment, so the list is walked around the day on which the URL was made, at most so many pages at a time: the
next look at the same URL begins where the record was, or goes on where this one was cut off. A payout that
lies further back than a few pages is read by `payouts.sync`, a live operation. What is given is the URL's own
record or none.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..errors import NotFoundError, UnprocessableError
from ..models import Page, Payout
from ._places import Places
from ._token import Claims
from ._values import Trusted

if TYPE_CHECKING:
    from .._runtime import Runtime
    from ..client import AsyncPayments

DEADLINE: Final = 15.0
"""Seconds for one reading, its retries and its place in the line included."""
PER_PAGE: Final = 0.6
"""Seconds between walks for each page read: 1 % of the read limit, however many deliveries come."""
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

log = logging.getLogger("payments.webhooks")


@attrs.frozen
class Reading:
    """What one look came to."""

    record: Trusted | None
    """The URL's own record; None when it was not there."""
    requests: int
    """Requests it took."""
    foreign_id: str | None = None
    """The id that was named, when another URL's record has it."""


@attrs.define(eq=False)
class Want:
    """One URL whose record is wanted."""

    claims: Claims
    token: str
    record_id: str | None
    """As the delivery claims."""
    future: asyncio.Future[Reading] = attrs.field(factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def keys(self) -> tuple[str, str]:
        """Either names the record; see `key_of`."""
        return f"token {self.token}", f"reference {self.claims.reference}"


class Lookup:
    """The looks at one list, on one event loop."""

    def __init__(self, client: AsyncPayments, runtime: Runtime, *, payouts: bool, max_pages: int) -> None:
        self._client = client
        self._runtime = runtime
        self._payouts = payouts
        self._max_pages = max_pages
        self._wanted: list[Want] = []
        self._task: asyncio.Task[None] | None = None
        self._due = float("-inf")
        self._size: int | None = 100
        self._places = Places()

    async def read(self, want: Want) -> Reading:
        """Look for a record. Raises PaymentsError."""
        self._wanted.append(want)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        reading = await want.future
        if reading.record is None and self._payouts and want.record_id is not None:
            return await self._synced(want, want.record_id, reading.requests)
        return reading

    async def _run(self) -> None:
        """Walk as long as anybody waits. Whoever comes during a walk is served by the next one."""
        try:
            while self._wanted:
                if (delay := self._due - self._runtime.monotonic()) > 0:
                    await self._runtime.sleep(delay)
                wants, self._wanted = self._wanted, []
                await self._serve(wants)
        finally:
            self._task = None

    async def _serve(self, wants: list[Want]) -> None:
        walks = defaultdict(list)
        for want in wants:
            walks[want.claims.minted_at // 86_400, self._places.of(want.token)].append(want)
        for (day, start), same in walks.items():
            try:
                pages = await self._walk(day, start, same)
            except Exception as error:  # whatever it is, it is theirs who wait; the next walk is for others
                pages = 1
                for want in same:
                    if not want.future.done():
                        want.future.set_exception(error)
            self._due = max(self._due, self._runtime.monotonic()) + PER_PAGE * pages

    async def _walk(self, day: int, start: str | None, wants: Collection[Want]) -> int:
        """Read pages from `start` on until everybody's record was seen; gives their number."""
        index: defaultdict[str, list[Want]] = defaultdict(list)
        for want in wants:
            for key in want.keys:
                index[key].append(want)
        cursor, pages = start, 0
        while pages < self._max_pages:
            page = await self._page(day, cursor, start)
            pages += 1
            for record in page or ():
                for want in index.get(key_of(record), ()):
                    if not want.future.done():
                        self._places.note(want.token, cursor)
                        want.future.set_result(Reading(record, pages))
            cursor = page.next_cursor if page is not None else None
            if all(want.future.done() for want in wants) or (cursor is None and page is not None):
                break
        self._miss([want for want in wants if not want.future.done()], day, pages, cursor)
        return pages

    def _miss(self, wants: Collection[Want], day: int, pages: int, cursor: str | None) -> None:
        """Tell those who wait for a record that was not there; `cursor` is where the list goes on."""
        for want in wants:
            self._places.note(want.token, cursor)
            if not self._payouts or want.record_id is None:
                since, until = _window(day)
                log.warning(_CUT_OFF if cursor else _NOT_THERE, pages, since, until)
            want.future.set_result(Reading(None, pages))

    async def _page(self, day: int, cursor: str | None, start: str | None) -> Page[Any] | None:
        """One page; None when the service does not take the cursor of an earlier walk, `start`, any more."""
        since, until = _window(day)
        resource = self._client.payouts if self._payouts else self._client.payment_intents
        try:
            return await resource.list(
                created_on_or_after=since,
                created_on_or_before=until,
                page_size=self._size,
                cursor=cursor,
                deadline=DEADLINE,
            )
        except UnprocessableError:
            if cursor is not None and cursor == start:
                return None
            if self._size is None:
                raise
        self._size = None  # pages may be smaller than we would have them (gap D): as the service pleases
        return await self._page(day, cursor, start)

    async def _synced(self, want: Want, record_id: str, requests: int) -> Reading:
        try:
            payout = await self._client.payouts.sync(record_id, deadline=DEADLINE)
        except NotFoundError:
            return Reading(None, requests + 1)
        if key_of(payout) in want.keys and payout.id == record_id:
            return Reading(payout, requests + 1)
        return Reading(None, requests + 1, foreign_id=record_id)


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
