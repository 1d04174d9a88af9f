"""A set of row numbers, one bit for each."""

from __future__ import annotations


class RowSet:
    """A set of row numbers that takes one bit for each."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, number: int) -> bool:
        """Add a row. Returns False if it was there already."""
        place, bit = number >> 3, 1 << (number & 7)
        self._bits.extend(bytes(max(0, place + 1 - len(self._bits))))
        fresh = not self._bits[place] & bit
        self._bits[place] |= bit
        return fresh

    def __contains__(self, number: int) -> bool:
        place = number >> 3
        return place < len(self._bits) and bool(self._bits[place] >> (number & 7) & 1)
