"""The looks that are under way at one list: what each is for, and which page is read next. No I/O.

All who are to read the same page wait together. The newest page and the others take turns, so that a new
record does not wait for a crowd of old ones, nor they for those who keep coming.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict

import attrs

from ._places import Way
from ._tokens import Claims
from ._values import Trusted

PageOf = tuple[int, str | None]
"""Of which day's list, and from which cursor on; None for its newest page."""


@attrs.frozen
class Reading:
    """What one look came to."""

    record: Trusted | None
    """The URL's own record; None when it was not there."""
    requests: int
    """Requests it took."""
    foreign_id: str | None = None
    """The id that was named, when another URL's record has it."""


@attrs.frozen
class Want:
    """One URL whose record is wanted."""

    claims: Claims
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
class Look:
    """One want's look, under way."""

    want: Want
    way: Way
    since: int
    """Pages that were asked for before it: what they show may be older than the delivery."""
    until: float
    """When it has been held for long enough."""
    future: asyncio.Future[Reading] = attrs.field(factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def page(self) -> PageOf:
        """What it is to read next."""
        return self.want.day, self.way.cursor


class Line:
    """The pages that somebody waits for, those asked for earlier first."""

    def __init__(self) -> None:
        self._newest: OrderedDict[PageOf, list[Look]] = OrderedDict()
        self._others: OrderedDict[PageOf, list[Look]] = OrderedDict()
        self._by_key: defaultdict[tuple[int, str], set[Look]] = defaultdict(set)
        self._was_newest = False

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._newest or self._others)

    def enter(self, look: Look) -> None:
        """A new look: until its future is done, a page that others read may have its record, too."""
        for key in look.want.keys:
            self._by_key[look.want.day, key].add(look)
        look.future.add_done_callback(lambda _: self._leave(look))
        self.queue(look)

    def queue(self, look: Look) -> None:
        """Wait for its next page, behind those that are waited for."""
        self._line_of(look.page).setdefault(look.page, []).append(look)

    def turn(self) -> list[Look]:
        """Those who wait for the page to be read now; none when all of them have gone."""
        self._was_newest = bool(self._newest) and not (self._others and self._was_newest)
        _, together = (self._newest if self._was_newest else self._others).popitem(last=False)
        return [look for look in together if not look.future.done()]

    def ahead_of(self, page: PageOf) -> int:
        """How many other pages are read before it."""
        line = self._line_of(page)
        return len(line) - (page in line)

    def after(self, day: int, key: str) -> list[Look]:
        """Who asks for the record of this key."""
        return [look for look in self._by_key.get((day, key), ()) if not look.future.done()]

    def _line_of(self, page: PageOf) -> OrderedDict[PageOf, list[Look]]:
        return self._newest if page[1] is None else self._others

    def _leave(self, look: Look) -> None:
        for key in look.want.keys:
            together = self._by_key[look.want.day, key]
            together.discard(look)
            if not together:
                del self._by_key[look.want.day, key]
