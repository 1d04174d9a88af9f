"""Lookups in one list, and which page is read next for which of them. No I/O.

Lookups that need the same page wait together. The newest page and the others take turns, so that neither new
lookups nor those of old records hold up the others.

A lookup reads from the newest page down to what is an hour older than the day of the URL. That is its run. It
also continues the runs that earlier lookups of the URL left, so that a record that was listed late is found,
too. Where a URL's record was found, its next lookup begins.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict, deque
from typing import Final

import attrs

from .._assumptions import NO_END
from .._request.pages import REPEATED
from ._tokens import TokenClaims
from ._values import Trusted

MOST: Final = 10_000
"""URLs whose positions are kept; the least recently used is dropped first."""
SLACK: Final = 3_600.0
"""Seconds by which a record may seem older than its URL: the service has another clock."""
_RUNS: Final = 3
"""Runs that the next lookup continues: with more, each would hardly advance."""


@attrs.frozen
class Position:
    """The pages at which the next lookup of a URL begins."""

    found: str | None = None
    """The cursor of the page on which the record was."""
    runs: tuple[str, ...] = ()
    """The cursors from which runs continue, the oldest run first."""


UNKNOWN: Final = Position()


class Positions:
    """The position of each record of a URL (`WantedRecord.place`)."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._positions: OrderedDict[str, Position] = OrderedDict()

    def of(self, place: str) -> Position:
        """The position of a record."""
        return self._positions.get(place, UNKNOWN)

    def note(self, place: str, position: Position) -> None:
        """Keep the position for the next lookup."""
        self._positions.pop(place, None)
        if position != UNKNOWN:
            self._positions[place] = position
        if len(self._positions) > self._most:
            self._positions.popitem(last=False)


@attrs.frozen
class _PageRun:
    cursor: str | None
    """Of the page to be read next; None for the newest."""
    age: int
    """The order of their beginnings: the oldest is 0."""
    is_own: bool = False
    """True if this lookup began the run."""
    is_earlier: bool = False
    """True if the cursor is an earlier lookup's."""
    read: frozenset[str | None] = frozenset()
    """The cursors of the pages that it has read in this lookup."""


class PageWalk:
    """The pages that one lookup reads, one after another.

    It takes `most` pages. When it continues earlier runs it takes at least two: the newest, and another.
    """

    def __init__(self, position: Position, most: int, made_at: float = float("-inf")) -> None:
        self.pages = 0
        """Requests made."""
        self._oldest = made_at - SLACK
        self._is_known = position.found is not None
        self._is_first = position == UNKNOWN
        self._most = max(most, 2) if position.runs else most
        self._kept = max(1, min(_RUNS, most - 1))
        self._second: str | None = None
        self.problem: str | None = None
        """The reason why a run ended before the list's end, if one did."""
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

    def advance(self, oldest: float | None, following: str | None, *, is_last: bool = True) -> None:
        """The page was read, and the record is not on it.

        Args:
            oldest: when its last record was created, in seconds since 1970; None if it does not say so.
            following: the next page's cursor.
            is_last: whether the list surely ends with this page.
        """
        self.pages += 1
        run = self._runs.popleft()
        read = run.read | {run.cursor}
        is_past = oldest is not None and oldest < self._oldest
        if following is None or following in read or is_past:
            if not is_past and (following is not None or not is_last):
                self.problem = NO_END if following is None else REPEATED
            if run.is_own and self.problem is None:  # all was read in this one lookup
                self._runs.clear()
            return
        if run.cursor is None:
            self._second = following
            if len(self._runs) >= self._kept:  # the next lookup would not continue it
                return
        self._runs.append(attrs.evolve(run, cursor=following, is_earlier=False, read=read))

    def drop_earlier(self) -> None:
        """The service no longer takes an earlier cursor: drop all of them, and read what is newer."""
        self.pages += 1
        self._runs = deque(run for run in self._runs if not run.is_earlier)
        if self._is_known:
            self._is_known, self._is_first = False, True
            self._most += self.pages
        if not self._runs:
            self._runs.append(_PageRun(self._second, 0, is_own=True))


PageOf = tuple[int, str | None]
"""The day whose list it is, and the page's cursor; None for the newest page."""


@attrs.frozen
class LookupResult:
    """The result of one lookup."""

    record: Trusted | None
    """The URL's own record; None when it was not found."""
    requests: int
    """Requests that were made."""
    foreign_id: str | None = None
    """The id that the delivery named, when it is another URL's record."""


@attrs.frozen
class WantedRecord:
    """A URL whose record is looked up."""

    claims: TokenClaims
    token: str
    record_id: str | None
    """As the delivery claims."""

    @property
    def place(self) -> str:
        """Names the record's position: payments may share a URL."""
        return self.token if self.record_id is None else f"{self.token} {self.record_id}"

    @property
    def keys(self) -> tuple[str, str]:
        """Texts by which the record belongs to the URL; see `_lookup.key_of`."""
        return f"token {self.token}", f"reference {self.claims.reference}"

    @property
    def day(self) -> int:
        """The day on which the URL was made, since 1970."""
        return self.claims.made_at // 86_400


@attrs.define(eq=False)
class LookupInProgress:
    """A lookup under way."""

    want: WantedRecord
    walk: PageWalk
    since: int
    """Requests made before it began: their pages may be older than the delivery."""
    until: float
    """Time at which the lookup ends, found or not."""
    other: Trusted | None = None
    """A record of the URL that is not the one named."""
    future: asyncio.Future[LookupResult] = attrs.field(
        factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def page(self) -> PageOf:
        """The page that it reads next."""
        return self.want.day, self.walk.cursor


class PageQueue:
    """The pages that lookups wait for, first come first served."""

    def __init__(self) -> None:
        self._newest: OrderedDict[PageOf, list[LookupInProgress]] = OrderedDict()
        self._others: OrderedDict[PageOf, list[LookupInProgress]] = OrderedDict()
        self._by_key: defaultdict[tuple[int, str], set[LookupInProgress]] = defaultdict(set)
        self._was_newest = False

    def __bool__(self) -> bool:
        """Return whether any lookup waits."""
        return bool(self._newest or self._others)

    def enter(self, lookup: LookupInProgress) -> None:
        """Add a new lookup. Until its future is done, any page may have its record."""
        for key in lookup.want.keys:
            self._by_key[lookup.want.day, key].add(lookup)
        lookup.future.add_done_callback(lambda _: self._leave(lookup))
        self.queue(lookup)

    def queue(self, lookup: LookupInProgress) -> None:
        """Queue a lookup for its next page, behind the pages that others wait for."""
        self._lane_of(lookup.page).setdefault(lookup.page, []).append(lookup)

    def next(self) -> list[LookupInProgress]:
        """The lookups that wait for the page to be read now; empty when all of them were cancelled."""
        self._was_newest = bool(self._newest) and not (self._others and self._was_newest)
        _, lookups = (self._newest if self._was_newest else self._others).popitem(last=False)
        return [lookup for lookup in lookups if not lookup.future.done()]

    def ahead_of(self, page: PageOf) -> int:
        """Number of other pages to be read before this one."""
        line = self._lane_of(page)
        return len(line) - (page in line)

    def wanting(self, day: int, key: str) -> list[LookupInProgress]:
        """The lookups of the record with this key."""
        return [lookup for lookup in self._by_key.get((day, key), ()) if not lookup.future.done()]

    def _lane_of(self, page: PageOf) -> OrderedDict[PageOf, list[LookupInProgress]]:
        return self._newest if page[1] is None else self._others

    def _leave(self, lookup: LookupInProgress) -> None:
        for key in lookup.want.keys:
            lookups = self._by_key[lookup.want.day, key]
            lookups.discard(lookup)
            if not lookups:
                del self._by_key[lookup.want.day, key]
