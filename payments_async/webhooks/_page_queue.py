"""The look-ups that are under way at one list: what each is for, and which page is read next. No I/O.

All that are to read the same page wait together. The newest page and the others take turns, so that a new
record does not wait for a crowd of old ones, nor they for those that keep coming.

One look-up reads from the newest page down to what is an hour older than the URL. It begins a run of its own
and continues the runs that earlier look-ups left, so that a record that was listed late is met too. Where a
URL's record was found, the next look-up begins.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict, deque
from typing import Final

import attrs

from ._tokens import TokenClaims
from ._values import Trusted

MOST: Final = 10_000
"""URLs whose places are known; the one that was looked for least lately is forgotten first."""
SLACK: Final = 3_600.0
"""Seconds by which a record may seem older than its URL: the service's clock is another one."""
_RUNS: Final = 3
"""Runs that go on in the next look: each of more would hardly come forward."""


@attrs.frozen
class Position:
    """What is known of where a URL's record is, or is not."""

    found: str | None = None
    """The cursor of the page on which it was."""
    runs: tuple[str, ...] = ()
    """The cursors from which runs go on, the oldest run first."""


NOWHERE: Final = Position()


class Positions:
    """The place of each URL's record."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._places: OrderedDict[str, Position] = OrderedDict()

    def of(self, token: str) -> Position:
        """What is known."""
        return self._places.get(token, NOWHERE)

    def note(self, token: str, place: Position) -> None:
        """Begin there the next time."""
        self._places.pop(token, None)
        if place != NOWHERE:
            self._places[token] = place
        if len(self._places) > self._most:
            self._places.popitem(last=False)


@attrs.frozen
class _Run:
    cursor: str | None
    """Of the page to be read next; None for the newest."""
    age: int
    """Runs of earlier looks come first; this look's own is the last."""
    is_own: bool = False
    """This look began it."""
    is_from_before: bool = False
    """The cursor is an earlier look's."""


class PageWalk:
    """One look's way: which page it is to read next, until it is over.

    It takes `most` pages. When it goes on with earlier runs it takes two at least: the newest, and another.
    """

    def __init__(self, place: Position, most: int, minted_at: float = float("-inf")) -> None:
        self.pages = 0
        """Requests made."""
        self._oldest = minted_at - SLACK
        self._is_known = place.found is not None
        self._is_first = place == NOWHERE
        self._most = max(most, 2) if place.runs else most
        self._kept = max(1, min(_RUNS, most - 1))
        self._second: str | None = None
        self.is_unproven = False
        """A run came to a page that neither ends the list nor says what follows."""
        earlier = place.runs if place.found is None else (place.found,)
        self._runs = deque(_Run(cursor, age, is_from_before=True) for age, cursor in enumerate(earlier))
        if not self._is_known:
            self._runs.appendleft(_Run(None, len(earlier), is_own=True))

    @property
    def cursor(self) -> str | None:
        """Of the page to be read next; None for the newest."""
        return self._runs[0].cursor

    @property
    def is_front(self) -> bool:
        """Its next page is the newest."""
        return self.cursor is None

    @property
    def is_from_before(self) -> bool:
        """The cursor is an earlier look's: the service may not take it any more."""
        return self._runs[0].is_from_before

    @property
    def is_over(self) -> bool:
        """Everything was read, or as much as one look may."""
        return not self._runs or self.pages >= self._most

    @property
    def is_cut_off(self) -> bool:
        """Some is left to the next look."""
        return bool(self._runs)

    @property
    def place(self) -> Position:
        """What the next look is to know when this one has found nothing."""
        if self._is_known:
            return NOWHERE
        by_age = sorted(self._runs, key=lambda run: run.age)
        runs = [run.cursor for run in by_age if run.cursor is not None]
        if self._is_first and self._second is not None and self._second not in runs:
            runs.append(self._second)  # what is listed late is mostly one of the first look's newest
        return Position(runs=tuple(runs[: self._kept]))

    def passed(self, oldest: float | None, following: str | None, *, is_last: bool = True) -> None:
        """The page was read, and the record is not on it.

        `oldest` is when its last record was created, in seconds since 1970, where it says so; `following` is
        the next page's cursor. `is_last`: where there is none, the list ends with this page.
        """
        self.pages += 1
        run = self._runs.popleft()
        is_past = oldest is not None and oldest < self._oldest
        if following is None or is_past:
            self.is_unproven |= not (is_last or is_past)
            if run.is_own and not self.is_unproven:  # all was read in this one look
                self._runs.clear()
            return
        if run.cursor is None:
            self._second = following
            if len(self._runs) >= self._kept:  # it would be begun for nothing
                return
        self._runs.append(attrs.evolve(run, cursor=following, is_from_before=False))

    def forgotten(self) -> None:
        """The service does not take the earlier cursor any more, nor others as old: what is newer goes on."""
        self.pages += 1
        self._runs = deque(run for run in self._runs if not run.is_from_before)
        if self._is_known:
            self._is_known, self._is_first = False, True
            self._most += self.pages
        if not self._runs:
            self._runs.append(_Run(self._second, 0, is_own=True))


PageOf = tuple[int, str | None]
"""Of which day's list, and from which cursor on; None for its newest page."""


@attrs.frozen
class LookupResult:
    """What one look came to."""

    record: Trusted | None
    """The URL's own record; None when it was not there."""
    requests: int
    """Requests it took."""
    foreign_id: str | None = None
    """The id that was named, when another URL's record has it."""


@attrs.frozen
class WantedRecord:
    """One URL whose record is wanted."""

    claims: TokenClaims
    token: str
    record_id: str | None
    """As the delivery claims."""

    @property
    def keys(self) -> tuple[str, str]:
        """Either names the record; see `_lookup.key_of`."""
        return f"token {self.token}", f"reference {self.claims.reference}"

    @property
    def day(self) -> int:
        """On which the URL was made."""
        return self.claims.minted_at // 86_400


@attrs.define(eq=False)
class LookupInProgress:
    """One want's look, under way."""

    want: WantedRecord
    way: PageWalk
    since: int
    """Pages that were asked for before it: what they show may be older than the delivery."""
    until: float
    """When it has been held for long enough."""
    future: asyncio.Future[LookupResult] = attrs.field(
        factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def page(self) -> PageOf:
        """What it is to read next."""
        return self.want.day, self.way.cursor


class PageQueue:
    """The pages that somebody waits for, those asked for earlier first."""

    def __init__(self) -> None:
        self._newest: OrderedDict[PageOf, list[LookupInProgress]] = OrderedDict()
        self._others: OrderedDict[PageOf, list[LookupInProgress]] = OrderedDict()
        self._by_key: defaultdict[tuple[int, str], set[LookupInProgress]] = defaultdict(set)
        self._was_newest = False

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._newest or self._others)

    def enter(self, look: LookupInProgress) -> None:
        """A new look: until its future is done, a page that others read may have its record, too."""
        for key in look.want.keys:
            self._by_key[look.want.day, key].add(look)
        look.future.add_done_callback(lambda _: self._leave(look))
        self.queue(look)

    def queue(self, look: LookupInProgress) -> None:
        """Wait for its next page, behind those that are waited for."""
        self._line_of(look.page).setdefault(look.page, []).append(look)

    def turn(self) -> list[LookupInProgress]:
        """Those who wait for the page to be read now; none when all of them have gone."""
        self._was_newest = bool(self._newest) and not (self._others and self._was_newest)
        _, together = (self._newest if self._was_newest else self._others).popitem(last=False)
        return [look for look in together if not look.future.done()]

    def ahead_of(self, page: PageOf) -> int:
        """How many other pages are read before it."""
        line = self._line_of(page)
        return len(line) - (page in line)

    def after(self, day: int, key: str) -> list[LookupInProgress]:
        """Who asks for the record of this key."""
        return [look for look in self._by_key.get((day, key), ()) if not look.future.done()]

    def _line_of(self, page: PageOf) -> OrderedDict[PageOf, list[LookupInProgress]]:
        return self._newest if page[1] is None else self._others

    def _leave(self, look: LookupInProgress) -> None:
        for key in look.want.keys:
            together = self._by_key[look.want.day, key]
            together.discard(look)
            if not together:
                del self._by_key[look.want.day, key]
