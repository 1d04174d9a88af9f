"""One look's way through the list, and where the next look at the same URL goes on. Values only, no I/O.

A list comes newest first, and a page keeps its place while records are added (Endpoints). A look begins with
the front, back to what an earlier look has seen there, since a record may be listed later than its delivery
comes; then it goes on in the gaps, the stretches that no look has read yet.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final

import attrs

MOST: Final = 10_000
"""URLs whose places are known; the one that was looked for least lately is forgotten first."""

Gap = tuple[str, str | None]
"""From which cursor on, and to which record; None for the end of the list."""


@attrs.frozen
class Place:
    """What is known of where a URL's record is, or is not."""

    found: str | None = None
    """The cursor of the page on which it was."""
    mark: str | None = None
    """The last record of the front page of the latest look: from the front to there, all was read then."""
    gaps: tuple[Gap, ...] = ()
    """What was not read, the oldest first: a record is older than the first look for it, as a rule."""


NOWHERE: Final = Place()


class Places:
    """The place of each URL's record."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._places: OrderedDict[str, Place] = OrderedDict()

    def of(self, token: str) -> Place:
        """What is known."""
        return self._places.get(token, NOWHERE)

    def note(self, token: str, place: Place) -> None:
        """Begin there the next time."""
        self._places.pop(token, None)
        if place != NOWHERE:
            self._places[token] = place
        if len(self._places) > self._most:
            self._places.popitem(last=False)


class Way:
    """One look's way: which page it is to read next, until it is over.

    It takes `most` pages. When it goes on with an earlier look, half of them at most are the front's, and one
    at least is further back.
    """

    def __init__(self, place: Place, most: int) -> None:
        self.pages = 0
        """Requests made."""
        self._most = most
        self._is_known = place.found is not None
        self._goes_on = self._is_known or bool(place.gaps)
        self._until = place.mark
        self._gaps = deque(place.gaps if place.found is None else [(place.found, None)])
        self.is_front = not self._is_known
        """Its next page is one of the newest."""
        self._mark: str | None = None
        self._following: str | None = None
        """The cursor of what follows the pages of the front that were read."""
        self._front_pages = self._back_pages = 0
        self._is_own = False
        """The cursor is of this look."""

    @property
    def cursor(self) -> str | None:
        """Of the page to be read next; None for the newest."""
        return self._following if self.is_front else self._gaps[0][0]

    @property
    def is_from_before(self) -> bool:
        """The cursor is an earlier look's: the service may not take it any more."""
        return not self.is_front and not self._is_own

    @property
    def is_over(self) -> bool:
        """Everything was read, or as much as one look may."""
        has_enough = self.pages >= self._most and (self._back_pages > 0 or not self._goes_on)
        return not self.is_front and (has_enough or not self._gaps)

    @property
    def is_cut_off(self) -> bool:
        """Some is left to the next look."""
        return bool(self._gaps)

    @property
    def place(self) -> Place:
        """What the next look is to know when this one has found nothing."""
        if self._is_known or not self._gaps:
            return NOWHERE
        return Place(mark=self._mark, gaps=tuple(self._gaps))

    def passed(self, ids: Sequence[str], following: str | None) -> None:
        """The page was read, and the record is not on it; `following` is the next page's cursor."""
        self.pages += 1
        if self.is_front:
            self._passed_front(ids, following)
        else:
            self._passed_gap(ids, following)

    def forgotten(self) -> None:
        """The service does not take the cursor any more: all that is behind the front is a gap again."""
        self.pages += 1
        self.is_front, self._is_known, self._goes_on = self._is_known, False, False
        self._gaps = deque([(self._following, None)] if self._following else [])
        self._is_own = True

    def _passed_front(self, ids: Sequence[str], following: str | None) -> None:
        if not self._front_pages:
            self._mark = ids[-1] if ids else None
        self._front_pages += 1
        self._following = following
        if following is None:  # the whole list was read
            self._gaps.clear()
        elif not self._goes_on:
            self._gaps.append((following, None))
            self._is_own = True
        elif self._until is not None and self._until not in ids:
            if self._front_pages < self._most // 2:
                return
            self._gaps.append((following, self._until))
        self.is_front = False

    def _passed_gap(self, ids: Sequence[str], following: str | None) -> None:
        self._back_pages += 1
        _, until = self._gaps.popleft()
        self._is_own = following is not None and until not in ids
        if following is not None and self._is_own:
            self._gaps.appendleft((following, until))
