"""Excel workbooks for tests: write one, change its parts as no writer would, read it back."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import openpyxl

from payments_async.bulk._export.excel import ExcelFormat
from payments_async.bulk._export.formats import Summary
from payments_async.bulk._ledger.figures import Figures
from tests.support.payout_files import FACTS

SHEET = "xl/worksheets/sheet1.xml"
Lines = Sequence[Sequence[Any]]
RECORD: dict[str, Any] = {**dict.fromkeys(FACTS), "instrument": {}, "customer": {}, "metadata": {}}


def lines_of(*rows: Mapping[str, Any]) -> list[list[Any]]:
    """Rows as lines under a header, which is that of the first."""
    return [[*rows[0]], *([*row.values()] for row in rows)]


def workbook(folder: Path, lines: Lines, *, name: str = "payouts.xlsx", change: Any = None) -> Path:
    """A workbook with these lines in a sheet June, all texts as texts. `change` gets the book."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "June"
    fill(sheet, lines)
    if change is not None:
        change(book)
    book.save(folder / name)
    return folder / name


def fill(sheet: Any, lines: Lines) -> None:
    for line in lines:
        sheet.append(line)
        for cell in sheet[sheet.max_row]:
            if isinstance(cell.value, str):
                cell.data_type = "s"


def rewritten(path: Path, change: Callable[[dict[str, bytes]], object]) -> Path:
    with zipfile.ZipFile(path) as package:
        parts = {name: package.read(name) for name in package.namelist()}
    change(parts)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in parts.items():
            package.writestr(name, content)
    return path


def replaced(old: str, new: str, part: str = SHEET) -> Callable[[dict[str, bytes]], None]:
    def change(parts: dict[str, bytes]) -> None:
        assert old.encode() in parts[part], parts[part][:4000]
        parts[part] = parts[part].replace(old.encode(), new.encode(), 1)

    return change


def values_of(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    book = openpyxl.load_workbook(path)
    return {sheet.title: list(sheet.iter_rows(values_only=True)) for sheet in book.worksheets}


def cell_of(path: Path, column: str, value: str, currency: str | None = "XCD") -> Any:
    with path.open("wb") as file:
        form = ExcelFormat(file, (column,))
        form.write([RECORD | {column: value, "currency": currency, "payout_currency": currency}])
        form.end(Summary({}, Figures(0.0, {}, {}, is_balanced=True), None))
        form.abandon()  # finds nothing that is left of it
    return openpyxl.load_workbook(path)["Rows"]["A2"]
