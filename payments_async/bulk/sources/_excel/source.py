"""Rows of an Excel workbook: text is text, a number is an amount, and nothing else is guessed."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from itertools import islice
from typing import Any, BinaryIO, Final

import attrs
import openpyxl
from openpyxl.utils import get_column_letter

from ...errors import BulkError, RowFault, SourceErrors, SourceUnreadable
from .._base import FileSource
from .._cells import EXACT_DIGITS, Faults
from .._columns import AMOUNT, ROW_KEY
from .._mapping import ColumnMapping, MappedHeader
from .._requests import RowMaker, SourceItem
from .package import check_package
from .sheet_facts import SheetDisorder, SheetFacts, read_sheet_facts

_SHOWN: Final = 10
_AS_TEXT: Final = "format the column as text, and write it again"
_KINDS: Final[Mapping[str, str]] = {
    "f": "is a formula: copy the column, and paste it as values",
    "e": "is an error of a formula: write the value itself",
    "b": f"is TRUE or FALSE: {_AS_TEXT}",
    "d": f"is a date or a time: {_AS_TEXT}",
}
"""{type of a cell: why it is refused}."""
_NUMBER: Final = f"is a number, which loses zeros and a plus in front: {_AS_TEXT}"
_DIGITS: Final = f"is a number of more than {EXACT_DIGITS} digits"
_MERGED: Final = "is merged with other cells: unmerge them, and fill in each"
_SHOW: Final = "show it, or read what is hidden too with --with-hidden (with_hidden=True)"
_STRUCK: Final = ("the row is struck out",)
_LITERAL: Final = re.compile(r'"([^"]*)"|\\(.)|[_*].|\[\$([^\[\]-]*)[^\[\]]*\]|\[[A-Za-z]+[0-9]*\]')
"""Text, spaces, a currency's sign and a color."""
_SCALE: Final = re.compile(r"!|[0#?]\0+[0#?]|%|[0#?][eE][+-]|[0#?],(?![0#?])")
_SHOWN_NUMBER: Final = re.compile(r"[^\w#?.,%@\[\]/]*[#0?]+(?:,[#0?]+)*(?:\.([#0?]*))?[^\w#?.,%@\[\]/]*")
_RESCALED: Final = (
    "is shown as a percentage, in thousands or as a power of ten, or with a point or digits of its format: "
    f"{_AS_TEXT}"
)


class ExcelSource(FileSource):
    """Rows of one sheet of an Excel workbook (.xlsx). Rows without any value are skipped.

    The header is the first other row, from row `header_row` on.
    `sheet` names the sheet, which otherwise is the only visible one with values; `with_hidden` reads hidden
    rows and columns too, which otherwise are faults. A row's `line` is its row in the sheet.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        strict_amounts: bool = False,
        sheet: str | None = None,
        with_hidden: bool = False,
        header_row: int | None = None,
        mapping: ColumnMapping | None = None,
    ) -> None:
        form = [mapping.digest if mapping else "", sheet, with_hidden, header_row]
        super().__init__(path, strict_amounts=strict_amounts, form=json.dumps(form) if any(form) else "")
        self._header_row = header_row or 1
        self._sheet = sheet
        self._with_hidden = with_hidden
        self._mapping = mapping or ColumnMapping()

    def _items(self, maker: RowMaker) -> Iterator[SourceItem]:
        with self.path.open("rb") as file:
            try:
                check_package(file, self.name)
                yield from self._read(file, maker)
                return
            except (BulkError, OSError, MemoryError):
                raise
            except Exception as error:  # a damaged part may raise anything in openpyxl, and quote a cell
                kind = type(error).__name__
        raise SourceUnreadable(self.name, f"is no workbook that can be read ({kind}): save it again")

    def _read(self, file: BinaryIO, maker: RowMaker) -> Iterator[SourceItem]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what openpyxl does not know nothing is read
            book = openpyxl.load_workbook(file, read_only=True, keep_links=False)
        with closing(book):
            sheet, facts = self._chosen(book)
            sheet.reset_dimensions()  # they are what the writer said, and may leave rows out
            rows = enumerate(sheet.iter_rows(max_col=facts.last_column or 1), start=1)
            below = islice(rows, self._header_row - 1, facts.last_row)
            filled = (row for row in below if any(map(_has_value, row[1])))
            number, header = next(filled, (1, ()))
            layout = self._layout(sheet.title, facts, number, header, filled)
            if ROW_KEY not in self.columns:
                maker.expect_no_keys()
            for number, cells in filled:
                yield from _row(maker, layout, number, cells)

    def _chosen(self, book: Any) -> tuple[Any, SheetFacts]:
        """The sheet to read, with its facts. Raises SourceUnreadable."""
        sheets = book.worksheets
        if self._sheet is not None:
            found = [(sheet, self._facts(book, sheet)) for sheet in sheets if sheet.title == self._sheet]
            problem = f"has no sheet of that name (--sheet); there are: {_names(sheets)}"
        else:
            visible = [sheet for sheet in sheets if sheet.sheet_state == "visible"]
            found = [(sheet, self._facts(book, sheet)) for sheet in visible]
            found = [(sheet, facts) for sheet, facts in found if facts.last_row]
            problem = "has no visible sheet with values"
            if found:
                names = _names([sheet for sheet, _ in found])
                problem = f"has {len(found)} sheets with values, {names}: name one with --sheet (sheet=)"
        if len(found) != 1:
            raise SourceUnreadable(self.name, problem)
        return found[0]

    def _facts(self, book: Any, sheet: Any) -> SheetFacts:
        try:
            with book._archive.open(sheet._worksheet_path) as xml:  # no public name leads to a sheet's XML
                return read_sheet_facts(xml)
        except SheetDisorder as problem:
            raise SourceUnreadable(self.name, f'sheet "{sheet.title}" {problem}') from None

    def _layout(
        self,
        sheet: str,
        facts: SheetFacts,
        row: int,
        header: Sequence[Any],
        below: Iterable[tuple[int, Sequence[Any]]],
    ) -> _Layout:
        """Read the header. Raises SourceErrors."""
        names = [_text(cell) for cell in header]
        while names and not names[-1].strip():
            names.pop()
        mapped = self._mapping.apply(names)
        self.columns: tuple[str, ...] = mapped.columns
        layout = _Layout(sheet, facts, mapped, self._with_hidden)
        problems = list(mapped.faults)
        lines = ((number, [_text(cell) for cell in cells]) for number, cells in below)
        if problems and (elsewhere := self._mapping.header_below(mapped, lines)):
            problems = [(None, elsewhere)]
        faults = [RowFault(row, None, *fault, cell=layout.place(row)) for fault in problems]
        for column, reason in layout.header_faults(row, header):
            faults.append(RowFault(row, None, None, reason, cell=layout.place(row, column)))
        if faults:
            raise SourceErrors(self.name, faults, total=len(faults), rows=0)
        return layout


@attrs.frozen
class _Layout:
    """A sheet, and what its columns are."""

    sheet: str
    facts: SheetFacts
    mapped: MappedHeader
    with_hidden: bool

    def place(self, row: int, column: int | None = None) -> str:
        """`Sheet "June", cell C7`, or row 7."""
        where = f"row {row}" if column is None else f"cell {get_column_letter(column)}{row}"
        return f'Sheet "{self.sheet}", {where}'

    def header_faults(self, row: int, header: Sequence[Any]) -> Iterator[tuple[int, str]]:
        """Find cells of the header, by column, that are no text, merged or hidden."""
        for column, cell in enumerate(header, start=1):
            if _has_value(cell) and cell.data_type != "s":
                yield column, f"is no text: {_AS_TEXT}"
            is_read = any(self.mapped.names[column - 1 : column]) and not self.with_hidden
            if _has_value(cell) and is_read and self.facts.is_hidden_column(column):
                yield column, f"is in a hidden column: {_SHOW}"
        for first, _ in self.facts.merged_columns(row):
            yield first, _MERGED

    def row_problem(self, row: int, cells: Sequence[Any]) -> str | None:
        """Find the fault of a row as a whole."""
        named = len(self.mapped.names)
        beyond = enumerate(cells[named:], start=named + 1)
        others = ", ".join(get_column_letter(column) for column, cell in beyond if _has_value(cell))
        if others:
            return f"has values without a column's name above them, in {others}: name or empty the column"
        is_hidden = row in self.facts.hidden_rows and not self.with_hidden
        return f"the row is hidden: {_SHOW}" if is_hidden else None


def _row(maker: RowMaker, layout: _Layout, row: int, cells: Sequence[Any]) -> Iterator[SourceItem]:
    names = layout.mapped.names
    texts = layout.mapped.cells([_text(cell) for cell in cells[: len(names)]])
    given = {name: text for name, text in zip(layout.mapped.columns, texts, strict=True) if text}
    read = [(name, cell) for name, cell in zip(names, cells, strict=False) if name]
    faults: Faults = {name: why for name, cell in read if (why := _problem(name, cell))}
    for first, last in layout.facts.merged_columns(row):
        faults |= dict.fromkeys(filter(None, names[first - 1 : last]), _MERGED)
    if problem := layout.row_problem(row, cells):
        faults[""] = problem
    is_struck = any(_has_value(cell) and cell.has_style and cell.font.strike for _, cell in read)
    for item in maker.row(given, texts, line=row, faults=faults, warnings=_STRUCK if is_struck else ()):
        yield _located(item, layout, row) if isinstance(item, RowFault) else item


def _located(fault: RowFault, layout: _Layout, row: int) -> RowFault:
    names = layout.mapped.names
    column = names.index(fault.column) + 1 if fault.column in names else None
    return attrs.evolve(fault, cell=layout.place(row, column))


def _has_value(cell: Any) -> bool:
    value = cell.value
    return bool(value.strip()) if isinstance(value, str) else value is not None


def _text(cell: Any) -> str:
    """The cell as it would be in a CSV file: of a number the shortest text that means it."""
    value = cell.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    return "" if value is None else str(value)


def _problem(name: str, cell: Any) -> str | None:
    """Find why a cell is no text, and no number that is an amount."""
    if not _has_value(cell) or cell.data_type == "s":
        return None
    if cell.data_type != "n":
        return _KINDS[cell.data_type]
    if name != AMOUNT:
        return _NUMBER
    if _is_rescaled(cell.number_format):
        return _RESCALED
    return _amount_problem(_text(cell), _shown_decimals(cell.number_format), cell.coordinate)


def _amount_problem(text: str, shown: int | None, place: str) -> str | None:
    """Find why a number is not the amount that its cell shows, with `shown` decimals; None shows all."""
    problem = None
    if sum(map(str.isdigit, text)) > EXACT_DIGITS:
        problem = _DIGITS
    elif shown is not None and len(text.partition(".")[2]) > shown:
        seen = Decimal(text).quantize(Decimal(1).scaleb(-shown), ROUND_HALF_UP)
        problem = f"shows {seen} and is {text}"
    decimals = 2 if shown is None else shown
    return problem and f"{problem}: round it, =ROUND({place},{decimals}) pasted as values, or {_AS_TEXT}"


@lru_cache(maxsize=256)
def _shown_decimals(number_format: str) -> int | None:
    """Count the decimals that a format shows of a positive number; None for all, and where it is not read.

    `0` shows none, `#,##0.00 "F"` two. `General`, fractions and conditions are not read.
    """
    found = _SHOWN_NUMBER.fullmatch(_positive(number_format))
    return len(found[1] or "") if found else None


def _is_rescaled(number_format: str) -> bool:
    """True if a format shows 50,000 as 50, 5.00E+04, 5000000 % or 500.00."""
    return _SCALE.search(_positive(number_format)) is not None


def _positive(number_format: str) -> str:
    """The part of a format that is for positive numbers, or all of it where that depends on the number."""
    signs = _LITERAL.sub(_sign_of, number_format)
    return signs if re.search(r"\[[<>=]", signs) else signs.partition(";")[0]


def _sign_of(literal: re.Match[str]) -> str:
    """A sign for a text of a format: `!` for one that reads as a part of the number, none for blanks."""
    text = re.sub(r"['\s]", "", "".join(filter(None, literal.groups())))
    is_number = re.search(r"\d|^[^\w]*[.,٫][^\w]*$", text)
    return "!" if is_number else "\0" if text else ""


def _names(sheets: Sequence[Any]) -> str:
    shown = ", ".join(f'"{sheet.title}"' for sheet in sheets[:_SHOWN])
    return f"{shown}, and {len(sheets) - _SHOWN} more" if len(sheets) > _SHOWN else shown
