"""Excel workbooks: text is text, a number is an amount, and everything else is a fault by its cell."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import openpyxl
import pytest

from payments_async.bulk.errors import BulkError, SourceErrors, SourceUnreadable
from payments_async.bulk.sources import open_source, write_template
from tests.support.payout_files import PHONE, bytes_file, csv_file, read, split
from tests.support.workbooks import fill, lines_of, replaced, rewritten, values_of, workbook

NAMED = {"reference": "salary-1", **PHONE}
JUNE = [
    {"reference": "salary-1", **PHONE, "amount": "50.1", "description": "=x"},
    {"reference": "salary-2", **PHONE, "amount": "1200", "description": "Été"},
    {"reference": "salary-3", **PHONE, "amount": "75.50", "description": ""},
]


def test_a_workbook_is_the_same_rows_as_a_csv_file(tmp_path: Path) -> None:
    source, same = open_source(workbook(tmp_path, lines_of(*JUNE))), open_source(csv_file(tmp_path, *JUNE))
    (rows, faults), (others, _) = split(source), split(same)
    assert faults == []
    assert [row.request for row in rows] == [other.request for other in others]
    assert [row.line for row in rows] == [2, 3, 4]
    assert source.fingerprint() == same.fingerprint()
    assert [[*row.original] for row in rows] == [[*other.original] for other in others]


ROUND = "round it, =ROUND(A2,2) pasted as values, or format the column as text, and write it again"


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("50", "50"),
        ("1E3", "1000"),
        ("4.3499999999999996", "4.35"),
        ("12345678901234.5", "12345678901234.5"),
        ("0.1", "must be at least 1, in major units"),
        ("1234567890123456", f"is a number of more than 15 digits: {ROUND}"),
        ("3.3000000000000003", "is a number of more than 15 digits"),
        ("1E400", "is text that is not a decimal number"),
    ],
)
def test_a_number_is_an_amount_by_its_shortest_text(tmp_path: Path, written: str, amount: str) -> None:
    path = workbook(tmp_path, lines_of({**PHONE, "amount": 7}))
    rows, faults = read(rewritten(path, replaced("<v>7</v>", f"<v>{written}</v>")))
    if rows:
        assert (str(rows[0].request.amount), rows[0].original[0]) == (amount, amount)
    else:
        assert f'Sheet "June", cell A2, amount: {amount}' in str(faults[0])


@pytest.mark.parametrize(
    "number_format",
    [
        *["0%", "0.00%", "#,##0,", "0.0,,", "0.00E+00", '"GHS" #,##0,.00;0', "[$GHS] 0,"],
        *['0"."00', "0\\,00", '0"F"00', '"50"', '0"000"', '"."0', "[$1]0", '[<5]0;0"."00'],
    ],
)
def test_an_amount_that_its_cell_shows_on_another_scale_is_a_fault(
    tmp_path: Path, number_format: str
) -> None:
    def formatted(book: Any) -> None:
        book.active["A2"].number_format = number_format

    path = workbook(tmp_path, lines_of({**PHONE, "amount": 50_000}), change=formatted)
    _, (fault,) = split(open_source(path))
    assert fault.reason.startswith("is shown as a percentage, in thousands or as a power of ten")


@pytest.mark.parametrize(
    ("number_format", "shown"),
    [
        *[("0.00", "50.10"), ("#,##0.00", "50.10"), ("#,##0.0#;[Red]-#,##0.000", "50.10"), ("0", "50")],
        *[("00000", "50"), ("#\\ ##0", "50")],
        *[('"F.CFA" #,##0', "50"), ("[$€-40C] #,##0.0", "50.1"), ('_-* #,##0.00\\ "€"_-', "50.10")],
        *[("€0.00_)", "50.10"), ("[Color10]0.0", "50.1"), ("General", ""), ("@", ""), ("0.000", "")],
        *[("# ?/?", ""), ("[>9]0;0.0", "")],
    ],
)
def test_an_amount_is_what_its_cell_shows(tmp_path: Path, number_format: str, shown: str) -> None:
    def change(book: Any) -> None:
        book.active["A2"].number_format = number_format

    cells = {**PHONE, "amount": 50.104, "currency": "KWD"}
    rows, faults = read(workbook(tmp_path, lines_of(cells), change=change))
    decimals = len(shown.partition(".")[2])
    reason = f"shows {shown} and is 50.104: {ROUND.replace(',2', f',{decimals}')}"
    assert [str(fault) for fault in faults] == ([f'Sheet "June", cell A2, amount: {reason}'] if shown else [])
    assert [str(row.request.amount) for row in rows] == ([] if shown else ["50.104"])


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "number": ({"instrument.phone_number": 22990000000}, "is a number, which loses zeros and a plus"),
    "formula": ({"instrument.phone_number": "=1+1"}, "is a formula: copy the column, and paste it as values"),
    "error": ({"instrument.phone_number": "#N/A"}, "is an error of a formula: write the value itself"),
    "boolean": ({"instrument.phone_number": True}, "is TRUE or FALSE: format the column as text"),
    "date": ({"instrument.phone_number": datetime(2026, 6, 1)}, "is a date or a time: format the column"),
    "rounded": ({"instrument.phone_number": "2.2990E+10"}, "is in scientific notation"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_cell_at_fault_is_named_by_sheet_row_and_column(tmp_path: Path, kind: str) -> None:
    other, reason = FAULTS[kind]

    def change(book: Any) -> None:
        book.active.append([{**NAMED, **other, "reference": "salary-2"}[name] for name in NAMED])

    rows, faults = read(workbook(tmp_path, lines_of(NAMED), change=change))
    assert [row.line for row in rows] == [2]
    at_fault = [fault for fault in faults if fault.column == "instrument.phone_number"]
    assert str(at_fault[0]).startswith('Sheet "June", cell E3, instrument.phone_number: ')
    assert reason in str(at_fault[0])
    assert (at_fault[0].line, at_fault[0].number, at_fault[0].reference) == (3, 2, "salary-2")
    assert "2299" not in repr(faults)


def hidden_column(book: Any) -> None:
    book.active.column_dimensions["C"].hidden = True


def headers_fault(path: Path) -> list[str]:
    with pytest.raises(SourceErrors) as caught:
        read(path)
    return [str(fault) for fault in caught.value.faults]


def test_a_header_at_fault_is_named_by_its_cell(tmp_path: Path) -> None:
    path = workbook(tmp_path, lines_of(PHONE), change=hidden_column)
    (fault,) = headers_fault(path)
    assert fault.startswith('Sheet "June", cell C1: is in a hidden column: show it, or')
    (fault,) = headers_fault(
        workbook(
            tmp_path,
            lines_of(PHONE),
            change=lambda book: book.active.merge_cells("B1:C1"),
        )
    )[-1:]
    assert fault == 'Sheet "June", cell B1: is merged with other cells: unmerge them, and fill in each'
    lines = lines_of({**PHONE, 7: "x"})  # type: ignore[dict-item]
    assert headers_fault(workbook(tmp_path, lines)) == [
        'Sheet "June", row 1, 7: is not a column of a payout file',
        'Sheet "June", cell F1: is no text: format the column as text, and write it again',
    ]


def test_merged_cells_are_faults_of_each_row_that_has_a_part_of_them(tmp_path: Path) -> None:
    def change(book: Any) -> None:
        book.active.merge_cells("B2:B3")
        book.active.merge_cells("H9:J9")

    rows, faults = read(workbook(tmp_path, lines_of(PHONE, PHONE, PHONE), change=change))
    assert [row.line for row in rows] == [4]
    assert [str(fault)[:33] for fault in faults] == [
        'Sheet "June", cell B2, currency: ',
        'Sheet "June", cell B3, currency: ',
    ]


def test_values_beside_the_columns_are_a_fault(tmp_path: Path) -> None:
    ((), faults) = read(workbook(tmp_path, [[*PHONE], [*PHONE.values(), None, "note", "x"]]))
    assert [str(fault) for fault in faults] == [
        'Sheet "June", row 2: has values without a column\'s name above them, in G, H: '
        "name or empty the column"
    ]


def two_sheets(book: Any) -> None:
    fill(book.create_sheet("May"), lines_of({**PHONE, "amount": "7"}))
    book.create_sheet("Empty")


def test_of_several_sheets_one_is_named(tmp_path: Path) -> None:
    path = workbook(tmp_path, lines_of(PHONE), change=two_sheets)
    with pytest.raises(
        SourceUnreadable, match=r'has 2 sheets with values, "June", "May": name one with --sheet'
    ):
        read(path)
    assert read(path, sheet="May")[0][0].request.amount == Decimal("7")
    with pytest.raises(SourceUnreadable, match=r'has no sheet of that name .*: "June", "May", "Empty"'):
        read(path, sheet="may")

    def many(book: Any) -> None:
        for number in range(12):
            fill(book.create_sheet(f"S{number}"), [["x"]])

    with pytest.raises(
        SourceUnreadable, match=r'has 13 sheets with values, "June", .*"S8", and 3 more: name'
    ):
        read(workbook(tmp_path, lines_of(PHONE), change=many))
    with pytest.raises(SourceUnreadable, match="has no visible sheet with values"):
        read(workbook(tmp_path, []))


Change = Callable[[dict[str, bytes]], object]


def added(name: str, content: bytes | str = b"<x/>") -> Change:
    return lambda parts: parts.update({name: content.encode() if isinstance(content, str) else content})


PHONE_CELL = 't="inlineStr"><is><t>+2290190000000</t></is>'
ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
UNREADABLE = r"is no workbook that can be read \(\w+\): save it as Excel Workbook \(\.xlsx\)"
EXPANDS = "has a part with a document type"
HOSTILE: dict[str, tuple[Change, str]] = {
    "too large": (
        added("xl/media/image1.png", bytes(65 << 20)),
        "takes 65 MiB unpacked",
    ),
    "entities in the sheet": (replaced("<worksheet", f"{ENTITIES}<worksheet"), EXPANDS),
    "entities in styles": (replaced("<styleSheet", f"{ENTITIES}<styleSheet", "xl/styles.xml"), EXPANDS),
    "entities in UTF-16": (
        added("custom/x.dat", f"<?xml version='1.0'?>{ENTITIES}<x>&b;</x>".encode("utf-16")),
        EXPANDS,
    ),
    "no workbook": (lambda parts: parts.pop("xl/workbook.xml"), UNREADABLE),
    "cut off": (replaced("</sheetData>", ""), UNREADABLE),
    "a text that is not there": (replaced(PHONE_CELL, 't="s"><v>5555</v>'), UNREADABLE),
    "a number that is none": (replaced(PHONE_CELL, 't="n"><v>2,29</v>'), UNREADABLE),
    "no styles": (replaced("<cellXfs", "<other", "xl/styles.xml"), UNREADABLE),
}
"""{what is wrong with the workbook: (how it is made, what the error says)}."""


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_workbook_is_refused(tmp_path: Path, kind: str) -> None:
    change, reason = HOSTILE[kind]
    path = rewritten(workbook(tmp_path, lines_of(PHONE)), change)
    with pytest.raises(SourceUnreadable, match=reason) as caught:
        read(path)
    assert caught.value.__context__ is None or "229" not in str(caught.value.__context__)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is no Excel workbook, or not a whole one"),
        (b"amount,currency\n", "is no Excel workbook, or not a whole one"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "has a password, or is an .xls"),
    ],
)
def test_another_file_is_no_workbook(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(SourceUnreadable, match=reason):
        read(bytes_file(tmp_path, content, "payouts.xlsx"))


@pytest.mark.parametrize("name", ["a.xlsm", "a.XLS"])
def test_a_workbook_of_another_format_is_to_be_saved_as_xlsx(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceUnreadable, match="is a workbook that is not read: save it as Excel Workbook"):
        open_source(tmp_path / name)


def test_a_disk_that_fails_is_not_a_workbook_at_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openpyxl, "load_workbook", MagicMock(side_effect=OSError("disk")))
    with pytest.raises(SourceUnreadable, match=r"cannot be read \(OSError\); check its path and its rights$"):
        read(workbook(tmp_path, lines_of(PHONE)))


async def test_others_run_while_a_workbook_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    going_on, load = threading.Event(), openpyxl.load_workbook

    def slow(*given: Any, **options: Any) -> Any:
        assert going_on.wait(60)
        return load(*given, **options)

    monkeypatch.setattr(openpyxl, "load_workbook", slow)
    source = open_source(workbook(tmp_path, lines_of(PHONE)))
    asyncio.get_running_loop().call_soon(going_on.set)
    assert len([item async for item in source.rows()]) == 1


def test_a_template_that_was_filled_in_is_read(tmp_path: Path) -> None:
    path = tmp_path / "june.xlsx"
    write_template(path)
    assert path.stat().st_mode & 0o777 == 0o600
    book = openpyxl.load_workbook(path)
    sheet = book["Payouts"]
    header = [str(cell.value) for cell in sheet[1]]
    filled = {**NAMED, "instrument.type": "phone"}
    sheet.append([filled.get(name) for name in header])
    letters = dict(zip(header, [cell.column_letter for cell in sheet[1]], strict=True))
    assert sheet.freeze_panes == "A2"
    assert {sheet.column_dimensions[letter].number_format for letter in letters.values()} == {"@"}
    checks = {str(each.sqref): each for each in sheet.data_validations.dataValidation}
    types = checks[f"{letters['instrument.type']}2:{letters['instrument.type']}100000"]
    assert (types.type, types.formula1) == ("list", '"phone,bank_account,crypto_address"')
    book.save(path)
    (row,), faults = read(path)
    assert (faults, row.reference, row.request.amount) == ([], "salary-1", Decimal("50.10"))
    with pytest.raises(BulkError, match="exists already; name another file"):
        write_template(path)
    assert values_of(path)["Payouts"][1][0] == "salary-1"
    with pytest.raises(BulkError, match=r"ends in \.csv; a template is an \.xlsx file"):
        write_template(tmp_path / "june.csv")


def test_options_of_a_workbook_and_of_other_files_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match=r"is no CSV file, and has no delimiter"):
        open_source("june.xlsx", delimiter=";")
    with pytest.raises(SourceUnreadable, match=r"is no \.xlsx workbook, and has no sheet"):
        open_source("june.csv", sheet="June")
    with pytest.raises(SourceUnreadable, match="cannot be read"):
        read(tmp_path / "missing.xlsx")


def test_a_missing_extra_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if "sources._excel" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        ImportError, match=r'^Excel workbooks need openpyxl: pip install "payments-sdk\[excel\]"$'
    ):
        open_source(tmp_path / "payouts.xlsx")


def row_height(book: Any) -> None:
    book.active.row_dimensions[2].height = 15


def test_rows_that_are_hidden_unless_they_have_a_height_are_hidden(tmp_path: Path) -> None:
    path = workbook(tmp_path, lines_of(NAMED), change=row_height)
    rewritten(path, replaced("<sheetFormatPr ", '<sheetFormatPr zeroHeight="1" '))
    assert len(read(path)[0]) == 1
    rewritten(path, replaced(' ht="15"', ""))
    assert len(read(path)[1]) == 1
