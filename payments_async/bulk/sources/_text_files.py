"""Text files in UTF-8, read in bounded memory: CSV (RFC 4180 with a header) and JSON Lines.

Every cell of a CSV file is text; no type is guessed.
"""

from __future__ import annotations

import codecs
import csv
import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, TextIO

from ..errors import RowFault, SourceUnreadable
from ._base import FileSource
from ._cells import NotJson, flatten, parse
from ._columns import AMOUNT
from ._mapping import ColumnMapping
from ._rejects import FAULT_COLUMNS, unescaped
from ._requests import RowMaker, SourceItem

MAX_ROW: Final = 1_048_576
"""Characters of one row, its line breaks included: far above any payout, far below any memory."""
SAVE_AS: Final = "save it as Excel Workbook (.xlsx), or as CSV in UTF-8"
_WORKBOOK: Final = f"is a spreadsheet's workbook, not a text file: {SAVE_AS}"
_UTF16: Final = "is UTF-16: save it as UTF-8"
_OTHERS: Final = {
    b"PK\x03\x04": _WORKBOOK,
    b"\xd0\xcf\x11\xe0": _WORKBOOK,  # .xls
    codecs.BOM_UTF16_LE: _UTF16,
    codecs.BOM_UTF16_BE: _UTF16,
    b"\x1f\x8b": "is packed with gzip: unpack it",
    b"<": f"is HTML or XML: open it in a spreadsheet, and {SAVE_AS}",
}
"""{how a file begins that is no UTF-8 text: what it is}."""


def open_text(path: Path, name: str) -> TextIO:
    """Open a file as UTF-8 text, behind its byte order marks; line endings are kept.

    Bytes that are not UTF-8 become lone surrogates, so that their rows can be named. Raises
    SourceUnreadable for what is no such text.
    """
    with path.open("rb") as file:
        start = file.read(512)
    text = start
    while text.startswith(codecs.BOM_UTF8):  # two, if a program adds its own to another's
        text = text[len(codecs.BOM_UTF8) :]
    others = (what for sign, what in _OTHERS.items() if text.lstrip().startswith(sign))
    if problem := next(others, _UTF16 if b"\0" in text[:4] else None):
        raise SourceUnreadable(name, problem, line=1)
    opened = path.open(encoding="utf-8", errors="surrogateescape", newline="")
    opened.seek(len(start) - len(text))
    return opened


class SourceLines:
    """The lines of a file. Raises SourceUnreadable for a row of more than `MAX_ROW` characters."""

    __slots__ = ("_name", "_next", "_row", "_size", "last", "number")

    def __init__(self, file: TextIO, name: str) -> None:
        self._next = file.readline
        self._name = name
        self._row = 1
        self._size = 0
        self.number = 0  # lines read so far
        self.last = ""  # the last of them

    def begin_row(self) -> int:
        """Begin a row with the next line. Returns that line's number, from 1."""
        self._size = 0
        self._row = self.number + 1
        return self._row

    def read(self) -> str:
        """The next line; "" at the end."""
        self.last = self._next(MAX_ROW + 1)
        self._size += len(self.last)
        if self._size > MAX_ROW:
            problem = (
                f"the row that begins here has more than {MAX_ROW} characters; is a quotation mark missing?"
            )
            raise SourceUnreadable(self._name, problem, line=self._row)
        self.number += 1
        return self.last


_SEPARATORS: Final = ",;\t|"
_HEAD: Final = 8_192  # characters by which the form of a file is recognised
_NAMED: Final = re.compile(r'"?sep=([^\w\s"]|\t)[^\w\r\n]*(?:\r\n?|\n)', re.IGNORECASE)
"""Excel's first line, which names the delimiter of the lines below."""
_SPACED: Final = re.compile(r' *"[^"]*"(?:[,;\t|] +"[^"]*")+ *')
"""A line with blanks in front of its quotation marks, which then are no part of a cell."""
_DIGITS: Final = re.compile(r"[0-9]+\.[0-9]{1,3}")


class CsvSource(FileSource):
    """Rows of a CSV file in UTF-8. Lines whose cells are all empty or blank are skipped.

    The header is the first other line from line `header_row` on. Empty cells may be left out at a row's end.
    A first line `sep=;` names the delimiter. A file that `RejectsFile` wrote is recognized by its first three
    columns, and its rejected rows are read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        delimiter: str = ",",
        header_row: int | None = None,
        mapping: ColumnMapping | None = None,
    ) -> None:
        row = "" if header_row is None else f"row {header_row} "
        super().__init__(path, form=row + (mapping.digest if mapping else ""))
        self._delimiter = delimiter
        self._header_row = header_row
        self._mapping = mapping or ColumnMapping()

    def _items(self, maker: RowMaker) -> Iterator[SourceItem]:
        with open_text(self.path, self.name) as file:
            start = file.tell()
            head = file.read(_HEAD)
            file.seek(start)
            named = _NAMED.match(head)
            delimiter = named[1] if named else self._delimiter
            above = int(named is not None) if self._header_row is None else self._header_row - 1
            first = next(islice(head.splitlines(), above, None), "")
            other = max(_SEPARATORS, key=head.count)
            hint = _separated(delimiter, other) if head.count(other) > head.count(delimiter) else ""
            lines = SourceLines(file, self.name)
            is_spaced = _SPACED.fullmatch(first) is not None
            reader = csv.reader(
                iter(lines.read, ""), delimiter=delimiter, skipinitialspace=is_spaced, strict=True
            )
            records = self._records(lines, reader, above, hint)
            line, header = next(records, (1, []))
            if tuple(header[: len(FAULT_COLUMNS)]) == FAULT_COLUMNS:
                header = header[len(FAULT_COLUMNS) :]
                records = ((line, [*map(unescaped, cells[len(FAULT_COLUMNS) :])]) for line, cells in records)
            width = 1 + max((at for at, name in enumerate(header) if name.strip()), default=-1)
            wide = len(header) if len(header) > width else 0
            mapped = self._mapping.apply(header[:width], records, hint)
            self._begin(maker, mapped.columns, [RowFault(line, None, *fault) for fault in mapped.faults])
            names = mapped.names
            for line, cells in records:
                wide = wide or len(cells)
                if len(cells) != len(names) and (problem := _fit(cells, names, wide, lines.last, delimiter)):
                    certain = {names[0]: cells[0]} if cells[0] else {}  # any other may have moved
                    yield from maker.broken(problem, cells, line=line, cells=certain)
                    continue
                texts = mapped.cells(cells) if self._mapping else cells
                given = {name: cell for name, cell in zip(self.columns, texts, strict=True) if cell}
                yield from maker.row(given, texts, line=line)

    def _records(
        self, lines: SourceLines, reader: Any, above: int, hint: str
    ) -> Iterator[tuple[int, list[str]]]:
        """The file's records that are not empty, each with the line where it begins."""
        begin, follow = lines.begin_row, reader.__next__
        for _ in islice(iter(lines.read, ""), above):
            begin()
        try:
            while True:
                line = begin()
                cells = follow()
                if any(map(str.strip, cells)):
                    yield line, cells
        except StopIteration:
            return
        except csv.Error as error:
            problem = (
                f"the row that begins here breaks the rules of CSV ({error}); is a quotation mark wrong?"
            )
            if hint and line == above + 1:
                problem = hint
        raise SourceUnreadable(self.name, problem, line=line)


def _fit(cells: list[str], names: Sequence[str], wide: int, last: str, delimiter: str) -> str | None:
    """Make a row as wide as the header where only empty cells at its end differ, as spreadsheets write them.

    They are too many where all rows are so `wide`, and too few in any row: but a file that ends within its
    `last` line may have been cut off there. Returns what is wrong with any other row.
    """
    width, comma = len(names), ""
    if split := _split_amount(cells, names) if delimiter == "," else "":
        if len(split.partition(".")[2]) < 3:  # else one between thousands
            comma = f"; a decimal comma? write {split}"
    else:
        if len(cells) == wide > width and not any(map(str.strip, cells[width:])):
            del cells[width:]
        if last.endswith(("\n", "\r")):
            cells.extend([""] * (width - len(cells)))
        if len(cells) == width:
            return None
    return f"has {len(cells)} cells, the header names {width} columns{comma}"


def _split_amount(cells: list[str], names: Sequence[str]) -> str:
    """The amount that a comma may have made two cells of; "" if none has."""
    at = names.index(AMOUNT) if AMOUNT in names else len(cells)
    found = _DIGITS.fullmatch(".".join(cells[at : at + 2]))
    return found[0] if found else ""


def _separated(delimiter: str, other: str) -> str:
    option = "tab" if other == "\t" else f'"{other}"'
    return f"has no {delimiter!r} between columns; is the delimiter {other!r} (--delimiter {option})?"


class JsonLinesSource(FileSource):
    """Rows of a JSON Lines file: one object a line, nested as in the interface or under dotted names.

    Numbers are exact; empty lines are skipped.
    """

    columns: tuple[str, ...] = ("row",)

    def _items(self, maker: RowMaker) -> Iterator[SourceItem]:
        with open_text(self.path, self.name) as file:
            lines = SourceLines(file, self.name)
            while True:
                line = lines.begin_row()
                if not (text := lines.read()):
                    return
                if text := text.strip():
                    yield from _json_row(maker, line, text)


def _json_row(maker: RowMaker, line: int, text: str) -> Sequence[SourceItem]:
    try:
        record = parse(text)
    except NotJson as error:
        return maker.broken(str(error), [text], line=line)
    if not isinstance(record, dict):
        return maker.broken("is not a JSON object", [text], line=line)
    cells, faults = flatten(record)
    return maker.row(cells, [text], line=line, faults=faults)
