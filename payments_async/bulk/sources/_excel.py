"""Excel workbooks (.xlsx): text is text, a number is an amount, and nothing else is guessed.

Reads the rows of a sheet, and writes an empty workbook to be filled in.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Final
from zipfile import BadZipFile, ZipFile

import attrs

from ..._extras import needs
from ..._files import AtomicFile
from ...params import Instrument
from .._files import refuse_existing
from ..errors import BulkError, RowFault, SourceUnreadable
from ._base import FileSource
from ._cells import EXACT_DIGITS, TYPES, Faults
from ._columns import AMOUNT, REFERENCE, REQUIRED
from ._mapping import ColumnMapping
from ._requests import RowMaker, SourceItem

try:
    import openpyxl as openpyxl
except ImportError as _missing:
    raise ImportError(needs("Excel workbooks need", "excel")) from _missing

_letter: Final = openpyxl.utils.get_column_letter
Cells = Mapping[int, Any]  # {column, from 1: its cell}, for those that have a value

_OLE: Final = b"\xd0\xcf\x11\xe0"  # how a workbook with a password begins, and an .xls
_MOST_BYTES: Final = 64 << 20
"""Bytes of all parts without compression, of which openpyxl takes ten times as many in memory; 100,000 rows
of ten columns have about 50 MiB."""
_HEAD: Final = 4096
"""Bytes in which a part that defines entities says so: they would expand without a bound."""
_SHOWN: Final = 10
_AS_TEXT: Final = "format the column as text, and write it again"
_KINDS: Final[Mapping[str, str]] = {
    "f": "is a formula: copy the column, and paste it as values",
    "e": "is an error of a formula: write the value itself",
    "b": f"is TRUE or FALSE: {_AS_TEXT}",
    "d": f"is a date or a time: {_AS_TEXT}",
    "n": f"is a number, which loses zeros and a plus in front: {_AS_TEXT}",
}
"""{type of a cell: why it is refused}; only an amount may be a number."""
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
_TEMPLATE: Final = (
    *(REFERENCE, *REQUIRED),
    *(f"instrument.{field.name}" for field in attrs.fields(Instrument)),
    "description",
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
            _check_package(file, self.name)
            sheet = self._sheet_of(file)
        filled = ((row, cells) for row, cells in _rows(sheet) if row >= self._header_row)
        row, header = next(filled, (1, {}))
        below = ((number, _texts(cells, max(cells))) for number, cells in filled)
        mapped = self._mapping.apply(_texts(header, max(header, default=0)), below)
        names = mapped.names
        faults = [RowFault(row, None, *fault, cell=_place(sheet, row)) for fault in mapped.faults]
        for column, reason in _header_faults(sheet, names, row, header):
            faults.append(RowFault(row, None, None, reason, cell=_place(sheet, row, column)))
        self._begin(maker, mapped.columns, faults)
        for row, cells in filled:
            texts = mapped.cells(_texts(cells, len(names)))
            given = {name: text for name, text in zip(self.columns, texts, strict=True) if text}
            read = {name: cells[at] for at, name in enumerate(names, start=1) if name and at in cells}
            struck = _STRUCK if any(cell.has_style and cell.font.strike for cell in read.values()) else ()
            for item in maker.row(given, texts, line=row, faults=_row_faults(sheet, names, row, cells, read)):
                if isinstance(item, RowFault):
                    at = names.index(item.column) + 1 if item.column in names else None
                    yield attrs.evolve(item, cell=_place(sheet, row, at))
                else:
                    yield attrs.evolve(item, warnings=(*struck, *item.warnings)) if struck else item

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
            problem = f"has no sheet of that name (--sheet); there are: {_titles(sheets)}"
        else:
            found = [sheet for sheet in sheets if sheet.sheet_state == "visible" and any(_rows(sheet))]
            problem = "has no visible sheet with values"
            if found:
                names = _titles(found)
                problem = f"has {len(found)} sheets with values, {names}: name one with --sheet (sheet=)"
        if len(found) != 1:
            raise SourceUnreadable(self.name, problem)
        return found[0]


def _check_package(file: BinaryIO, name: str) -> None:
    """Check the zip of XML parts before anything in it is read.

    Raises SourceUnreadable for a file that is no workbook, or one that would take too much memory.
    """
    if file.read(4) == _OLE:
        raise SourceUnreadable(name, "has a password, or is an .xls: save it as .xlsx, without a password")
    try:
        package = ZipFile(file)
    except (BadZipFile, NotImplementedError, ValueError):
        raise SourceUnreadable(name, "is no Excel workbook, or not a whole one: save it again") from None
    with package:
        parts = package.infolist()
        unpacked = sum(part.file_size for part in parts)  # of no part more is read than its size here
        if unpacked > _MOST_BYTES:
            most = f"takes {unpacked >> 20:,} MiB unpacked, and may take {_MOST_BYTES >> 20}"
            raise SourceUnreadable(name, f"{most}: divide it, or use CSV")
        for part in parts:
            with package.open(part) as xml:
                if b"<!DOCTYPE" in xml.read(_HEAD).replace(b"\0", b""):  # also in UTF-16
                    problem = "has a part with a document type, which may expand: save it again"
                    raise SourceUnreadable(name, problem)


def _titles(sheets: Sequence[Any]) -> str:
    shown = ", ".join(f'"{sheet.title}"' for sheet in sheets[:_SHOWN])
    return f"{shown}, and {len(sheets) - _SHOWN} more" if len(sheets) > _SHOWN else shown


def _place(sheet: Any, row: int, column: int | None = None) -> str:
    """`Sheet "June", cell C7`, or row 7."""
    where = f"row {row}" if column is None else f"cell {_letter(column)}{row}"
    return f'Sheet "{sheet.title}", {where}'


def _rows(sheet: Any) -> Iterator[tuple[int, Cells]]:
    """The rows that have values, in order, each with its number."""
    # openpyxl's public names make every cell between two of these
    cells = sorted(sheet._cells.items(), key=itemgetter(0))
    filled = ((row, column, cell) for (row, column), cell in cells if _has_value(cell.value))
    for row, found in groupby(filled, key=itemgetter(0)):
        yield row, {column: cell for _, column, cell in found}


def _has_value(value: Any) -> bool:
    return bool(value.strip()) if isinstance(value, str) else value is not None


def _texts(cells: Cells, width: int) -> list[str]:
    return [_text(cells[column].value) if column in cells else "" for column in range(1, width + 1)]


def _text(value: Any) -> str:
    """A cell's value as it would be in a CSV file: of a number the shortest text that means it."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    return str(value)


def _merged(sheet: Any, row: int) -> list[tuple[int, int]]:
    """The first and last columns of the merged cells that a row has a part of."""
    areas = sheet.merged_cells.ranges
    return [(area.min_col, area.max_col) for area in areas if area.min_row <= row <= area.max_row]


def _header_faults(sheet: Any, names: Sequence[str], row: int, header: Cells) -> Iterator[tuple[int, str]]:
    """Find cells of the header, by column, that are no text, merged or hidden."""
    hidden = [each for each in sheet.column_dimensions.values() if each.hidden or each.width == 0]
    for column, cell in header.items():
        if cell.data_type != "s":
            yield column, f"is no text: {_AS_TEXT}"
        if names[column - 1] and any(each.min <= column <= each.max for each in hidden):
            yield column, f"is in a hidden column: {_SHOW}"
    for first, _ in _merged(sheet, row):
        yield first, _MERGED


def _row_faults(sheet: Any, names: Sequence[str], row: int, cells: Cells, read: Mapping[str, Any]) -> Faults:
    """Find what is wrong with a row's cells, and with the row as a whole. `read`: those of our columns."""
    faults = {name: why for name, cell in read.items() if (why := _problem(name, cell))}
    for first, last in _merged(sheet, row):
        faults |= dict.fromkeys(filter(None, names[first - 1 : last]), _MERGED)
    found = sheet.row_dimensions.get(row)
    if found is None or (found.height is None and not found.hidden):
        is_hidden = sheet.sheet_format.zeroHeight
    else:
        is_hidden = found.hidden or found.height == 0
    if beyond := ", ".join(_letter(column) for column in cells if column > len(names)):
        faults[""] = f"has values without a column's name above them, in {beyond}: name or empty the column"
    elif is_hidden:
        faults[""] = f"the row is hidden: {_SHOW}"
    return faults


def _problem(name: str, cell: Any) -> str | None:
    """Find why a cell is no text, and no number that is the amount which the cell shows."""
    if cell.data_type == "s":
        return None
    if cell.data_type != "n" or name != AMOUNT:
        return _KINDS[cell.data_type]
    if _SCALE.search(_positive(cell.number_format)):  # it shows 50,000 as 50, 5.00E+04, 5000000 % or 500.00
        return _RESCALED
    text, shown, problem = _text(cell.value), _shown_decimals(cell.number_format), None
    if sum(map(str.isdigit, text)) > EXACT_DIGITS:
        problem = f"is a number of more than {EXACT_DIGITS} digits"
    elif shown is not None and len(text.partition(".")[2]) > shown:
        seen = Decimal(text).quantize(Decimal(1).scaleb(-shown), ROUND_HALF_UP)
        problem = f"shows {seen} and is {text}"
    if problem is None:
        return None
    decimals = 2 if shown is None else shown
    return f"{problem}: round it, =ROUND({cell.coordinate},{decimals}) pasted as values, or {_AS_TEXT}"


@lru_cache(maxsize=256)
def _shown_decimals(number_format: str) -> int | None:
    """Count the decimals that a format shows of a positive number; None for all, and where it is not read.

    `0` shows none, `#,##0.00 "F"` two. `General`, fractions and conditions are not read.
    """
    found = _SHOWN_NUMBER.fullmatch(_positive(number_format))
    return len(found[1] or "") if found else None


def _positive(number_format: str) -> str:
    """The part of a format that is for positive numbers, or all of it where that depends on the number."""
    signs = _LITERAL.sub(_sign_of, number_format)
    return signs if re.search(r"\[[<>=]", signs) else signs.partition(";")[0]


def _sign_of(literal: re.Match[str]) -> str:
    """A sign for a text of a format: `!` for one that reads as a part of the number, none for blanks."""
    text = re.sub(r"['\s]", "", "".join(filter(None, literal.groups())))
    is_number = re.search(r"\d|^[^\w]*[.,٫][^\w]*$", text)
    return "!" if is_number else "\0" if text else ""


def write_empty(path: Path) -> None:
    """Write an empty workbook of payouts, to be filled in: its columns are text, so that nothing is lost.

    Raises BulkError for another suffix or an existing file, and OSError.
    """
    if path.suffix.lower() != ".xlsx":
        raise BulkError(f"{path}: ends in {path.suffix or 'no suffix'}; a template is an .xlsx file")
    refuse_existing(path)
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title, sheet.freeze_panes = "Payouts", "A2"
    for column, name in enumerate(_TEMPLATE, start=1):
        cell, width = sheet.cell(1, column, name), sheet.column_dimensions[_letter(column)]
        cell.font = openpyxl.styles.Font(bold=True)
        cell.number_format = width.number_format = "@"  # a value is kept as it is typed
        width.width = max(12, len(name) + 2)
    types = openpyxl.worksheet.datavalidation.DataValidation(
        "list", f'"{",".join(TYPES)}"', allow_blank=True, showErrorMessage=True
    )
    types.add("{0}2:{0}100000".format(_letter(_TEMPLATE.index("instrument.type") + 1)))
    sheet.add_data_validation(types)
    with AtomicFile(path) as whole:
        book.save(whole.file)
