"""Rows of an Excel workbook: text is text, a number is an amount, and nothing else is guessed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import warnings
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from itertools import chain, islice
from typing import Any, BinaryIO, Final

import attrs
import openpyxl
from openpyxl.utils import get_column_letter

from ...errors import RowFault, SourceErrors, SourceUnreadable
from .._base import FileSource
from .._cells import EXACT_DIGITS, Faults
from .._columns import AMOUNT, ROW_KEY
from .._mapping import ColumnMapping, MappedHeader
from .._requests import RowMaker, SourceItem
from .package import check_package

Cells = Mapping[int, Any]
"""{column, from 1: its cell}, for those that have a value."""

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
_SHOW: Final = "show it, or delete it"
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
    `sheet` names the sheet, which otherwise is the only visible one with values. Hidden rows and columns are
    faults: nobody has looked at them. A row's `line` is its row in the sheet.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        sheet: str | None = None,
        header_row: int | None = None,
        mapping: ColumnMapping | None = None,
    ) -> None:
        form = [mapping.digest if mapping else "", sheet, header_row]
        super().__init__(path, form=json.dumps(form) if any(form) else "")
        self._header_row = header_row or 1
        self._sheet = sheet
        self._mapping = mapping or ColumnMapping()

    async def rows(self) -> AsyncIterator[SourceItem]:
        """Every row in order: a `Row`, or one or more `RowFault`s. Raises as `Source.rows` does."""
        items = self.read()
        # openpyxl takes seconds for a large workbook
        for item in chain(await asyncio.to_thread(list, islice(items, 1)), items):
            yield item

    def _items(self, maker: RowMaker) -> Iterator[SourceItem]:
        with self.path.open("rb") as file:
            check_package(file, self.name)
            sheet = self._sheet_of(file)
        filled = ((row, cells) for row, cells in _rows(sheet) if row >= self._header_row)
        row, header = next(filled, (1, {}))
        layout = self._layout(sheet, row, header, filled)
        if ROW_KEY not in self.columns:
            maker.expect_no_keys()
        for row, cells in filled:
            yield from _row(maker, layout, row, cells)

    def _sheet_of(self, file: BinaryIO) -> Any:
        """The sheet to read. Raises SourceUnreadable, without its cause, which may quote a cell."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what openpyxl does not know nothing is read
                sheets = openpyxl.load_workbook(file, keep_links=False).worksheets
        except (OSError, MemoryError):
            raise
        except Exception as error:  # a damaged part may raise anything in openpyxl
            kind = type(error).__name__
        else:
            return self._chosen(sheets)
        raise SourceUnreadable(
            self.name, f"is no workbook that can be read ({kind}): save it as Excel Workbook (.xlsx)"
        )

    def _chosen(self, sheets: Sequence[Any]) -> Any:
        if self._sheet is not None:
            found = [sheet for sheet in sheets if sheet.title == self._sheet]
            problem = f"has no sheet of that name (--sheet); there are: {_names(sheets)}"
        else:
            found = [sheet for sheet in sheets if sheet.sheet_state == "visible" and any(_rows(sheet))]
            problem = "has no visible sheet with values"
            if found:
                names = _names(found)
                problem = f"has {len(found)} sheets with values, {names}: name one with --sheet (sheet=)"
        if len(found) != 1:
            raise SourceUnreadable(self.name, problem)
        return found[0]

    def _layout(self, sheet: Any, row: int, header: Cells, below: Iterable[tuple[int, Cells]]) -> _Layout:
        """Read the header. Raises SourceErrors."""
        width = max(header, default=0)
        mapped = self._mapping.apply(_texts(header, width))
        self.columns: tuple[str, ...] = mapped.columns
        layout = _Layout(sheet, mapped)
        problems = list(mapped.faults)
        lines = ((number, _texts(cells, max(cells))) for number, cells in below)
        if problems and (elsewhere := self._mapping.header_below(mapped, lines)):
            problems = [(None, elsewhere)]
        faults = [RowFault(row, None, *fault, cell=layout.place(row)) for fault in problems]
        for column, reason in layout.header_faults(row, header):
            faults.append(RowFault(row, None, None, reason, cell=layout.place(row, column)))
        if faults:
            raise SourceErrors(self.name, faults, total=len(faults), rows=0)
        return layout


def _rows(sheet: Any) -> Iterator[tuple[int, Cells]]:
    """The rows that have values, in order, each with its number."""
    rows = defaultdict[int, dict[int, Any]](dict)
    for (row, column), cell in sheet._cells.items():  # its public names make every cell between two of these
        if _has_value(cell):
            rows[row][column] = cell
    yield from sorted(rows.items())


def _texts(cells: Cells, width: int) -> list[str]:
    return [_text(cells[column]) if column in cells else "" for column in range(1, width + 1)]


@attrs.frozen
class _Layout:
    """A sheet, and what its columns are."""

    sheet: Any
    mapped: MappedHeader

    def place(self, row: int, column: int | None = None) -> str:
        """`Sheet "June", cell C7`, or row 7."""
        where = f"row {row}" if column is None else f"cell {get_column_letter(column)}{row}"
        return f'Sheet "{self.sheet.title}", {where}'

    def merged_columns(self, row: int) -> list[tuple[int, int]]:
        """The first and last columns of the merged cells that a row has a part of."""
        areas = self.sheet.merged_cells.ranges
        return [(area.min_col, area.max_col) for area in areas if area.min_row <= row <= area.max_row]

    def header_faults(self, row: int, header: Cells) -> Iterator[tuple[int, str]]:
        """Find cells of the header, by column, that are no text, merged or hidden."""
        for column, cell in sorted(header.items()):
            if cell.data_type != "s":
                yield column, f"is no text: {_AS_TEXT}"
            if self.mapped.names[column - 1] and self._is_hidden_column(column):
                yield column, f"is in a hidden column: {_SHOW}"
        for first, _ in self.merged_columns(row):
            yield first, _MERGED

    def row_problem(self, row: int, cells: Cells) -> str | None:
        """Find the fault of a row as a whole."""
        beyond = sorted(column for column in cells if column > len(self.mapped.names))
        if beyond:
            others = ", ".join(map(get_column_letter, beyond))
            return f"has values without a column's name above them, in {others}: name or empty the column"
        return f"the row is hidden: {_SHOW}" if self._is_hidden_row(row) else None

    def _is_hidden_column(self, column: int) -> bool:
        groups = self.sheet.column_dimensions.values()
        return any((one.hidden or one.width == 0) and one.min <= column <= one.max for one in groups)

    def _is_hidden_row(self, row: int) -> bool:
        found = self.sheet.row_dimensions.get(row)
        if found is None or (found.height is None and not found.hidden):
            return bool(self.sheet.sheet_format.zeroHeight)
        return bool(found.hidden or found.height == 0)


def _row(maker: RowMaker, layout: _Layout, row: int, cells: Cells) -> Iterator[SourceItem]:
    names = layout.mapped.names
    texts = layout.mapped.cells(_texts(cells, len(names)))
    given = {name: text for name, text in zip(layout.mapped.columns, texts, strict=True) if text}
    read = {name: cells[column] for column, name in enumerate(names, start=1) if name and column in cells}
    faults: Faults = {name: why for name, cell in read.items() if (why := _problem(name, cell))}
    for first, last in layout.merged_columns(row):
        faults |= dict.fromkeys(filter(None, names[first - 1 : last]), _MERGED)
    if problem := layout.row_problem(row, cells):
        faults[""] = problem
    is_struck = any(cell.has_style and cell.font.strike for cell in read.values())
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
    if cell.data_type == "s":
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
