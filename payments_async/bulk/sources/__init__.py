"""Sources of a batch's rows: CSV, JSON Lines, Parquet, or the caller's own code.

    for item in open_source("june.csv").read():
        ...                                  # a Row, or one or more RowFaults

Columns: `row_key` `reference` `amount` `currency` `method` `description` `webhook_url` `instrument.*`
`customer.*` `metadata.*` `gateway_options` (JSON). Types are never guessed: `+22990000000` and `00123` stay
text and amounts are exact. An instrument's type may be left out when its fields fit one (gap L).
"""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import RowFault, SourceUnreadable
from ._base import WORKBOOK, FaultCollector, FileSource, FileStat, Source
from ._csv import CsvSource
from ._iterables import Item, IterableSource
from ._jsonl import JsonLinesSource
from ._rejects import RejectsFile
from ._requests import Row, SourceItem

__all__ = [
    "CsvSource",
    "FaultCollector",
    "FileSource",
    "FileStat",
    "Item",
    "IterableSource",
    "JsonLinesSource",
    "RejectsFile",
    "Row",
    "RowFault",
    "Source",
    "SourceItem",
    "open_source",
]


_UNDELIMITED = frozenset({".jsonl", ".ndjson", ".parquet"})


def open_source(
    path: str | os.PathLike[str], *, strict_amounts: bool = False, delimiter: str | None = None
) -> FileSource:
    """Make a file's source by its suffix: `.csv`, `.jsonl` or `.ndjson`, `.parquet`. Reads nothing yet.

    `strict_amounts` refuses amounts of more than 15 significant digits, which are otherwise warned about;
    `delimiter` separates the cells of a CSV file, a comma unless given.
    Raises SourceUnreadable for any other suffix, or a delimiter with another kind of file, and ImportError
    when Parquet's extra is not installed.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        return CsvSource(path, strict_amounts=strict_amounts, delimiter=delimiter or ",")
    if delimiter is not None and suffix in _UNDELIMITED:
        raise SourceUnreadable(str(path), "is no CSV file, and has no delimiter: leave it out")
    if suffix in {".jsonl", ".ndjson"}:
        return JsonLinesSource(path, strict_amounts=strict_amounts)
    if suffix == ".parquet":
        from ._parquet import ParquetSource

        return ParquetSource(path, strict_amounts=strict_amounts)
    if suffix in {".xlsx", ".xls", ".ods"}:
        raise SourceUnreadable(str(path), WORKBOOK)
    problem = f"ends in {suffix or 'no suffix'}; known are .csv, .jsonl, .ndjson and .parquet"
    raise SourceUnreadable(str(path), problem)
