"""CSV files: RFC 4180 with a header. Every cell is text; no type is guessed."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ..errors import RowFault, SourceErrors, SourceUnreadable
from ._base import FileSource, SourceLines, open_text
from ._columns import AMOUNT, REFERENCE, ROW_KEY
from ._mapping import ColumnMapping, MappedHeader
from ._rejects import FAULT_COLUMNS, unescaped
from ._requests import RowMaker, SourceItem

_SEPARATORS: Final = ",;\t|"
_EXPONENT: Final = re.compile(r"[+-]?(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)[Ee][+-][0-9]+", re.ASCII)
"""`2.2990E+10`. The exponent's sign is required: `12E5` may be an account."""
_AMOUNT_EXPONENT: Final = re.compile(r"[+-]?(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)[Ee][+-]?[0-9]+", re.ASCII)
"""An amount is a number in any case, so that `1E2` was rounded like `1E+2`."""
_INSTRUMENT: Final = ("phone_number", "account_number", "bank_code", "memo_tag")
_EXACT: Final = (AMOUNT, ROW_KEY, REFERENCE, *(f"instrument.{field}" for field in _INSTRUMENT))
"""Columns in which a rounded number would change the payment."""
_REASON: Final = (
    "is in scientific notation, such as 2.3E+10: a spreadsheet took it for a number, and digits may be lost; "
    "go back to the original data, format this column as text before you fill it in, and export the CSV again"
)


class CsvSource(FileSource):
    """Rows of a CSV file in UTF-8. Lines whose cells are all empty are skipped.

    A file that `RejectsFile` wrote is recognized by its first three columns, and its rejected rows are read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        strict_amounts: bool = False,
        delimiter: str = ",",
        mapping: ColumnMapping | None = None,
    ) -> None:
        super().__init__(path, strict_amounts=strict_amounts, form=mapping.digest if mapping else "")
        self._delimiter = delimiter
        self._mapping = mapping or ColumnMapping()

    def _items(self, maker: RowMaker) -> Iterator[SourceItem]:
        with open_text(self.path, self.name) as file:
            records = self._records(SourceLines(file, self.name))
            line, header = next(records, (1, []))
            rejects = tuple(header[: len(FAULT_COLUMNS)]) == FAULT_COLUMNS
            names = header[len(FAULT_COLUMNS) :] if rejects else header
            mapped = self._mapping.apply(names)
            self.columns: tuple[str, ...] = mapped.columns
            self._check_header(line, names, mapped)
            if ROW_KEY not in self.columns:
                maker.expect_no_keys()
            for line, cells in records:
                yield from self._row(maker, line, _restored(cells) if rejects else cells, mapped)

    def _records(self, lines: SourceLines) -> Iterator[tuple[int, list[str]]]:
        """The file's records that are not empty, each with the line where it begins."""
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        begin, follow = lines.begin_row, reader.__next__
        try:
            while True:
                line = begin()
                cells = follow()
                if any(cells):
                    yield line, cells
        except StopIteration:
            return
        except csv.Error as error:
            problem = (
                f"the row that begins here breaks the rules of CSV ({error}); is a quotation mark wrong?"
            )
        raise SourceUnreadable(self.name, problem, line=line)

    def _row(
        self, maker: RowMaker, line: int, cells: list[str], mapped: MappedHeader
    ) -> Sequence[SourceItem]:
        names = mapped.names
        if len(cells) != len(names):
            comma = self._comma(cells, names)
            problem = f"has {len(cells)} cells, the header names {len(names)} columns{comma}"
            certain = {names[0]: cells[0]} if cells[0] and names[0] else {}  # any other may have moved
            return maker.broken(problem, cells, line=line, cells=certain)
        texts = mapped.cells(cells) if self._mapping else cells
        given = {name: cell for name, cell in zip(self.columns, texts, strict=True) if cell}
        return maker.row(given, texts, line=line, faults=rounded_faults(given))

    def _comma(self, cells: list[str], names: Sequence[str]) -> str:
        """A hint, if an amount with a decimal comma is what makes two cells of one."""
        at = names.index(AMOUNT) if AMOUNT in names else len(cells)
        parts = cells[at : at + 2]
        is_comma = self._delimiter == "," and len(cells) == len(names) + 1 and len(parts) == 2
        if not is_comma or not all(part.isascii() and part.isdigit() for part in parts) or len(parts[1]) > 2:
            return ""
        return f"; a decimal comma? write {'.'.join(parts)}"

    def _check_header(self, line: int, names: Sequence[str], mapped: MappedHeader) -> None:
        faults = [RowFault(line, None, column, reason) for column, reason in mapped.faults]
        if not faults:
            return
        if other := _other_separator(names, self._mapping):
            reason = f"has no {self._delimiter!r} between columns; is the delimiter {other!r} (--delimiter)?"
            faults = [RowFault(line, None, None, reason)]
        raise SourceErrors(self.name, faults, total=len(faults), rows=0)


def _other_separator(names: Sequence[str], mapping: ColumnMapping) -> str | None:
    """Guess the separator of a header that was read as a single column."""
    if len(names) != 1:
        return None
    (name,) = names
    parts = {sign: name.split(sign) for sign in _SEPARATORS if sign in name}
    return next((sign for sign in parts if AMOUNT in mapping.apply(parts[sign]).names), None)


def _restored(cells: list[str]) -> list[str]:
    return [unescaped(cell) for cell in cells[len(FAULT_COLUMNS) :]]


def rounded_faults(cells: Mapping[str, str]) -> dict[str, str]:
    """Find cells that a spreadsheet has rounded: {column: what happened, and what to do}."""
    found = {}
    for name in _EXACT:
        cell = cells.get(name)
        if cell is None:
            continue
        text = cell.strip()
        if _AMOUNT_EXPONENT.fullmatch(text) if name == AMOUNT else _EXPONENT.fullmatch(text):
            found[name] = _REASON
    return found
