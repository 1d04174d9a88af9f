"""Finding the records that deliveries ask about: one walk of a list for everybody who waits for one.

Normal reads come first (Limits, Polling guidance). The interface shows no single read of a payout or
payment, so the list is walked around the day on which the URL was made. A payout that lies further back than
a few pages is then read by `payouts.sync`, a live operation. What is given is the URL's own record or none.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..errors import NotFoundError, UnprocessableError
from ..models import Page, Payout
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
        days = defaultdict(list)
        for want in wants:
            days[want.claims.minted_at // 86_400].append(want)
        for day, same in days.items():
            try:
                pages = await self._walk(day, same)
            except Exception as error:  # whatever it is, it is theirs who wait; the next walk is for others
                pages = 1
                for want in same:
                    if not want.future.done():
                        want.future.set_exception(error)
            self._due = max(self._due, self._runtime.monotonic()) + PER_PAGE * pages

    async def _walk(self, day: int, wants: Collection[Want]) -> int:
        """Read pages until everybody's record was seen; gives their number."""
        index: defaultdict[str, list[Want]] = defaultdict(list)
        for want in wants:
            for key in want.keys:
                index[key].append(want)
        cursor, pages = None, 0
        while pages < self._max_pages:
            page = await self._page(day, cursor)
            pages += 1
            for record in page:
                for want in index.get(key_of(record), ()):
                    if not want.future.done():
                        want.future.set_result(Reading(record, pages))
            cursor = page.next_cursor
            if cursor is None or all(want.future.done() for want in wants):
                break
        for want in wants:
            if not want.future.done():
                want.future.set_result(Reading(None, pages))
        return pages

    async def _page(self, day: int, cursor: str | None) -> Page[Any]:
        made = datetime.fromtimestamp(day * 86_400, UTC).date()
        resource = self._client.payouts if self._payouts else self._client.payment_intents
        try:
            return await resource.list(
                created_on_or_after=made - _EARLIER,
                created_on_or_before=made + _LATER,
                page_size=self._size,
                cursor=cursor,
                deadline=DEADLINE,
            )
        except UnprocessableError:
            if self._size is None:
                raise
        self._size = None  # pages may be smaller than we would have them (gap D): as the service pleases
        return await self._page(day, cursor)

    async def _synced(self, want: Want, record_id: str, requests: int) -> Reading:
        try:
            payout = await self._client.payouts.sync(record_id, deadline=DEADLINE)
        except NotFoundError:
            return Reading(None, requests + 1)
        if key_of(payout) in want.keys and payout.id == record_id:
            return Reading(payout, requests + 1)
        return Reading(None, requests + 1, foreign_id=record_id)


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
