"""A workbook from the template to the treasurer's report, by the command alone."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import openpyxl

from tests.bulk.sources import test_mapping as mapping
from tests.support.payout_command import Exit, Here
from tests.support.workbooks import values_of

ROW = {
    "reference": "salary-1",
    "amount": "1.07",
    "currency": "XCD",
    "method": "mtn_bj",
    "instrument.phone_number": "+2290190112233",
    "instrument.country": "BJ",
}


def fill_in(path: Path, *sheets: str) -> None:
    """Add a row to the template, and copies of its sheet under these names."""
    book = openpyxl.load_workbook(path)
    sheet = book["Payouts"]
    sheet.append([ROW.get(str(cell.value)) for cell in sheet[1]])
    for name in sheets:
        book.copy_worksheet(sheet).title = name
    book.save(path)


def test_a_template_is_filled_in_paid_and_reported(here: Here) -> None:
    written = here("template", "june.xlsx")
    assert written.code == Exit.DONE
    assert "payments payouts run june.xlsx --dry-run" in " ".join(written.out.split())
    here("template", "june.xlsx").assert_one_message(Exit.USAGE, "june.xlsx: exists already")
    here("template", "away/june.xlsx").assert_one_message(Exit.USAGE, "cannot be written (No such file")
    assert here("template", "july.xlsx", "--json").step("written")["path"] == "july.xlsx"
    fill_in(here.folder / "june.xlsx", "June")
    here("run", "june.xlsx").assert_one_message(Exit.USAGE, '"Payouts", "June": name one with --sheet')
    assert here("run", "june.xlsx", "--sheet", "June").code == Exit.DONE
    assert [entry.amount for entry in here.sandbox.books.payouts()] == [Decimal("1.07")]
    assert here("export", "june.xlsx.ledger", "june-report.xlsx").code == Exit.DONE
    report = values_of(here.folder / "june-report.xlsx")
    assert ("clean", "yes") in report["Certificate"]
    assert ("XCD", "asked, in all", 1, 1.07) in report["Money"]


def test_what_is_mapped_is_shown_and_the_rejects_need_no_mapping(here: Here) -> None:
    path = mapping.theirs(here.folder, rows=[*mapping.ROWS, ["s-3", "+233200000003", "12x", ""]])
    (here.folder / "salaries.toml").write_text(mapping.FILE)
    maps = ("--map-file", "salaries.toml", "--map", "Salary=amount", "--map", "Phone=instrument.phone_number")
    ran = here("run", path.name, *maps, "--skip-invalid", "--rejects", "faults.csv")
    assert "Phone is instrument.phone_number" in " ".join(ran.out.split())
    assert [entry.amount for entry in here.sandbox.books.payouts()] == [Decimal("120.50"), Decimal(100)]
    faults = here.folder / "faults.csv"
    faults.write_text(faults.read_text().replace("12x", "12"))
    assert here("run", "faults.csv", "--dry-run", "--ledger", "other.ledger").code == 0
    here("run", path.name, "--map", "Salary=amont").assert_one_message(
        2, "Salary: amont is not a column of a payout file; did you mean amount?"
    )
