"""Finds rows of an input that share a key or a reference, including rows with faults. Needs no ledger.

The hash of each name is put into a temporary file, so that memory does not grow with the input.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import attrs

from ..errors import BulkError, RowFault
from ..sources import SourceItem
from ..sources._columns import compared
from ..sources._requests import fault_of

_GROUP: Final = 1024
_CACHE: Final = 4096
"""SQLite's page cache for the table, in KiB."""
# A name's hash, and that of its lower case; the column that it is of, and the row that has it
_TABLE: Final = "CREATE TABLE names (same INTEGER, folded INTEGER, name TEXT, number INTEGER, line INTEGER)"
# Each row that has an earlier row's name, and that row
_SAME: Final = """
    WITH repeated AS (SELECT same, min(rowid) AS first FROM names GROUP BY same HAVING count(*) > 1)
    SELECT names.number, names.name, first.number, first.line FROM repeated
    JOIN names ON names.same = repeated.same JOIN names AS first ON first.rowid = repeated.first
    WHERE names.rowid > repeated.first ORDER BY names.rowid
"""
# The first rows whose name differs from an earlier row's only in case, and that row
_CASED: Final = """
    WITH cased AS
        (SELECT folded, min(rowid) AS first FROM names GROUP BY folded HAVING min(same) < max(same))
    SELECT names.name, names.number, names.line, first.number, first.line FROM cased
    JOIN names ON names.folded = cased.folded JOIN names AS first ON first.rowid = cased.first
    WHERE names.same <> first.same ORDER BY names.rowid LIMIT 20
"""


@attrs.frozen
class SharedNames:
    """The rows that share names."""

    faults: Mapping[int | None, Mapping[str, str]]
    """{number of a row: {column: the fault}}, where an earlier row has the name."""
    warnings: tuple[str, ...]
    """Of the first names that differ from an earlier one only in case."""

    def faults_of(self, item: SourceItem) -> list[RowFault]:
        """The faults of an item's row."""
        return [fault_of(item, *each) for each in self.faults.get(item.number, {}).items()]


class NameTable:
    """A temporary table of the names of an input, which SQLite removes. Raises BulkError on a full disk."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("")  # a file without a name
        self._db.executescript(
            f"PRAGMA journal_mode=OFF; PRAGMA cache_size=-{_CACHE}; PRAGMA temp_store=FILE; {_TABLE}"
        )
        self._waiting: list[tuple[int, int, str, int | None, int | None]] = []

    def close(self) -> None:
        """Remove the table."""
        self._db.close()

    def add(self, item: SourceItem) -> tuple[RowFault, ...]:
        """Add a row's names. Those that the batch itself makes are unique already."""
        for column, name in _names(item):
            row = (column, item.number, item.line)
            self._waiting.append((hash((column, name)), hash((column, name.casefold())), *row))
        if len(self._waiting) >= _GROUP:
            self._insert()
        return ()

    def shared(self) -> SharedNames:
        """The rows that share names, once every row was added."""
        self._insert()
        faults = defaultdict[int | None, dict[str, str]](dict)
        with _room():
            for number, column, *first in self._db.execute(_SAME):
                faults[number][column] = f"is that of {_where(*first)} too; make each unique"
            warnings = tuple(
                f"{_where(number, line)}, {column} differs from that of {_where(*first)} only in case: "
                "they are two rows, and both are paid"
                for column, number, line, *first in self._db.execute(_CASED)
            )
        return SharedNames(dict(faults), warnings)

    def _insert(self) -> None:
        with _room(), self._db:
            self._db.executemany("INSERT INTO names VALUES (?, ?, ?, ?, ?)", self._waiting)
        self._waiting.clear()


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise BulkError(
            f"there is no room for temporary files ({error}): name another folder for them in TMPDIR"
        ) from error


def _names(item: SourceItem) -> Iterator[tuple[str, str]]:
    """A row's names with their columns, in the form in which they are compared."""
    for column, text in (("row_key", item.row_key), ("reference", item.reference)):
        if text is not None and (name := compared(text)):
            yield column, name


def _where(number: int, line: int | None) -> str:
    return f"row {number}" if line is None else f"line {line}"
