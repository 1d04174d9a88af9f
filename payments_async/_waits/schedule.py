"""Schedules the readings of a list. Pure (Limits, Polling guidance).

The interval between readings is 5 s at least, longer after unchanged readings, and 0.6 s for each page that
was read. A reading of more than 100 pages is spread over time. So any number of waits costs at most 1 % of
the read limit.
"""

from __future__ import annotations

FLOOR = 5.0  # seconds: a transaction is never read more often
CEILING = 60.0  # seconds: the longest interval that unchanged answers lead to
PER_PAGE = 0.6
"""Seconds of the interval for each page read: 100 pages a minute, 1 % of the read limit."""
PAGES_AT_ONCE = 100  # pages that one reading for waits takes without a pause
MAX_PAGES = 1_000  # the most pages of 100 records that one reading for waits takes


def interval(unchanged: int, pages: int, chance: float) -> float:
    """Seconds to the next reading, with jitter: longer after unchanged readings and after many pages."""
    grown = FLOOR * 1.5 ** min(unchanged, 10)
    return max(min(grown, CEILING), pages * PER_PAGE) * (1.0 + 0.2 * chance)


def page_due(began: float, pages: int) -> float:
    """Time at which a reading that began at `began` and has read `pages` may ask for its next page."""
    return began if pages < PAGES_AT_ONCE else began + pages * PER_PAGE


class PollSchedule:
    """The schedule of one list's readings. Times are monotonic seconds."""

    def __init__(self) -> None:
        self.read_at: float = float("-inf")  # end of the last reading
        self._unchanged = self._pages = 0
        self._chance = 0.0

    def note(self, now: float, chance: float, *, pages: int, news: bool | None) -> None:
        """Note the end of a reading; `news`: whether a record had changed, None if it was interrupted."""
        self.read_at, self._chance, self._pages = now, chance, pages
        if news is not None:
            self._unchanged = 0 if news else self._unchanged + 1

    def note_record(self, now: float, chance: float) -> None:
        """Note that a record of the list was just read singly, so that the list can wait."""
        self.read_at, self._chance = max(now, self.read_at), chance

    def begin_anew(self) -> None:
        """Return to the shortest interval, for a new wait."""
        self._unchanged = 0

    @property
    def due(self) -> float:
        return self.read_at + interval(self._unchanged, self._pages, self._chance)

    def rest(self, now: float, until: float) -> float | None:
        """Seconds to the next reading, which is to begin before `until`; None when it cannot.

        The last reading comes early, if the shortest interval allows, so that the wait's whole time is used.
        """
        earliest = max(now, self.read_at + interval(0, self._pages, 0.0))
        return None if earliest > until else max(earliest, min(self.due, until)) - now
