"""Reads what openpyxl's read-only mode does not give of a sheet: hidden rows and columns, merged cells.

It also checks that rows and cells stand in order, each once, with one value in XML's form: only then do both
readings mean the same, as openpyxl takes any text that Python takes for a number.
"""

from __future__ import annotations

import re
from typing import IO, Any, Final
from xml.parsers import expat

import attrs
from openpyxl.utils.cell import column_index_from_string, get_column_letter, range_boundaries
from openpyxl.xml.constants import MAX_COLUMN, MAX_ROW

_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main "
_CELL: Final = f"{_MAIN}c"
_ROW: Final = f"{_MAIN}row"
_VALUE: Final = f"{_MAIN}v"
_VALUES: Final = (_VALUE, f"{_MAIN}is")
_FILLED: Final = frozenset((*_VALUES, f"{_MAIN}f"))
_NUMBER: Final = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_INDEX: Final = re.compile(r"([0-9]{1,9})")
_FORMS: Final = {"n": _NUMBER, "s": _INDEX}
"""{type of a cell: the form of its value, which begins with its digits}."""
_MOST_DIGITS: Final = 17
"""Digits with which a program writes any number; more would be rounded unseen."""
_REFERENCE: Final = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,6})")
_MOST_MERGED: Final = 1_000
"""Merged cells, and as many groups of hidden columns."""
_MOST_COLUMNS: Final = 200
"""Columns with values: openpyxl makes each row as wide as the last."""
_TRUE: Final = ("1", "true")

Area = tuple[int, int, int, int]
"""First column, first row, last column, last row, from 1."""


class SheetDisorder(ValueError):
    """Why a sheet is not read, as the end of a sentence that begins with it."""


@attrs.define
class SheetFacts:
    """Facts of one sheet."""

    last_row: int = 0
    """The last row in which a cell has a value; 0 for an empty sheet."""
    last_column: int = 0
    """The last column in which a cell has a value."""
    hidden_rows: set[int] = attrs.field(factory=set)
    hidden_columns: list[tuple[int, int]] = attrs.field(factory=list)
    """First and last column of each hidden group, from 1."""
    merged: list[Area] = attrs.field(factory=list)

    def is_hidden_column(self, column: int) -> bool:
        """True if the column, from 1, is hidden."""
        return any(first <= column <= last for first, last in self.hidden_columns)

    def merged_columns(self, row: int) -> list[tuple[int, int]]:
        """List the first and last columns of the merged cells that a row has a part of."""
        return [(left, right) for left, top, right, bottom in self.merged if top <= row <= bottom]


def read_sheet_facts(xml: IO[bytes]) -> SheetFacts:
    """Read a sheet's XML to its end. Raises SheetDisorder, and what the parser does."""
    reading = _SheetReading()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = reading.start
    parser.CharacterDataHandler = reading.text
    parser.ParseFile(xml)
    return reading.facts


class _SheetReading:
    """The handler of one reading: where it is, and what it has found."""

    def __init__(self) -> None:
        self.facts = SheetFacts()
        self._row = 0
        self._column = 0
        self._tag = ""
        self._values = 0
        self._form: re.Pattern[str] | None = None
        self._hides_rows = False
        self._others: dict[str, Any] = {
            f"{_MAIN}sheetFormatPr": self._format,
            f"{_MAIN}col": self._columns,
            f"{_MAIN}mergeCell": self._merged,
        }

    def start(self, tag: str, given: dict[str, str]) -> None:
        self._tag = tag
        if tag == _CELL:
            self._cell(given.get("r"))
            self._form, self._values = _FORMS.get(given.get("t", "n")), 0
        elif tag in _FILLED:
            self._filled(tag)
        elif tag == _ROW:
            self._begin_row(given)
        elif (other := self._others.get(tag)) is not None:
            other(given)

    def text(self, text: str) -> None:
        """Check the text of a value, with the space behind its element; expat gives it as one."""
        if self._tag != _VALUE or self._form is None:
            return
        found = self._form.fullmatch(text.strip(" \t\r\n"))
        if found is None:
            raise SheetDisorder(f"has a value in {self._place} that is no number: write it again")
        if len(found[1].replace(".", "").strip("0")) > _MOST_DIGITS:
            raise SheetDisorder(
                f"has a number of more than {_MOST_DIGITS} digits in {self._place}: round it, "
                f"=ROUND({self._place},2) pasted as values, or format the column as text, and write it again"
            )

    @property
    def _place(self) -> str:
        return f"{get_column_letter(self._column)}{self._row}"

    def _cell(self, reference: str | None) -> None:
        column = self._column + 1
        if reference is not None:
            found = _REFERENCE.fullmatch(reference)
            if found is None or int(found[2]) != self._row:
                raise SheetDisorder("has a cell that is not in its row: save it again")
            column = column_index_from_string(found[1])
        if not self._column < column <= MAX_COLUMN:
            raise SheetDisorder(f"has a cell twice, or out of order, in row {self._row}: save it again")
        self._column = column

    def _filled(self, tag: str) -> None:
        self._values += tag in _VALUES
        if self._values > 1:
            raise SheetDisorder(f"has two values in {self._place}: write it again")
        if self._column > _MOST_COLUMNS:
            beyond = f"beyond column {_MOST_COLUMNS}: empty that column"
            raise SheetDisorder(f"has a value in {self._place}, {beyond}")
        self.facts.last_row = self._row
        self.facts.last_column = max(self.facts.last_column, self._column)

    def _begin_row(self, given: dict[str, str]) -> None:
        number = given.get("r", str(self._row + 1))
        row = int(number) if number.isascii() and number.isdecimal() and len(number) < 8 else 0
        if not self._row < row <= MAX_ROW:
            raise SheetDisorder(f"has a row twice, or out of order, after row {self._row}: save it again")
        self._row, self._column = row, 0
        height = given.get("ht")
        if given.get("hidden") in _TRUE or height == "0" or (self._hides_rows and height is None):
            self.facts.hidden_rows.add(row)

    def _format(self, given: dict[str, str]) -> None:
        self._hides_rows = given.get("zeroHeight") in _TRUE

    def _columns(self, given: dict[str, str]) -> None:
        if given.get("hidden") in _TRUE or given.get("width") == "0":
            if len(self.facts.hidden_columns) == _MOST_MERGED:
                raise SheetDisorder(f"has more than {_MOST_MERGED:,} groups of hidden columns: show them")
            self.facts.hidden_columns.append((int(given["min"]), int(given["max"])))

    def _merged(self, given: dict[str, str]) -> None:
        if len(self.facts.merged) == _MOST_MERGED:
            raise SheetDisorder(f"has more than {_MOST_MERGED:,} merged cells: unmerge them")
        self.facts.merged.append(range_boundaries(given["ref"]))
