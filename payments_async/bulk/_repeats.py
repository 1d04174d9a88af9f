"""Which of many numbers came more than once: sorted runs in a temporary file, memory that does not grow."""

from __future__ import annotations

import errno
import heapq
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from itertools import groupby, islice, pairwise
from typing import IO, Final, Self

RUN: Final = 1 << 15
"""Numbers that are held before they are sorted and written."""
_PAGE: Final = 1 << 9
_WIDTH: Final = 8


class Repeats:
    """Takes numbers from 0 to 2**64 - 1; `with` removes the file, which has no name."""

    def __init__(self, run: int = RUN) -> None:
        self._run = run
        self._now: array[int] = array("Q")
        self._kept: list[array[int]] = []
        """Runs for which there was no room on the disk."""
        self._written: list[tuple[int, int]] = []
        """Where in the file a run begins and ends, in bytes."""
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def extend(self, numbers: Iterable[int]) -> None:
        """Take some more."""
        self._now.extend(numbers)
        if len(self._now) >= self._run:
            self._put_away(array("Q", sorted(self._now)))
            self._now = array("Q")

    def found(self, most: int) -> set[int]:
        """The numbers that came more than once, `most` of them at most."""
        pages = (self._pages(*place) for place in self._written)
        merged = heapq.merge(sorted(self._now), *self._kept, *pages)
        again = (each for each, after in pairwise(merged) if each == after)
        return {each for each, _ in islice(groupby(again), most)}

    def _put_away(self, run: array[int]) -> None:
        try:
            self._write(run)
        except OSError:  # a full or missing folder for temporary files costs memory, and no batch
            self._kept.append(run)

    def _write(self, run: array[int]) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by `__exit__`
        start = self._written[-1][1] if self._written else 0
        end = start + _WIDTH * len(run)
        self._file.seek(start)
        if self._file.write(run) < end - start:
            raise OSError(errno.ENOSPC, "no room")
        self._written.append((start, end))

    def _pages(self, start: int, end: int) -> Iterator[int]:
        assert self._file is not None
        for place in range(start, end, _WIDTH * _PAGE):
            self._file.seek(place)
            page: array[int] = array("Q")
            page.frombytes(self._file.read(min(_WIDTH * _PAGE, end - place)))
            yield from page
