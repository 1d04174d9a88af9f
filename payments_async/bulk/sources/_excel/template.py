"""Writes an empty workbook of payouts, to be filled in: its columns are text, so that nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from openpyxl import Workbook
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation

from ...._files import AtomicFile
from ....params import Instrument
from ..._files import refuse_existing
from ...errors import BulkError
from .._cells import TYPES
from .._columns import AMOUNT, REFERENCE

_TEXT: Final = "@"
"""Excel's format of cells whose values are kept as they are typed."""
_ROWS: Final = 100_000
"""Rows in which Excel checks what is typed."""
_COLUMNS: Final = (
    *(REFERENCE, AMOUNT, "currency", "method"),
    *(f"instrument.{field.name}" for field in attrs.fields(Instrument)),
    "description",
)
_CAPITALS: Final = "AND(LEN({cell})={letters},EXACT({cell},UPPER({cell})))"
_RULES: Final[Mapping[str, tuple[str, str, str]]] = {
    "instrument.type": ("list", f'"{",".join(TYPES)}"', "Choose one of the list, or leave it empty."),
    AMOUNT: ("custom", 'ISERROR(FIND(",",{cell}))', "Write a point before decimals: 1200.50"),
    "currency": ("custom", _CAPITALS.replace("{letters}", "3"), "Write three capitals: XOF"),
    "instrument.country": ("custom", _CAPITALS.replace("{letters}", "2"), "Write two capitals: BJ"),
}
"""{column: kind of its rule, the rule, what Excel says to other values}."""


def write(path: Path) -> None:
    """Write the workbook. Raises BulkError for another suffix or an existing file, and OSError."""
    if path.suffix.lower() != ".xlsx":
        raise BulkError(f"{path}: ends in {path.suffix or 'no suffix'}; a template is an .xlsx file")
    refuse_existing(path)
    book = Workbook()
    sheet = book.active
    sheet.title = "Payouts"
    sheet.freeze_panes = "A2"
    for column, name in enumerate(_COLUMNS, start=1):
        _add_column(sheet, column, name)
    with AtomicFile(path) as whole:
        book.save(whole.file)


def _add_column(sheet: Any, column: int, name: str) -> None:
    letters = get_column_letter(column)
    cell = sheet.cell(1, column, name)
    cell.font, cell.number_format = Font(bold=True), _TEXT
    sheet.column_dimensions[letters].number_format = _TEXT
    sheet.column_dimensions[letters].width = max(12, len(name) + 2)
    if name in _RULES:
        kind, rule, problem = _RULES[name]
        check = DataValidation(
            kind, rule.replace("{cell}", f"{letters}2"), allow_blank=True, showErrorMessage=True
        )
        check.errorTitle, check.error = name, problem
        check.add(f"{letters}2:{letters}{_ROWS}")
        sheet.add_data_validation(check)
