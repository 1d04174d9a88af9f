"""Finding the records that deliveries ask about: the pages of a list, for everybody who waits for one.

Normal reads come first (Limits, Polling guidance). The interface shows no single read of a payout or
payment, so the list is walked around the day on which the URL was made, one page for all who wait for it. So
many pages are read at most, the newest and the others by turns, and then rests for them: no look holds up the
others, and no crowd of looks those who come later. A look that was cut off is gone on with in the next one
(`_places`). A payout that lies further back than a few pages is read by `payouts.sync`, a live operation.
What is given is the URL's own record or none.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..errors import NotFoundError, UnprocessableError
from ..models import Page, Payout
from ._places import Place, Places, Way
from ._token import Claims
from ._values import Trusted

if TYPE_CHECKING:
    from .._runtime import Runtime
    from ..client import AsyncPayments

DEADLINE: Final = 15.0
"""Seconds for one reading, its retries and its place in the line included."""
PER_PAGE: Final = 0.6
"""Seconds of rest for each page read: 1 % of the read limit, however many deliveries come."""
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


@attrs.define(eq=False)
class Look:
    """One want's look, under way."""

    want: Want
    way: Way

    @property
    def day(self) -> int:
        """On which the URL was made."""
        return self.want.claims.minted_at // 86_400

    @property
    def page(self) -> tuple[int, str | None]:
        """What it is to read next: of which day's list, and from where on."""
        return self.day, self.way.cursor


class Lookup:
    """The looks at one list, on one event loop."""

    def __init__(self, client: AsyncPayments, runtime: Runtime, *, payouts: bool, max_pages: int) -> None:
        self._client = client
        self._runtime = runtime
        self._payouts = payouts
        self._max_pages = max_pages
        self._wanted: list[Want] = []
        self._looks: list[Look] = []
        """Under way; the one that waits longest comes first."""
        self._was_front = False
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
        """Read as long as anybody waits. Whoever comes while pages are read is served with the next ones."""
        try:
            while self._wanted or self._looks:
                if (delay := self._due - self._runtime.monotonic()) > 0:
                    await self._runtime.sleep(delay)
                self._looks += [
                    Look(want, Way(self._places.of(want.token), self._max_pages)) for want in self._wanted
                ]
                self._wanted = []
                await self._serve()
        finally:
            self._task = None

    async def _serve(self) -> None:
        """Read so many pages at most, and rest for them; the looks that are not over go on afterwards."""
        pages = 0
        while self._looks and pages < self._max_pages:
            pages += 1
            same = self._next()
            try:
                await self._turn(same)
            except Exception as error:  # whatever it is, it is theirs who wait for this page; others go on
                for look in same:
                    if not look.want.future.done():
                        look.want.future.set_exception(error)
            self._queue_up({*same})
        self._due = self._runtime.monotonic() + PER_PAGE * pages

    def _next(self) -> list[Look]:
        """Those who wait for the page to be read now: of the newest and of the others by turns."""
        newest = [look for look in self._looks if look.way.is_front]
        others = [look for look in self._looks if not look.way.is_front]
        self._was_front = bool(newest) and not (others and self._was_front)
        first = (newest if self._was_front else others)[0]
        return [look for look in self._looks if look.page == first.page]

    async def _turn(self, same: Sequence[Look]) -> None:
        """Read one page for those who wait for it; it may have the record of others, too."""
        day, cursor = same[0].page
        index: defaultdict[str, list[Look]] = defaultdict(list)
        for look in self._looks:
            if look.day == day:
                for key in look.want.keys:
                    index[key].append(look)
        page = await self._page(day, cursor, may_be_forgotten=any(look.way.is_from_before for look in same))
        for record in page or ():
            for look in index.get(key_of(record), ()):
                if not look.want.future.done():
                    self._places.note(look.want.token, Place(found=cursor))
                    look.want.future.set_result(Reading(record, look.way.pages + 1))
        for look in same:
            if look.want.future.done():
                continue
            if page is None:
                look.way.forgotten()
            else:
                look.way.passed([record.id for record in page], page.next_cursor)
            if look.way.is_over:
                self._miss(look)

    def _queue_up(self, served: Set[Look]) -> None:
        """Who has just been served waits behind the others."""
        waiting = [look for look in self._looks if not look.want.future.done()]
        self._looks = [look for look in waiting if look not in served]
        self._looks += [look for look in waiting if look in served]

    def _miss(self, look: Look) -> None:
        """Tell somebody whose record was not there."""
        want, way = look.want, look.way
        self._places.note(want.token, way.place)
        if not self._payouts or want.record_id is None:
            since, until = _window(look.day)
            log.warning(_CUT_OFF if way.is_cut_off else _NOT_THERE, way.pages, since, until)
        want.future.set_result(Reading(None, way.pages))

    async def _page(self, day: int, cursor: str | None, *, may_be_forgotten: bool) -> Page[Any] | None:
        """One page; None when the service does not take an earlier look's cursor any more."""
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
            if may_be_forgotten:
                return None
            if self._size is None:
                raise
        self._size = None  # pages may be smaller than we would have them (gap D): as the service pleases
        return await self._page(day, cursor, may_be_forgotten=may_be_forgotten)

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
