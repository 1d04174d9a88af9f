"""Which entries of the journal are about a record, a webhook or an idempotency key.

A name leads to its latest entry, and each entry to the one before it of each of its names. So an entry costs
a few numbers, which the garbage collector does not visit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


class JournalIndex:
    """The numbers of entries by name. Bounded by the entries that are kept."""

    def __init__(self) -> None:
        self._latest: dict[str, int] = {}
        self._earlier: deque[tuple[int, ...]] = deque()
        """For each entry that is kept and each of its names, the number of the entry before; 0 for none."""

    def __len__(self) -> int:
        return len(self._latest)

    def add(self, number: int, names: Sequence[str]) -> None:
        """Add the newest entry under its names, which differ."""
        latest = self._latest
        self._earlier.append(tuple([latest.get(name, 0) for name in names]))
        for name in names:
            latest[name] = number

    def drop(self, number: int, names: Sequence[str]) -> None:
        """Drop the oldest entry, which was added under these names."""
        self._earlier.popleft()
        for name in names:
            if self._latest[name] == number:
                del self._latest[name]

    def latest(self, name: str) -> int:
        """The number of the latest entry of this name; 0 for none."""
        return self._latest.get(name, 0)

    def earlier(self, place: int, names: Sequence[str], name: str) -> int:
        """The number of the entry of this name before the one at this place among those kept; 0 for none."""
        return self._earlier[place][names.index(name)]

    def clear(self) -> None:
        """Drop every entry."""
        self._latest.clear()
        self._earlier.clear()
