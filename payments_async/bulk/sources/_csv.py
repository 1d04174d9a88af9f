"""CSV files: RFC 4180 with a header. Every cell is text; no type is guessed."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, TextIO

import attrs

from ..errors import RowFault, SourceErrors, SourceUnreadable
from ._base import FileSource, SourceLines, open_text
from ._columns import AMOUNT, ROW_KEY
from ._mapping import ColumnMapping, MappedHeader
from ._rejects import FAULT_COLUMNS, unescaped
from ._requests import RowMaker, SourceItem

_SEPARATORS: Final = ",;\t|"
_HEAD: Final = 8_192
"""Characters by which the form of a file is recognised."""
_NAMED: Final = re.compile(r'"?sep=([^\w\s"]|\t)[^\w\r\n]*(?:\r\n?|\n)', re.IGNORECASE)
"""Excel's first line, which names the delimiter of the lines below."""
_SPACED: Final = re.compile(r' *"[^"]*"(?:[,;\t|] +"[^"]*")+ *')
"""A line with blanks in front of its quotation marks, which then are no part of a cell."""
_DIGITS: Final = re.compile(r"[0-9]+\.[0-9]{1,3}")


@attrs.frozen
class _Form:
    """How the cells of a file are written."""

    delimiter: str
    other: str | None
    """A separator that occurs more often."""
    is_spaced: bool
    above: int
    """Lines above the header."""


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
            form = self._form_of(file)
            lines = SourceLines(file, self.name)
            records = self._records(lines, form)
            line, header = next(records, (1, []))
            if tuple(header[: len(FAULT_COLUMNS)]) == FAULT_COLUMNS:
                header = header[len(FAULT_COLUMNS) :]
                records = ((line, _restored(cells)) for line, cells in records)
            names = header[: 1 + max((at for at, name in enumerate(header) if name.strip()), default=-1)]
            mapped = self._mapping.apply(names)
            self.columns: tuple[str, ...] = mapped.columns
            if mapped.faults:
                raise self._header_error(line, mapped, form, records)
            if ROW_KEY not in self.columns:
                maker.expect_no_keys()
            wide = len(header) if len(header) > len(names) else 0
            for line, cells in records:
                wide = wide or len(cells)
                split = _split_amount(cells, mapped.names) if form.delimiter == "," else ""
                if not split and len(cells) != len(names):
                    _fit(cells, len(names), wide, lines.last)
                yield from self._row(maker, line, cells, mapped, split)

    def _form_of(self, file: TextIO) -> _Form:
        start = file.tell()
        head = file.read(_HEAD)
        file.seek(start)
        named = _NAMED.match(head)
        delimiter = named[1] if named else self._delimiter
        above = int(named is not None) if self._header_row is None else self._header_row - 1
        first = next(islice(head.splitlines(), above, None), "")
        other = max(_SEPARATORS, key=head.count)
        more = head.count(other) > head.count(delimiter)
        return _Form(delimiter, other if more else None, _SPACED.fullmatch(first) is not None, above)

    def _records(self, lines: SourceLines, form: _Form) -> Iterator[tuple[int, list[str]]]:
        """The file's records that are not empty, each with the line where it begins."""
        reader = csv.reader(lines, delimiter=form.delimiter, skipinitialspace=form.is_spaced, strict=True)
        begin, follow = lines.begin_row, reader.__next__
        for _ in islice(lines, form.above):
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
            if form.other and line == form.above + 1:
                problem = _separated(form.delimiter, form.other)
        raise SourceUnreadable(self.name, problem, line=line)

    def _row(
        self, maker: RowMaker, line: int, cells: list[str], mapped: MappedHeader, split: str
    ) -> Sequence[SourceItem]:
        names = mapped.names
        if len(cells) != len(names):
            is_decimal = split and len(split.partition(".")[2]) < 3  # else one between thousands
            comma = f"; a decimal comma? write {split}" if is_decimal else ""
            problem = f"has {len(cells)} cells, the header names {len(names)} columns{comma}"
            certain = {names[0]: cells[0]} if cells[0] and names[0] else {}  # any other may have moved
            return maker.broken(problem, cells, line=line, cells=certain)
        texts = mapped.cells(cells) if self._mapping else cells
        given = {name: cell for name, cell in zip(self.columns, texts, strict=True) if cell}
        return maker.row(given, texts, line=line)

    def _header_error(
        self, line: int, mapped: MappedHeader, form: _Form, below: Iterator[tuple[int, list[str]]]
    ) -> SourceErrors:
        """All faults of a header, or the option by which it would be one."""
        reason = self._mapping.header_below(mapped, below)
        if reason is None and form.other and mapped.is_strange:
            reason = _separated(form.delimiter, form.other)
        faults = mapped.faults if reason is None else ((None, reason),)
        return SourceErrors(
            self.name, [RowFault(line, None, *fault) for fault in faults], total=len(faults), rows=0
        )


def _split_amount(cells: list[str], names: Sequence[str]) -> str:
    """The amount that a comma may have made two cells of; "" if none has."""
    if len(cells) == len(names) or AMOUNT not in names:
        return ""
    at = names.index(AMOUNT)
    found = _DIGITS.fullmatch(".".join(cells[at : at + 2]))
    return found[0] if found else ""


def _separated(delimiter: str, other: str) -> str:
    option = "tab" if other == "\t" else f'"{other}"'
    return f"has no {delimiter!r} between columns; is the delimiter {other!r} (--delimiter {option})?"


def _fit(cells: list[str], width: int, wide: int, last: str) -> None:
    """Make a row as wide as the header where only empty cells at its end differ, as spreadsheets write them.

    They are too many where all rows are so `wide`, and too few in any row: but a file that ends within its
    `last` line may have been cut off there.
    """
    if len(cells) == wide > width and not any(map(str.strip, cells[width:])):
        del cells[width:]
    if last.endswith(("\n", "\r")):
        cells.extend([""] * (width - len(cells)))


def _restored(cells: list[str]) -> list[str]:
    return [unescaped(cell) for cell in cells[len(FAULT_COLUMNS) :]]
