"""The treasurer's workbook: rows, money by outcome, certificate; exact, masked, and no text is a formula."""

from __future__ import annotations

import json
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
from payments_async.bulk import BulkError
from payments_async.bulk._export import row_records
from payments_async.bulk._export.excel import ExcelFormat, certificate_lines, money_lines
from payments_async.bulk._export.export import head_of
from payments_async.bulk._export.row_records import FACTS
from payments_async.bulk._protocol.outcomes import ExtraPayout, outcomes_of
from payments_async.sandbox import Sandbox
from tests.support.batches import item, items, name_of
from tests.support.desks import Desk
from tests.support.places import EITHER, Place
from tests.support.workbooks import values_of

BANK = Instrument.bank_account("0123456789", "058", "NG", account_name="Awa Diallo")
EXACT = Decimal("12345678901234.5678")
ROWS = [
    item(1, amount=Decimal("1000000.10"), metadata={"cost": "=1+1", "tel": "+229", "at": "@x", "no": "-1"}),
    item(2, instrument=BANK, amount=EXACT),
    item(3, currency="GHS", description="\x1b[31m" + "a" * 400),
]


@EITHER
async def test_a_workbook_has_rows_money_and_certificate(
    desk: Desk, service: Sandbox, place: Place, tmp_path: Path
) -> None:
    service.on("payouts.create", description="row 1").respond("http:422")
    out, seal = tmp_path / "june-report.xlsx", tmp_path / "certificate.json"
    async with desk.client(service) as client:
        await desk.paid(place, client, ROWS)
        async with desk.open(place, client, batch_id=name_of(place)) as batch:
            seal.write_text((await batch.reconcile()).to_json())
    async with desk.open(place, batch_id=name_of(place)) as batch:
        await batch.export(out, certificate=seal)
        with pytest.raises(BulkError, match="is the certificate of another batch"):
            facts = json.loads(seal.read_text())
            (tmp_path / "other.json").write_text(json.dumps({**facts, "batch_id": "july"}))
            await batch.export(out, certificate=tmp_path / "other.json", overwrite=True)
    assert out.stat().st_mode & 0o777 == 0o600
    sheets = values_of(out)
    assert [*sheets] == ["Money", "Rows", "Certificate"]
    book = openpyxl.load_workbook(out)
    assert (book.active, book["Money"].freeze_panes, book["Rows"].freeze_panes) == (book["Money"], "A8", "A2")
    header, *lines = sheets["Rows"]
    assert header == (
        *("row_key", "reference", "instrument.account_name", "amount", "currency", "outcome"),
        *("failure_code", "failure_message", "status_at"),
        *("payout_status", "payout_amount", "payout_currency", "method", "description"),
        *("instrument.type", "instrument.phone_number", "instrument.account_number"),
        *("instrument.bank_code", "instrument.country"),
        *("metadata.at", "metadata.cost", "metadata.no", "metadata.tel"),
        *("number", "payout_id", "generation"),
    )
    one, two, three = (dict(zip(header, line, strict=True)) for line in lines)
    assert (one["number"], one["outcome"], one["metadata.cost"]) == (1, "rejected", "=1+1")
    assert (one["amount"], two["amount"], three["amount"]) == (1000000.1, str(EXACT), 3.01)
    assert (two["instrument.account_number"], two["instrument.country"]) == ("***", "NG")
    assert three["description"].startswith("\\x1b[31maaa") or "\x1b" not in three["description"]
    for sheet in book:
        assert {column.width for column in sheet.column_dimensions.values()} == {22}
        assert sheet.auto_filter.ref == (sheet.dimensions if sheet.title == "Rows" else None)
    assert {cell.data_type for row in book["Rows"] for cell in row} == {"s", "n", "d"}
    head = {name: value for name, value, *_ in sheets["Money"][:5]}
    assert head["batch"] == (name_of(place) or f"{facts['batch_id'][:12]}…")
    assert (head["times"], head["Rows"]) == ("UTC", "holds all rows")
    assert head["ledger"].endswith(place.name if isinstance(place, Path) else ", batch batch")
    assert isinstance(head["made at"], datetime)
    assert sheets["Money"][5:7] == [(None,) * 4, ("Currency", "Outcome", "Payouts", "Amount")]
    assert sheets["Money"][7:] == [
        ("GHS", "asked, in all", 1, 3.01),
        ("GHS", "not final", 1, 3.01),
        ("XOF", "asked, in all", 2, str(EXACT + Decimal("1000000.10"))),
        ("XOF", "not final", 1, str(EXACT)),
        ("XOF", "rejected", 1, 1000000.1),
    ]
    certificate = [(str(name), str(value)) for name, value in sheets["Certificate"][1:]]
    assert ("ledger head", facts["ledger"]["head"]) in certificate
    assert ("clean", "yes") in certificate
    assert ("batch_id", facts["batch_id"]) in certificate
    assert isinstance(dict(sheets["Certificate"])["made at"], datetime)
    assert "input_hash" not in dict(certificate)


async def test_accounts_are_written_when_asked_for(
    desk: Desk, service: Sandbox, place: Place, tmp_path: Path
) -> None:
    async with desk.client(service) as client, desk.open(place, client, batch_id=name_of(place)) as batch:
        await batch.load(ROWS[1:2])
        await batch.export(tmp_path / "out.xlsx", accounts=True, states=["not_started"])
        sheets = values_of(tmp_path / "out.xlsx")
        assert "0123456789" in sheets["Rows"][1]
        assert sheets["Money"][4][:2] == ("Rows", "holds only: not started")
        assert sheets["Certificate"][1] == ("certificate", "none: `payments payouts reconcile` writes one")


def test_what_a_certificate_says_of_a_batch() -> None:
    certificate = {
        "rows": {"asked": 1},
        "at": 0.0,
        "ledger": {"head": "abc"},
        "findings": ["a row is missing"],
    }
    lines = [*certificate_lines(certificate | {"clean": False, "batch_id": "june"}, {"asked": 2})]
    assert lines[0][1].startswith("of an earlier state of the batch")
    assert ("made at", "1970-01-01T00:00:00Z") in lines
    assert {("clean", "no"), ("guard", "none"), ("finding", "a row is missing")} <= {*lines}
    extra = {(ExtraPayout.IN_EXCESS, "XOF"): (2, Decimal("7.50"))}
    assert [*money_lines({}, extra)] == [("XOF", "in excess", 2, Decimal("7.50"))]


def test_an_amount_is_a_number_only_where_it_means_exactly_this(tmp_path: Path) -> None:
    """openpyxl writes numbers with 16 digits: of 15 and fewer, all readers make the double next to them."""
    amounts = ["1200", "0.10", "999999999999.999", "9.99999999999999", "9589329365741.78", "1234567890123456"]
    path = tmp_path / "out.xlsx"
    with path.open("wb") as file:
        form = ExcelFormat(file, ("amount", "failure_message"))
        names = ("number", *FACTS)
        for amount in amounts:
            record = {**dict.fromkeys(names), "amount": amount, "failure_message": "x" * 40_000}
            form.write([{**record, "instrument": {}, "customer": {}, "metadata": {}}])
        form.end()
        form.abandon()  # finds nothing that is left of it
    cells = [row[0] for row in openpyxl.load_workbook(path)["Rows"].iter_rows(min_row=2)]
    assert [
        Decimal(repr(cell.value)) if cell.data_type == "n" else Decimal(cell.value) for cell in cells
    ] == [Decimal(amount) for amount in amounts]
    assert cells[-1].data_type == "s"
    long = values_of(path)["Rows"][1][1]
    assert (len(long), long[-1]) == (32_767, "…")


@pytest.mark.parametrize(
    ("column", "value", "currency", "expected", "shown"),
    [
        ("amount", "1010.5", "GHS", 1010.5, "#,##0.00"),
        ("amount", "1200", "XOF", 1200, "#,##0"),
        ("amount", "1.07", "XOF", 1.07, "#,##0.00"),
        ("amount", "5", "TND", 5, "#,##0.000"),
        ("amount", "5", "USDT", 5, "#,##0.00"),
        ("payout_amount", "0.1234", None, 0.1234, "#,##0.0000"),
        ("status_at", "2026-06-30T10:00:05Z", "XOF", datetime(2026, 6, 30, 10, 0, 5), "yyyy-mm-dd hh:mm:ss"),
    ],
)
def test_how_amounts_and_times_are_shown(
    tmp_path: Path, column: str, value: str, currency: str | None, expected: object, shown: str
) -> None:
    record: dict[str, Any] = {**dict.fromkeys(FACTS), "instrument": {}, "customer": {}, "metadata": {}}
    record |= {column: value, "currency": currency, "payout_currency": currency}
    with (tmp_path / "out.xlsx").open("wb") as file:
        form = ExcelFormat(file, (column,))
        form.write([record])
        form.end()
    cell = openpyxl.load_workbook(tmp_path / "out.xlsx")["Rows"]["A2"]
    assert (cell.value, cell.number_format) == (expected, shown)


@pytest.mark.parametrize(
    ("batch_id", "path", "states", "expected"),
    [
        ("june", "/pay/june.csv.ledger", "asked", ("june", "june.csv.ledger", "holds all rows")),
        ("0af" * 22, "db, batch 0af", "arrived", ("0af" * 22, "db, batch 0af", "holds only: arrived")),
        (
            *("0123456789abcdef" * 4, "/l", "created"),
            ("0123456789ab…", "l", "holds only: not final, arrived, failed, returned"),
        ),
    ],
)
def test_what_stands_above_the_money(
    batch_id: str, path: str, states: str, expected: tuple[str, str, str]
) -> None:
    head = head_of(batch_id, path, 0.0, outcomes_of([states]))
    assert (head["batch"], head["ledger"], head["Rows"]) == expected
    assert head["made at"] == "1970-01-01T00:00:00Z"


async def test_a_broken_report_leaves_nothing(
    batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("no room")

    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(row_records, "record", broken)
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
