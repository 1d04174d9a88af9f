"""Queues of rows in doubt: those to be posted again, those to be searched for. Eight bytes for each row."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from ..._runtime import Runtime
from .._protocol.rows_in_doubt import post_again_after

SCANS: Final = 4
Taken = Sequence[int]
"""Rows that were taken from a queue, packed."""


class UnresolvedRow(NamedTuple):
    """A run's facts about a row in doubt; the rest is in the ledger."""

    number: int
    """The row's number."""
    exists: bool = False
    """True if the row's last request was answered 409."""
    refused: bool = False
    """True if the row's last request was refused while an earlier one was in doubt."""
    everywhere: bool = False
    """True if the next scan of the list has no filter."""
    scans: int = SCANS
    """How many more scans this run allows the row, 0 to 7."""
    times: int = 0
    """How often the row was posted again after a back-off, 0 to 7."""


class UnresolvedQueue:
    """Rows in doubt by the second in which they are due. An outage may bring hundreds of thousands."""

    def __init__(self) -> None:
        self._due: dict[int, array[int]] = {}

    def add(self, doubt: UnresolvedRow, due: float = 0.0) -> None:
        """Add a row, to be searched for at `due` or up to a second later; at once by default."""
        self._due.setdefault(math.ceil(due), array("Q")).append(_packed(doubt))

    @property
    def due(self) -> float | None:
        """The time when the next row is due; None when there is none."""
        return min(self._due, default=None)

    def __len__(self) -> int:
        return sum(map(len, self._due.values()))

    def take(self, until: float = math.inf) -> Taken:
        """Remove and return the rows that are due by then."""
        taken = array("Q")
        for second in sorted(second for second in self._due if second <= until):
            taken.extend(self._due.pop(second))
        return taken


def in_groups(taken: Taken, size: int) -> Iterator[list[UnresolvedRow]]:
    """Iterate over rows that were taken from a queue, `size` at a time."""
    for start in range(0, len(taken), size):
        yield [_unpacked(each) for each in taken[start : start + size]]


def _packed(doubt: UnresolvedRow) -> int:
    flags = doubt.exists << 2 | doubt.refused << 1 | doubt.everywhere
    return ((doubt.number << 3 | doubt.times) << 3 | doubt.scans) << 3 | flags


def _unpacked(packed: int) -> UnresolvedRow:
    exists, refused, everywhere = (bool(packed & bit) for bit in (4, 2, 1))
    return UnresolvedRow(packed >> 9, exists, refused, everywhere, packed >> 3 & 7, packed >> 6 & 7)


class BackOff:
    """Rows to be posted again after a back-off: 10 s, 20 s, 40 s, … Then `look` takes them, for the list."""

    def __init__(self, runtime: Runtime, look: Callable[[UnresolvedRow], object]) -> None:
        self._runtime, self._look = runtime, look
        self._waiting = UnresolvedQueue()
        self._times: dict[int, int] = {}
        """How often each row that is now posted again was posted before."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def due(self) -> float | None:
        """The time of the next post, on the runtime's monotonic clock; None when no row waits."""
        return self._waiting.due

    def add(self, number: int) -> None:
        """Add a row whose posts have failed under a key that is still trusted."""
        times = self._times.pop(number, 0)
        seconds = post_again_after(times)
        if seconds is None:
            self._look(UnresolvedRow(number))
        else:
            self._waiting.add(UnresolvedRow(number, times=times + 1), self._runtime.monotonic() + seconds)

    def take(self, size: int) -> Iterator[list[int]]:
        """Remove the rows that are due. Yields their numbers, `size` at a time."""
        for doubts in in_groups(self._waiting.take(self._runtime.monotonic()), size):
            self._times.update((doubt.number, doubt.times) for doubt in doubts)
            yield [doubt.number for doubt in doubts]

    def settled(self, number: int) -> None:
        """Forget a row that is no longer being sent, unless it waits again."""
        self._times.pop(number, None)

    def end(self) -> None:
        """Leave the waiting rows to the list: there is no time for another post."""
        for doubts in in_groups(self._waiting.take(), 500):
            for doubt in doubts:
                self._look(UnresolvedRow(doubt.number))
