"""Rows in doubt that wait: for another post, or for a look at the list. Eight bytes for each, by when."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from typing import Final, NamedTuple

LOOKS: Final = 4


class UnresolvedRow(NamedTuple):
    """What a run has learned of a row in doubt; the rest is in the ledger."""

    number: int
    """The row's."""
    exists: bool = False
    """Whether its last request was answered 409."""
    refused: bool = False
    """Whether its last request was refused while an earlier one was in doubt."""
    everywhere: bool = False
    """Whether the next walk of the list has no filter."""
    looks: int = LOOKS
    """How many more walks this run affords it, 0 to 7."""
    times: int = 0
    """How often it was posted again after a back-off, 0 to 7."""


class UnresolvedQueue:
    """Rows in doubt by the second in which they are due. An outage may bring hundreds of thousands."""

    def __init__(self) -> None:
        self._due: dict[int, array[int]] = {}

    def add(self, doubt: UnresolvedRow, due: float = 0.0) -> None:
        """Take a row, to be looked for at `due` or up to a second later; at once unless told."""
        self._due.setdefault(math.ceil(due), array("Q")).append(_packed(doubt))

    @property
    def due(self) -> float | None:
        """When the next row is due; None when there is none."""
        return min(self._due, default=None)

    def __len__(self) -> int:
        return sum(map(len, self._due.values()))

    def take(self, until: float = math.inf) -> UnresolvedBatch:
        """Take out those that are due by then."""
        taken = array("Q")
        for second in sorted(second for second in self._due if second <= until):
            taken.extend(self._due.pop(second))
        return UnresolvedBatch(taken)


class UnresolvedBatch:
    """Rows in doubt that are being looked for."""

    def __init__(self, packed: array[int]) -> None:
        self._packed = packed

    def __len__(self) -> int:
        return len(self._packed)

    def groups(self, size: int) -> Iterator[list[UnresolvedRow]]:
        """All of them, so many at a time."""
        for start in range(0, len(self._packed), size):
            yield [_unpacked(each) for each in self._packed[start : start + size]]


def _packed(doubt: UnresolvedRow) -> int:
    flags = doubt.exists << 2 | doubt.refused << 1 | doubt.everywhere
    return ((doubt.number << 3 | doubt.times) << 3 | doubt.looks) << 3 | flags


def _unpacked(packed: int) -> UnresolvedRow:
    exists, refused, everywhere = (bool(packed & bit) for bit in (4, 2, 1))
    return UnresolvedRow(packed >> 9, exists, refused, everywhere, packed >> 3 & 7, packed >> 6 & 7)
