"""The treasurer's workbook: rows, money by outcome, certificate; exact, masked, and no text is a formula."""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from payments_async import Instrument
from payments_async.sandbox import Sandbox
from tests.support.batches import item, items, pay_stranger, run_rows
from tests.support.payout_files import FACTS
from tests.support.places import EITHER, Place
from tests.support.workbooks import cell_of, values_of

BANK = Instrument.bank_account("0123456789", "058", "NG", account_name="Awa Diallo")
EXACT = Decimal("12345678901234.5678")
ROWS = [
    item(1, amount=Decimal("1000000.10"), metadata={"cost": "=1+1", "tel": "+229", "at": "@x", "no": "-1"}),
    item(2, instrument=BANK, amount=EXACT),
    item(3, currency="GHS", description="\x1b[31m" + "a" * 400),
]


@EITHER
async def test_a_workbook_has_rows_money_and_certificate(
    batch: Any, service: Sandbox, place: Place, tmp_path: Path
) -> None:
    service.on("payouts.create", description="row 1").respond("http:422")
    out = tmp_path / "june-report.xlsx"
    await run_rows(batch, ROWS)
    await batch.export(out)
    assert out.stat().st_mode & 0o777 == 0o600
    sheets, book = values_of(out), openpyxl.load_workbook(out)
    assert [*sheets] == ["Money", "Rows", "Certificate"]
    assert (book.active, book["Money"].freeze_panes, book["Rows"].freeze_panes) == (book["Money"], "A8", "A2")
    header, *lines = sheets["Rows"]
    assert header == (
        *FACTS,
        *("instrument.type", "instrument.phone_number", "instrument.account_name"),
        *("instrument.account_number", "instrument.bank_code", "instrument.country"),
        *("metadata.at", "metadata.cost", "metadata.no", "metadata.tel"),
    )
    one, two, three = (dict(zip(header, line, strict=True)) for line in lines)
    assert (one["number"], one["outcome"], one["metadata.cost"]) == (1, "rejected", "=1+1")
    assert (one["amount"], two["amount"], three["amount"]) == (1000000.1, str(EXACT), 3.01)
    assert (two["instrument.account_number"], two["instrument.country"]) == ("***", "NG")
    assert "\x1b" not in three["description"]
    for sheet in book:
        widths = {
            sheet[f"{letter}{7 if sheet.title == 'Money' else 1}"].value: column.width
            for letter, column in sheet.column_dimensions.items()
        }
        assert {name: width for name, width in widths.items() if width != 22} == (
            {
                **dict.fromkeys(("number", "line", "currency", "payout_currency", "generation"), 9),
                **dict.fromkeys(("outcome", "payout_status", "method"), 14),
            }
            if sheet.title == "Rows"
            else {}
        )
        paper = sheet.page_setup
        assert (paper.orientation, paper.paperSize) == ("landscape", 9), "A4"
        assert sheet.sheet_properties.pageSetUpPr.fitToPage
        assert (sheet.page_margins.left, sheet.page_margins.right) == (0.4, 0.4)
        assert (paper.fitToWidth, paper.fitToHeight) == (None, 0), "one sheet wide, which is the default"
        assert sheet.print_title_rows == ("$7:$7" if sheet.title == "Money" else "$1:$1")
        assert sheet.auto_filter.ref == (sheet.dimensions if sheet.title == "Rows" else None)
    assert {cell.data_type for row in book["Rows"] for cell in row} == {"s", "n", "d"}
    head = {name: value for name, value, *_ in sheets["Money"][:5]}
    assert (head["batch"], head["times"], head["Rows"]) == ("batch", "UTC", "holds all rows")
    assert str(head["ledger"]).startswith("postgresql://" if isinstance(place, str) else "l")
    assert head["made at"] == datetime(2026, 1, 1)
    assert sheets["Money"][5:7] == [(None,) * 4, ("Currency", "Outcome", "Payouts", "Amount")]
    assert sheets["Money"][7:] == [
        ("GHS", "asked, in all", 1, 3.01),
        ("GHS", "not final", 1, 3.01),
        ("XCD", "asked, in all", 2, str(EXACT + Decimal("1000000.10"))),
        ("XCD", "not final", 1, str(EXACT)),
        ("XCD", "rejected", 1, 1000000.1),
    ]
    certificate = dict(sheets["Certificate"][1:])
    facts = ("certificate", "environment", "guard", "clean", "settled")
    assert [certificate.get(name) for name in facts] == [None, "sandbox", "none", "yes", "no"]
    assert isinstance(certificate["made at"], datetime)
    assert "input_hash" not in certificate


async def test_a_workbook_before_any_certificate_says_so_and_shows_accounts_when_asked(
    batch: Any, tmp_path: Path
) -> None:
    await batch.load(ROWS[1:2])
    await batch.export(tmp_path / "out.xlsx", accounts=True, states=["not_started", "created"])
    sheets = values_of(tmp_path / "out.xlsx")
    assert "0123456789" in sheets["Rows"][1]
    held = "holds only: not started, not final, arrived, failed, returned"
    assert sheets["Money"][4][:2] == ("Rows", held)
    assert sheets["Certificate"][1] == ("certificate", "none: `payments payouts reconcile` writes one")


async def test_a_workbook_has_findings_and_says_when_the_batch_has_changed_since(
    batch: Any, service: Sandbox, tmp_path: Path
) -> None:
    await batch.load([item(1, reference="taken"), item(2)])
    await pay_stranger(service)
    await batch.run()
    await batch.export(tmp_path / "out.xlsx")
    sheets = values_of(tmp_path / "out.xlsx")
    names = [name for name, *_ in sheets["Certificate"]]
    assert ("finding" in names, "certificate" in names) == (True, False)
    assert ("XCD", "conflict", 1, 1.01) in sheets["Money"]
    service.advance(86_400.0)
    await batch.retry_failed(dry_run=True)  # reads the list, and certifies nothing
    await batch.export(tmp_path / "older.xlsx")
    first = values_of(tmp_path / "older.xlsx")["Certificate"][1]
    assert first == ("certificate", "of an earlier state: `payments payouts reconcile` writes a new one")


@pytest.mark.parametrize(
    ("column", "value", "currency", "expected", "shown"),
    [
        ("amount", "1010.5", "GHS", 1010.5, "#,##0.00"),
        ("amount", "1200", "XOF", 1200, "#,##0"),
        ("amount", "1.07", "XCD", 1.07, "#,##0.00"),
        ("amount", "5", "TND", 5, "#,##0.000"),
        ("amount", "5", "USDT", 5, "#,##0.00"),
        ("payout_amount", "0.1234", None, 0.1234, "#,##0.0000"),
        ("ended_at", "2026-06-30T10:00:05Z", "XCD", datetime(2026, 6, 30, 10, 0, 5), "yyyy-mm-dd hh:mm:ss"),
        ("failure_message", "x" * 40_000, "XCD", "x" * 32_766 + "…", "General"),
    ],
)
def test_how_values_are_shown(
    tmp_path: Path, column: str, value: str, currency: str | None, expected: object, shown: str
) -> None:
    cell = cell_of(tmp_path / "out.xlsx", column, value, currency)
    assert (cell.value, cell.number_format) == (expected, shown)


@pytest.mark.parametrize(
    ("amount", "kind"),
    [
        *(("1200", "n"), ("0.10", "n"), ("999999999999.999", "n"), ("9.99999999999999", "n")),
        *(("9589329365741.78", "n"), ("1234567890123456", "s")),
    ],
)
def test_an_amount_is_a_number_only_where_it_means_exactly_this(
    tmp_path: Path, amount: str, kind: str
) -> None:
    """openpyxl writes numbers with 16 digits: of 15 and fewer, all readers make the double next to them."""
    cell = cell_of(tmp_path / "out.xlsx", "amount", amount)
    assert (cell.data_type, Decimal(str(cell.value))) == (kind, Decimal(amount))


async def test_a_broken_report_leaves_nothing(
    batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("no room")

    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr("payments_async.bulk._export.excel.ExcelFormat.end", broken)
    await batch.load(items(2))
    with pytest.raises(OSError, match="no room"):
        await batch.export(tmp_path / "out.xlsx")
    assert not os.listdir(tmp_path / "tmp")
    assert not [name for name in os.listdir(tmp_path) if name.startswith("out")]


async def test_a_missing_extra_is_one_line(
    batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_export.excel", "sources._excel"):
        monkeypatch.delitem(sys.modules, f"payments_async.bulk.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    await batch.load(items(2))
    with pytest.raises(ImportError, match=r'openpyxl: pip install "payments-sdk\[excel\]"$'):
        await batch.export(tmp_path / "out.xlsx")
