"""The formats of an export: CSV and JSON Lines; in `excel.py` workbooks. Each writes records as they come."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO, Final

import attrs

from ...models._masking import clean
from .._ledger.figures import Figures
from ..sources._rejects import escaped
from .row_records import Record, flat, json_text


@attrs.frozen
class Summary:
    """What a report says beside its rows."""

    head: Mapping[str, str]
    """Whose report it is, when it was made, and which rows it holds."""
    figures: Figures
    certificate: Mapping[str, Any] | None  # the latest one, as JSON values


class ExportFormat:
    """Writes records to a binary file. `columns`: those of a flat file."""

    def __init__(self, file: BinaryIO, columns: Sequence[str]) -> None:
        self._file, self._columns = file, columns

    def write(self, records: Sequence[Record]) -> None:
        """Write the next records."""

    def end(self, summary: Summary) -> None:
        """Write what comes after the last record."""

    def abandon(self) -> None:
        """Abandon a file that will not be complete."""


class CsvFormat(ExportFormat):
    """A header, then a line for each record. Control characters and line ends in cells are escaped.

    Cells that a spreadsheet would take for formulas have an apostrophe first.
    """

    def __init__(self, file: BinaryIO, columns: Sequence[str]) -> None:
        super().__init__(file, columns)
        self._lines([columns])

    def write(self, records: Sequence[Record]) -> None:
        """Write the next records."""
        self._lines(flat(record, self._columns) for record in records)

    def _lines(self, lines: Iterable[Iterable[Any]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text).writerows([_cell(value) for value in line] for line in lines)
        self._file.write(text.getvalue().encode())


def _cell(value: Any) -> str:
    return "" if value is None else escaped(clean(str(value)))


class JsonLinesFormat(ExportFormat):
    """One JSON object a line, in which the parts of a record are objects: it needs no columns."""

    def write(self, records: Sequence[Record]) -> None:
        self._file.write("".join(f"{json_text(record)}\n" for record in records).encode())


FORMATS: Final[Mapping[str, type[ExportFormat]]] = {".csv": CsvFormat, ".jsonl": JsonLinesFormat}
"""{suffix: format}, without workbooks, whose module is imported when one is written."""
