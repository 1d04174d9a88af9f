"""Finds rows of an input that share a key or a reference, rows with faults included, without a ledger.

Names are kept as numbers in sorted runs of a temporary file, so memory does not grow with the input.
"""

from __future__ import annotations

import errno
import heapq
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from itertools import groupby, islice, pairwise
from typing import IO, Final, Self

import attrs

from ..errors import RowFault
from ..sources import SourceItem
from ..sources._names import compared

RUN: Final = 1 << 15
"""Numbers that are held before they are sorted and written."""
_PAGE: Final = 1 << 9
_WIDTH: Final = 8


class RepeatFinder:
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


_MOST: Final = 100
_WARNINGS: Final = 20
_BITS: Final = (1 << 64) - 1
_Name = tuple[str, str]
"""A column, and what a row has there, as it is compared."""


@attrs.frozen
class Suspects:
    """Hashes of names that occurred more than once, a hundred at most of each kind."""

    same: frozenset[int]
    folded: frozenset[int]
    """Of names whose case was ignored."""

    def __bool__(self) -> bool:
        return bool(self.same or self.folded)


class UniqueNames:
    """What must be unique in a batch, as it goes by: 16 bytes of each name, which are soon on the disk."""

    def __init__(self) -> None:
        self._same, self._folded = RepeatFinder(), RepeatFinder()
        self._last: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._same.__exit__()
        self._folded.__exit__()

    def add(self, item: SourceItem) -> tuple[RowFault, ...]:
        """Note a row's names, once. What the batch makes for a row is unique with its key."""
        if item.number != self._last:
            self._last, names = item.number, [*_names(item)]
            self._same.extend(map(_hashed, names))
            self._folded.extend(_hashed(_folded(name)) for name in names)
        return ()

    def suspects(self) -> Suspects:
        """What a second reading has to look at."""
        return Suspects(frozenset(self._same.found(_MOST)), frozenset(self._folded.found(_MOST)))


@attrs.define
class Twins:
    """Finds, on a second reading, rows with an earlier row's name, and names that differ only in case."""

    _suspects: Suspects
    found: bool = False
    """Whether rows share a name."""
    warnings: list[str] = attrs.field(factory=list)
    """The first names that differ from an earlier one only in case."""
    _first: dict[_Name, SourceItem] = attrs.field(factory=dict)
    _cased: dict[_Name, tuple[_Name, SourceItem]] = attrs.field(factory=dict)
    _last: int | None = None

    def faults_of(self, item: SourceItem) -> list[RowFault]:
        """What is wrong with the names of a row, told once: they are an earlier row's."""
        if item.number == self._last:
            return []
        self._last = item.number
        faults = [_fault(item, name, first) for name in _names(item) if (first := self._twin(name, item))]
        self.found = self.found or bool(faults)
        return faults

    def _twin(self, name: _Name, item: SourceItem) -> SourceItem | None:
        """The earlier row with this name."""
        self._compare_case(name, item)
        if _hashed(name) not in self._suspects.same:
            return None
        first = self._first.setdefault(name, item)
        return None if first is item else first

    def _compare_case(self, name: _Name, item: SourceItem) -> None:
        folded = _folded(name)
        if _hashed(folded) in self._suspects.folded:
            other, first = self._cased.setdefault(folded, (name, item))
            if other != name and len(self.warnings) < _WARNINGS:
                self.warnings.append(
                    f"{_where(item)}, {name[0]} differs from that of {_where(first)} only in case: "
                    "they are two rows, and both are paid"
                )


def _names(item: SourceItem) -> Iterator[_Name]:
    for column, text in (("row_key", item.row_key), ("reference", item.reference)):
        if text is not None and (name := compared(text)):
            yield column, name


def _folded(name: _Name) -> _Name:
    return name[0], name[1].casefold()


def _hashed(name: _Name) -> int:
    return hash(name) & _BITS


def _where(item: SourceItem) -> str:
    return f"row {item.number}" if item.line is None else f"line {item.line}"


def _fault(item: SourceItem, name: _Name, first: SourceItem) -> RowFault:
    reason = f"is that of {_where(first)} too; make each unique"
    kept = tuple(item.original)
    return RowFault(item.line, item.number, name[0], reason, kept, item.row_key, item.reference)
