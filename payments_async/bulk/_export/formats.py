"""The file formats of an export: CSV, JSON, JSON Lines, Parquet; in `excel.py` workbooks.

Each writes records as they come.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO, ClassVar, Final

from ..._extras import needs
from ...models._masking import clean
from .._ledger.figures import Figures
from ..sources._rejects import escaped
from .row_records import WHOLE_NUMBERS, Record, flat, json_text

Facts = Mapping[str, Any]
"""A certificate as JSON values."""


class ExportFormat:
    """Writes records to a binary file: the steps that a format does not need do nothing."""

    has_summary: ClassVar[bool] = False
    """True if it also writes the money by outcome and the certificate, and leaves empty input columns out."""

    def __init__(self, file: BinaryIO, columns: Sequence[str]) -> None:
        self._file, self._columns = file, columns

    def write(self, records: Sequence[Record]) -> None:
        """Write the next records."""

    def summary(self, head: Mapping[str, str], found: Figures, certificate: Facts | None) -> None:
        """Write the report's `head`, the batch's figures and its certificate, after the last record."""

    def end(self) -> None:
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
    """JSON Lines: one object a line."""

    _before, _between, _after, _empty = b"", b"\n", b"\n", b""
    _is_empty = True

    def write(self, records: Sequence[Record]) -> None:
        """Write the next records."""
        for record in records:
            self._file.write((self._before if self._is_empty else self._between) + json_text(record).encode())
            self._is_empty = False

    def end(self) -> None:
        """Write what comes after the last record."""
        self._file.write(self._empty if self._is_empty else self._after)


class JsonFormat(JsonLinesFormat):
    """JSON: one array of objects, each on a line of its own."""

    _before, _between, _after, _empty = b"[\n", b",\n", b"\n]\n", b"[]\n"


class ParquetFormat(ExportFormat):
    """Parquet: typed columns, amounts as exact text. Raises ImportError without the extra."""

    def __init__(self, file: BinaryIO, columns: Sequence[str]) -> None:
        super().__init__(file, columns)
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as missing:
            raise ImportError(needs("Parquet files need", "parquet")) from missing
        kinds = [(name, pyarrow.int64() if name in WHOLE_NUMBERS else pyarrow.string()) for name in columns]
        self._schema: Any = pyarrow.schema(kinds)
        self._batch: Any = pyarrow.RecordBatch
        self._writer: Any = pyarrow.parquet.ParquetWriter(file, self._schema)

    def write(self, records: Sequence[Record]) -> None:
        """Write the next records."""
        lines = [dict(zip(self._columns, flat(record, self._columns), strict=True)) for record in records]
        self._writer.write_batch(self._batch.from_pylist(lines, schema=self._schema))

    def end(self) -> None:
        """Write the footer."""
        self._writer.close()

    def abandon(self) -> None:
        """Prevent the writer from closing itself when garbage-collected: its file is gone by then."""
        self._writer.is_open = False


FORMATS: Final[Mapping[str, type[ExportFormat]]] = {
    ".csv": CsvFormat,
    ".json": JsonFormat,
    ".jsonl": JsonLinesFormat,
    ".ndjson": JsonLinesFormat,
    ".parquet": ParquetFormat,
}
"""{suffix: format}, without workbooks, whose module is imported when one is written."""
NESTED: Final = (JsonFormat, JsonLinesFormat)
"""Formats in which the parts of a record are objects: they need no columns."""
