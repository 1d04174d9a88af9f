"""Finds the record of a URL in the pages of a list.

Normal reads come first (Limits, Polling guidance). The interface shows no single read of a payout or
payment, so the list is read around the day on which the URL was made. One page serves all lookups that need
it. A few pages are read at once, and after them one for each rest. The newest page and the others take turns,
so that neither new lookups nor those of old records hold up the others.

A lookup reads from the newest page down to what is an hour older than the day of the URL. That is its run. It
also continues the runs that earlier lookups of the URL left, so that a record that was listed late is found,
too. A lookup that has read its share of pages ends, and the URL's next one continues from there. Where a
URL's record was found, its next lookup begins. A payout that lies further back is read by `payouts.sync`, a
live operation. A lookup gives the URL's own record or none.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, defaultdict, deque
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import attrs

from .._polling.schedule import PER_PAGE
from .._request.pages import PAYMENT_INTENTS, PAYOUTS, ListPosition, ListReader
from ..errors import NotFoundError, UnprocessableError
from ..models import Page, Payout
from ._delivery import ListedRecord
from ._tokens import DAY, TokenClaims

if TYPE_CHECKING:
    from ..client import AsyncPayments

DEADLINE: Final = 15.0
"""Seconds for one request, with its retries and its wait for the rate limit."""
PATIENCE: Final = 6.0
"""Seconds that a delivery may wait here; if it would wait longer, the service is to try again."""
MOST: Final = 10_000
"""URLs whose positions are kept; the least recently used is dropped first."""
SLACK: Final = 3_600.0
"""Seconds by which a record may seem older than its URL: the service has another clock."""
_RUNS: Final = 3
"""Runs that the next lookup continues: with more, each would hardly advance."""
_INSTANT: Final = 1e-6
"""Seconds: less is a sum's rounding."""
_EARLIER: Final = timedelta(days=1)
"""Clocks may differ."""
_LATER: Final = timedelta(days=2)
"""A record is made within a day of its URL."""
_MISSED: Final = (
    "a webhook delivery's record was not on the %d pages read of those created %s to %s:"
    " the service will try again; %s"
)

log = logging.getLogger("payments.webhooks")


@attrs.frozen
class Position:
    """The pages at which the next lookup of a URL begins."""

    found: str | None = None
    """The cursor of the page on which the record was."""
    runs: tuple[str, ...] = ()
    """The cursors from which runs continue, the oldest run first."""


UNKNOWN: Final = Position()


class Positions:
    """The positions of records, by the token of the URL and the id that a delivery names."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._positions: OrderedDict[tuple[str, str | None], Position] = OrderedDict()

    def of(self, token: str, record_id: str | None) -> Position:
        """The position of a record; payments may share a URL."""
        return self._positions.get((token, record_id), UNKNOWN)

    def note(self, token: str, record_id: str | None, position: Position) -> None:
        """Keep the position for the next lookup."""
        self._positions.pop((token, record_id), None)
        if position != UNKNOWN:
            self._positions[token, record_id] = position
        if len(self._positions) > self._most:
            self._positions.popitem(last=False)


@attrs.define
class _PageRun:
    """Pages that a lookup reads one after another, from the newest or from where an earlier one ended."""

    cursor: str | None
    """Of the page to be read next; None for the newest."""
    age: int
    """The order of their beginnings: the oldest is 0."""
    is_own: bool = False
    """True if this lookup began the run."""
    is_earlier: bool = False
    """True if the cursor is an earlier lookup's."""
    position: ListPosition | None = None
    """Position in the list; None before the lookup's first page of this run."""


class PageWalk:
    """The pages that one lookup reads: a page of each of its runs in turn.

    It takes `most` pages. When it continues earlier runs it takes at least two: the newest, and another.
    """

    def __init__(self, position: Position, most: int, made_at: float = float("-inf")) -> None:
        self.pages = 0
        """Requests made."""
        self.problem: str | None = None
        """The reason why a run ended before the list's end, if one did."""
        self._oldest = made_at - SLACK
        self._is_known = position.found is not None
        self._is_first = position == UNKNOWN
        self._most = max(most, 2) if position.runs else most
        self._kept = max(1, min(_RUNS, most - 1))
        self._second: str | None = None
        earlier = position.runs if position.found is None else (position.found,)
        self._runs = deque(_PageRun(cursor, age, is_earlier=True) for age, cursor in enumerate(earlier))
        if not self._is_known:
            self._runs.appendleft(_PageRun(None, len(earlier), is_own=True))

    @property
    def cursor(self) -> str | None:
        """Of the page to be read next; None for the newest."""
        return self._runs[0].cursor

    @property
    def is_earlier(self) -> bool:
        """True if the cursor is an earlier lookup's, which the service may no longer accept."""
        return self._runs[0].is_earlier

    @property
    def is_over(self) -> bool:
        """True if everything was read, or as much as one lookup may read."""
        return not self._runs or self.pages >= self._most

    @property
    def is_cut_off(self) -> bool:
        """True if pages are left for the next lookup."""
        return bool(self._runs)

    @property
    def position(self) -> Position:
        """The position for the next lookup if this one finds nothing."""
        if self._is_known:
            return UNKNOWN
        by_age = sorted(self._runs, key=lambda run: run.age)
        runs = [run.cursor for run in by_age if run.cursor is not None]
        if self._is_first and self._second is not None and self._second not in runs:
            runs.append(self._second)  # what is listed late is mostly among the newest of the first lookup
        return Position(runs=tuple(runs[: self._kept]))

    def advance(self, page: Page[Any]) -> None:
        """Note that the next page was read, and that the record is not on it."""
        run = self._runs.popleft()
        self.pages += 1
        position = run.position = run.position or ListPosition("webhooks", run.cursor)
        position.advance(page)
        is_past = _ends_before(page, self._oldest)
        if is_past or position.is_over or position.problem is not None:
            if not is_past:
                self.problem = position.problem or self.problem
            if run.is_own and self.problem is None:  # all was read in this one lookup
                self._runs.clear()
            return
        if run.cursor is None:
            self._second = position.cursor
            if len(self._runs) >= self._kept:  # the next lookup would not continue it
                return
        run.cursor, run.is_earlier = position.cursor, False
        self._runs.append(run)

    def drop_earlier(self) -> None:
        """The service no longer takes an earlier cursor: drop all of them, and read what is newer."""
        self.pages += 1
        self._runs = deque(run for run in self._runs if not run.is_earlier)
        if self._is_known:
            self._is_known, self._is_first = False, True
            self._most += self.pages
        if not self._runs:
            self._runs.append(_PageRun(self._second, 0, is_own=True))


def _ends_before(page: Page[Any], oldest: float) -> bool:
    """Return whether the page's last record was created before that time; it may not say when (gap AC)."""
    created_at = page.items[-1].created_at if page.items else None
    return created_at is not None and created_at.timestamp() < oldest


PageOf = tuple[int, str | None]
"""The day whose list it is, and the page's cursor; None for the newest page."""


@attrs.frozen
class LookupResult:
    """The result of one lookup."""

    record: ListedRecord | None
    """The URL's own record; None when it was not found."""
    requests: int
    """Requests that were made."""
    foreign_id: str | None = None
    """The id that the delivery named, when it is another URL's record."""


@attrs.define(eq=False, repr=False)
class Lookup:
    """The lookup of a URL's record."""

    claims: TokenClaims
    token: str
    record_id: str | None
    """As the delivery claims."""
    walk: PageWalk
    since: int
    """Requests made before it began: their pages may be older than the delivery."""
    until: float
    """Time at which it ends, found or not."""
    other: ListedRecord | None = None
    """A record of the URL that is not the one named."""
    future: asyncio.Future[LookupResult] = attrs.field(
        factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def keys(self) -> tuple[str, str]:
        """Texts by which the record belongs to the URL; see `key_of`."""
        return f"token {self.token}", f"reference {self.claims.reference}"

    @property
    def day(self) -> int:
        """The day on which the URL was made, since 1970."""
        return self.claims.made_at // DAY

    @property
    def page(self) -> PageOf:
        """The page that it reads next."""
        return self.day, self.walk.cursor


class PageQueue:
    """The pages that lookups wait for, first come first served. One page serves all that wait for it."""

    def __init__(self) -> None:
        self._newest: OrderedDict[PageOf, list[Lookup]] = OrderedDict()
        self._others: OrderedDict[PageOf, list[Lookup]] = OrderedDict()
        self._by_key: defaultdict[tuple[int, str], set[Lookup]] = defaultdict(set)
        self._was_newest = False

    def __bool__(self) -> bool:
        """Return whether any lookup waits."""
        return bool(self._newest or self._others)

    def enter(self, lookup: Lookup) -> None:
        """Add a new lookup. Until its future is done, any page may have its record."""
        for key in lookup.keys:
            self._by_key[lookup.day, key].add(lookup)
        lookup.future.add_done_callback(lambda _: self._leave(lookup))
        self.queue(lookup)

    def queue(self, lookup: Lookup) -> None:
        """Queue a lookup for its next page, behind the pages that others wait for."""
        self._pages_like(lookup.page).setdefault(lookup.page, []).append(lookup)

    def next(self) -> list[Lookup]:
        """The lookups that wait for the page to be read now; empty when all of them were cancelled."""
        self._was_newest = bool(self._newest) and not (self._others and self._was_newest)
        _, lookups = (self._newest if self._was_newest else self._others).popitem(last=False)
        return [lookup for lookup in lookups if not lookup.future.done()]

    def ahead_of(self, page: PageOf) -> int:
        """Number of other pages to be read before this one."""
        pages = self._pages_like(page)
        return len(pages) - (page in pages)

    def wanting(self, day: int, key: str) -> list[Lookup]:
        """The lookups of the record with this key."""
        return [lookup for lookup in self._by_key.get((day, key), ()) if not lookup.future.done()]

    def _pages_like(self, page: PageOf) -> OrderedDict[PageOf, list[Lookup]]:
        return self._newest if page[1] is None else self._others

    def _leave(self, lookup: Lookup) -> None:
        for key in lookup.keys:
            lookups = self._by_key[lookup.day, key]
            lookups.discard(lookup)
            if not lookups:
                del self._by_key[lookup.day, key]


class Lookups:
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

    def begin(self, claims: TokenClaims, token: str, record_id: str | None) -> Lookup:
        """Make a lookup, which `read` queues."""
        position = self._positions.of(token, record_id)
        walk = PageWalk(position, self._max_pages, claims.made_at)
        until = self._runtime.monotonic() + PATIENCE + PER_PAGE * self._max_pages
        return Lookup(claims, token, record_id, walk, self._pages, until)

    def wait(self, page: PageOf) -> float:
        """Seconds until a page is read that is queued now."""
        busy = max(0.0, self._rested_at - self._runtime.monotonic())
        return max(0.0, busy + PER_PAGE * (self._queue.ahead_of(page) + 1 - self._max_pages))

    async def read(self, lookup: Lookup) -> LookupResult:
        """Find a record. Raises PaymentsError."""
        self._queue.enter(lookup)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        result = await lookup.future
        if result.record is None and self._payouts and lookup.record_id is not None:
            return await self._synced(lookup, lookup.record_id, result.requests)
        return result

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
                    try:
                        await self._read(lookups)
                    except Exception as error:  # it concerns only the lookups that need this page
                        for lookup in lookups:
                            if not lookup.future.done():
                                lookup.future.set_exception(error)
        finally:
            self._task = None

    async def _read(self, lookups: Sequence[Lookup]) -> None:
        """Read the page that these lookups wait for, and go on with those whose record is not on it."""
        day, cursor = lookups[0].page
        since, until = _window(day)
        filters = {"created_on_or_after": since, "created_on_or_before": until, "deadline": DEADLINE}
        self._pages += 1
        number = self._pages
        page: Page[Any] | None = None
        try:
            page = await self._list.page(filters, cursor)
        except UnprocessableError:  # the service may no longer take the cursor of an earlier lookup
            if not any(lookup.walk.is_earlier for lookup in lookups):
                raise
        else:
            self._pass_on(page, day, cursor, number)
        for lookup in lookups:
            if not lookup.future.done():
                self._go_on(lookup, page)

    def _pass_on(self, page: Page[Any], day: int, cursor: str | None, number: int) -> None:
        """Give the page's records to their lookups, whichever page these wait for."""
        for record in page.items:
            for lookup in self._queue.wanting(day, key_of(record)):
                if lookup.since >= number:
                    continue
                if self._payouts or lookup.record_id in (None, record.id):
                    self._positions.note(lookup.token, lookup.record_id, Position(found=cursor))
                    lookup.future.set_result(LookupResult(record, lookup.walk.pages + 1))
                else:  # another payment of the same reference: the one that the delivery names may follow
                    lookup.other = lookup.other or record

    def _go_on(self, lookup: Lookup, page: Page[Any] | None) -> None:
        """Queue a lookup for the page after this one, or end it; None is a page whose cursor was refused."""
        if page is not None:
            lookup.walk.advance(page)
        elif lookup.walk.is_earlier:
            lookup.walk.drop_earlier()
        # twice: new lookups, which read the newest page, have every other turn
        if not lookup.walk.is_over and self._runtime.monotonic() + 2 * self.wait(lookup.page) <= lookup.until:
            self._queue.queue(lookup)
        else:
            self._miss(lookup)

    def _miss(self, lookup: Lookup) -> None:
        """End a lookup that has not found its record."""
        walk, record_id = lookup.walk, lookup.record_id
        self._positions.note(lookup.token, record_id, walk.position)
        if lookup.other is None and (not self._payouts or record_id is None):
            log.warning(_MISSED, walk.pages, *_window(lookup.day), _reason(walk))
        lookup.future.set_result(LookupResult(lookup.other, walk.pages))

    async def _synced(self, lookup: Lookup, record_id: str, requests: int) -> LookupResult:
        try:
            payout = await self._client.payouts.sync(record_id, deadline=DEADLINE)
        except NotFoundError:
            return LookupResult(None, requests + 1)
        if key_of(payout) in lookup.keys and payout.id == record_id:
            return LookupResult(payout, requests + 1)
        return LookupResult(None, requests + 1, foreign_id=record_id)


def _window(day: int) -> tuple[date, date]:
    """The days on which the record of a URL made on this one may have been created."""
    made = datetime.fromtimestamp(day * DAY, UTC).date()
    return made - _EARLIER, made + _LATER


def _reason(walk: PageWalk) -> str:
    """The reason why a lookup may not have found its record, for the log."""
    if walk.problem is not None:
        return f"the list cannot be read to its end ({walk.problem})"
    if walk.is_cut_off:
        return "the next lookup continues from there (max_pages reads more at a time)"
    return "it is not listed (was it created with its URL, and has this process the service's time?)"


def key_of(record: ListedRecord) -> str:
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
