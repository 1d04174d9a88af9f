"""Finds rows of an input that share a key or a reference, including rows with faults. Needs no ledger.

The first reading puts the hash of each name into a temporary table, so memory does not grow with the input.
When a hash occurs twice, a second reading compares the names themselves.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import attrs

from ..errors import RowFault
from ..sources import SourceItem
from ..sources._columns import compared

_WARNINGS: Final = 20
_GROUP: Final = 1024
_CACHE: Final = 4096
"""SQLite's page cache for the table, in KiB."""
_INSERT: Final = "INSERT INTO names VALUES (?, ?)"
_SAME: Final = "SELECT same FROM names GROUP BY same HAVING count(*) > 1 ORDER BY min(rowid) LIMIT 100"
_CASED: Final = (
    "SELECT folded FROM names GROUP BY folded HAVING min(same) < max(same) ORDER BY min(rowid) LIMIT 100"
)
_Name = tuple[str, str]
"""A column, and a row's value there, normalized for comparison."""


@attrs.frozen
class RepeatedHashes:
    """Hashes of names that occurred more than once, the first hundred of each kind."""

    same: frozenset[int]
    cased: frozenset[int]
    """Hashes of lower-case names that were written with different capitals."""

    def __bool__(self) -> bool:
        return bool(self.same or self.cased)


class NoTemporaryFile(Exception):
    """Temporary files cannot be written."""


@contextmanager
def _on_the_disk() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise NoTemporaryFile from error


class NameTable:
    """A temporary table of the hashes of all names of an input: in memory, or on disk when there are many.

    Its methods raise NoTemporaryFile.
    """

    def __init__(self, *, in_memory: bool = False) -> None:
        self._db = sqlite3.connect(":memory:" if in_memory else "")  # "": a file that SQLite removes itself
        self._db.executescript(
            f"PRAGMA journal_mode=OFF; PRAGMA cache_size=-{_CACHE};"
            f"PRAGMA temp_store={'MEMORY' if in_memory else 'FILE'};"
            "CREATE TABLE names (same INTEGER NOT NULL, folded INTEGER NOT NULL)"
        )
        self._waiting: list[tuple[int, int]] = []
        self._last: int | None = None

    def close(self) -> None:
        """Remove the table."""
        self._db.close()

    def add(self, item: SourceItem) -> tuple[RowFault, ...]:
        """Add a row's names, once. Names that the batch itself makes are unique already."""
        if item.number != self._last:
            self._last = item.number
            self._waiting.extend((hash(name), hash(_folded(name))) for name in _names(item))
            if len(self._waiting) >= _GROUP:
                self._insert()
        return ()

    def repeated(self) -> RepeatedHashes:
        """The hashes that a second reading has to compare."""
        self._insert()
        return RepeatedHashes(self._found(_SAME), self._found(_CASED))

    def _insert(self) -> None:
        with _on_the_disk(), self._db:
            self._db.executemany(_INSERT, self._waiting)
        self._waiting.clear()

    def _found(self, query: str) -> frozenset[int]:
        with _on_the_disk():
            return frozenset(number for (number,) in self._db.execute(query))


@attrs.define
class DuplicateFinder:
    """Finds rows with an earlier row's name, and names that differ only in case, in a second reading."""

    _repeated: RepeatedHashes
    found: bool = False
    """True if rows share a name."""
    warnings: list[str] = attrs.field(factory=list)
    """Warnings for the first names that differ from an earlier one only in case."""
    _first: dict[_Name, SourceItem] = attrs.field(factory=dict)
    _cased: dict[_Name, tuple[_Name, SourceItem]] = attrs.field(factory=dict)
    _last: int | None = None

    def faults_of(self, item: SourceItem) -> list[RowFault]:
        """Report the names of a row that an earlier row has, each once."""
        if item.number == self._last:
            return []
        self._last = item.number
        faults = [_fault(item, name, first) for name in _names(item) if (first := self._earlier(name, item))]
        self.found = self.found or bool(faults)
        return faults

    def _earlier(self, name: _Name, item: SourceItem) -> SourceItem | None:
        """Find the earlier row with this name; otherwise remember this one."""
        self._compare_case(name, item)
        if hash(name) not in self._repeated.same:
            return None
        first = self._first.setdefault(name, item)
        return None if first is item else first

    def _compare_case(self, name: _Name, item: SourceItem) -> None:
        folded = _folded(name)
        if hash(folded) in self._repeated.cased:
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


def _where(item: SourceItem) -> str:
    return f"row {item.number}" if item.line is None else f"line {item.line}"


def _fault(item: SourceItem, name: _Name, first: SourceItem) -> RowFault:
    reason = f"is that of {_where(first)} too; make each unique"
    kept = tuple(item.original)
    return RowFault(item.line, item.number, name[0], reason, kept, item.row_key, item.reference)
