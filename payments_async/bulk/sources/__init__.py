"""Sources of a batch's rows: CSV, Excel, JSON Lines, Parquet, or the caller's own code.

    for item in open_source("june.csv").read():
        ...                                  # a Row, or one or more RowFaults

Columns: `row_key` `reference` `amount` `currency` `method` `description` `webhook_url` `instrument.*`
`customer.*` `metadata.*` `gateway_options` (JSON). Types are never guessed: `+22990000000` and `00123` stay
text and amounts are exact. An instrument's type may be left out when its fields fit one (gap L).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from ..errors import RowFault, SourceUnreadable
from ._base import FileSource, Source
from ._iterables import Frame, Item
from ._iterables import IterableSource as IterableSource  # for `_loading`, as `RejectsFile` is
from ._mapping import ColumnMapping
from ._rejects import RejectsFile as RejectsFile
from ._requests import Row, SourceItem
from ._text_files import SAVE_AS, CsvSource, JsonLinesSource

__all__ = [
    "ColumnMapping",
    "FileSource",
    "Frame",
    "Item",
    "Row",
    "RowFault",
    "Source",
    "SourceItem",
    "open_source",
    "write_template",
]

_KNOWN: Final = ".csv, .tsv, .txt, .jsonl, .ndjson, .parquet and .xlsx"
_DELIMITED: Final = (".csv", ".tsv", ".txt")
_UNDELIMITED: Final = frozenset({".jsonl", ".ndjson", ".parquet", ".xlsx"})


def open_source(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    mapping: ColumnMapping | None = None,
) -> FileSource:
    """Make a file's source by its suffix: `.csv`, `.tsv`, `.txt`, `.jsonl`, `.ndjson`, `.parquet`, `.xlsx`.

    It reads nothing yet. `delimiter` separates the cells of a CSV file: a comma unless given, except that
    `.tsv` and `.txt` need one. Of an Excel workbook `sheet` is the one to read, unless only one is visible
    and has values. For a CSV file or a workbook, `header_row` is the line or row of its header where others
    stand above, and `mapping` is for other names.

    Raises SourceUnreadable for any other suffix, or an option of another kind of file, and ImportError when
    the extra of Parquet or of Excel is not installed.
    """
    suffix = Path(path).suffix.lower()
    if suffix != ".xlsx" and sheet is not None:
        raise SourceUnreadable(str(path), "is no .xlsx workbook, and has no sheet: leave it out")
    if (mapping or header_row is not None) and suffix not in {*_DELIMITED, ".xlsx"}:
        raise SourceUnreadable(str(path), "is no CSV file and no workbook: name its columns as ours")
    if delimiter is None and suffix in {".tsv", ".txt"}:
        raise SourceUnreadable(str(path), "is no .csv: say what separates its cells (--delimiter tab)")
    form: dict[str, Any] = {"header_row": header_row, "mapping": mapping}
    if suffix in _DELIMITED:
        return CsvSource(path, delimiter=delimiter or ",", **form)
    if delimiter is not None and suffix in _UNDELIMITED:
        raise SourceUnreadable(str(path), "is no CSV file, and has no delimiter: leave it out")
    if suffix in {".jsonl", ".ndjson"}:
        return JsonLinesSource(path)
    if suffix == ".parquet":
        from ._arrow import ParquetSource

        return ParquetSource(path)
    if suffix == ".xlsx":
        from ._excel import ExcelSource

        return ExcelSource(path, sheet=sheet, **form)
    if suffix in {".xls", ".xlsb", ".xlsm", ".ods"}:
        raise SourceUnreadable(str(path), f"is a workbook that is not read: {SAVE_AS}")
    raise SourceUnreadable(str(path), f"ends in {suffix or 'no suffix'}; known are {_KNOWN}")


def write_template(path: str | os.PathLike[str]) -> None:
    """Write an empty Excel workbook to fill in: a header, columns of text, drop-downs.

    Raises BulkError for a path that exists already or does not end in .xlsx, OSError where the file cannot
    be written, and ImportError without the extra.
    """
    from ._excel import write_empty

    write_empty(Path(path))
