"""Writes an empty workbook of payouts, to be filled in: its columns are text, so that nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Final

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

_TEXT: Final = "@"  # Excel's format of cells whose values are kept as they are typed
_COLUMNS: Final = (
    *(REFERENCE, AMOUNT, "currency", "method"),
    *(f"instrument.{field.name}" for field in attrs.fields(Instrument)),
    "description",
)


def write(path: Path) -> None:
    """Write the workbook. Raises BulkError for another suffix or an existing file, and OSError."""
    if path.suffix.lower() != ".xlsx":
        raise BulkError(f"{path}: ends in {path.suffix or 'no suffix'}; a template is an .xlsx file")
    refuse_existing(path)
    book = Workbook()
    sheet = book.active
    sheet.title, sheet.freeze_panes = "Payouts", "A2"
    for column, name in enumerate(_COLUMNS, start=1):
        cell, width = sheet.cell(1, column, name), sheet.column_dimensions[get_column_letter(column)]
        cell.font, cell.number_format, width.number_format = Font(bold=True), _TEXT, _TEXT
        width.width = max(12, len(name) + 2)
    types = DataValidation("list", f'"{",".join(TYPES)}"', allow_blank=True, showErrorMessage=True)
    types.add("{0}2:{0}100000".format(get_column_letter(_COLUMNS.index("instrument.type") + 1)))
    sheet.add_data_validation(types)
    with AtomicFile(path) as whole:
        book.save(whole.file)
