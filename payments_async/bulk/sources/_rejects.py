"""The rejects file: rows with faults, to be corrected and imported."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

from ..._files import AtomicFile
from ..errors import RowFault
from ._base import Source
from ._columns import REFERENCE, ROW_KEY, compared

FAULT_COLUMNS: Final = ("line", "column", "reason")
"""The first columns of a rejects file; the row's own follow."""

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_MARK: Final = "'"
_ITS_KEY: Final = "; a row whose row_key is another row's needs a new one, and its reference cell emptied"
_UNNAMED: Final = "; no reference could be given to it: see that no other row pays the same"


def escaped(cell: str) -> str:
    """Escape a cell that a spreadsheet would take for a formula, with an apostrophe in front."""
    return _MARK + cell if cell.startswith((*_FORMULA, _MARK)) else cell


def unescaped(cell: str) -> str:
    return cell.removeprefix(_MARK)


class RejectsFile:
    """Writes the rows of a source that have faults: line, columns, reasons, and the row itself.

    The file holds account data: only its owner may read it (0600). It appears, or replaces an older one,
    when `written` ends without an exception. Corrected, the rejects of a CSV file are read by `CsvSource` as
    they are: it skips the first three columns and removes the apostrophes again.

    `references` gives the reference that a row has in its batch. Each row then carries it, so that the
    service refuses a second payout of a row that is paid after all, whatever batch it is run in.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        source: Source,
        references: Callable[[RowFault], str | None] | None = None,
    ) -> None:
        self.path: Path = Path(path)
        self._references = references
        self._source = source
        self._pending: list[RowFault] = []
        self.rows: int = 0
        """Rows written so far."""

    @contextmanager
    def written(self) -> Iterator[None]:
        """Context in which the file is written. Raises OSError where it cannot be."""
        with AtomicFile(self.path) as whole:
            text = TextIOWrapper(whole.file, encoding="utf-8", errors="surrogateescape", newline="")
            self._writer: Any = csv.writer(text)
            yield
            self._flush()
            text.detach()

    def add(self, fault: RowFault) -> None:
        """Add one fault. The faults of one row follow each other, as `Source.rows` gives them."""
        if self._pending and self._pending[0].number != fault.number:
            self._flush()
        self._pending.append(fault)

    def _flush(self) -> None:
        columns = self._source.columns
        if self.rows == 0:  # the source's columns are known only now
            added = [REFERENCE] if self._references and REFERENCE not in columns else []
            self._writer.writerow([*FAULT_COLUMNS, *added, *columns])
        if not self._pending:
            return
        self.rows += 1
        first, *others = self._pending
        names = "; ".join(fault.column for fault in self._pending if fault.column)
        reasons = [
            f"{fault.column} {fault.reason}" if others and fault.column else fault.reason
            for fault in self._pending
        ]
        cells, note = self._named(first)
        line = first.number if first.line is None else first.line
        self._writer.writerow([line, names, "; ".join(reasons) + note, *map(escaped, cells)])
        self._pending.clear()

    def _named(self, fault: RowFault) -> tuple[list[str], str]:
        """Add the reference to a row's cells. Returns them with the note on it for the reason."""
        cells, columns = list(fault.original), self._source.columns
        if self._references is None:
            return cells, ""
        own = compared(fault.reference or "")
        made = "" if own else self._references(fault) or ""
        if REFERENCE not in columns:
            cells.insert(0, made)
        elif made and len(cells) == len(columns):
            cells[columns.index(REFERENCE)] = made
        else:
            made = ""
        if made:
            return cells, _ITS_KEY if any(each.column == ROW_KEY for each in self._pending) else ""
        return cells, "" if own else _UNNAMED
