"""Exports: every row and what became of it, exact, masked unless asked, whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import stat
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async import CustomerInput, Instrument
from payments_async.bulk import BulkError, Outcome
from payments_async.sandbox import Sandbox
from tests.support.batches import LedgerRow, item, items, run_rows
from tests.support.desks import Desk, Pay
from tests.support.payout_files import FACTS, PHONE, csv_file, unescaped
from tests.support.places import EITHER, Place

BANK = Instrument.bank_account("0123456789", "058", "NG", account_name="Awa Diallo")
ROWS = [
    item(1, amount=Decimal("1000000.10"), metadata={"cost": "=1+1", "n": Decimal("1.50"), "ok": True}),
    item(2, instrument=BANK, customer=CustomerInput(email="awa@example.test", country="NG")),
    item(3, currency="GHS", metadata={"cost": "'quoted", "nested": {"a": [1, None]}}),
]
SECRETS = (b"2290190112233", b"0123456789", b"Awa Diallo", b"awa@example.test")


@pytest.fixture
def exported(desk: Desk, pay: Pay, place: Place, tmp_path: Path) -> Any:
    """Pays rows and exports them without a client: the file, the ledger's rows, the report."""

    async def export(name: str, rows: Any = ROWS, **options: Any) -> tuple[Path, list[LedgerRow], Any]:
        await pay(rows)
        async with desk.open(place) as batch:
            report = await batch.export(tmp_path / name, **options)
            return tmp_path / name, await desk.rows(batch), report

    return export


def cells(path: Path) -> list[dict[str, str]]:
    """A CSV export as it was meant."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    return [dict(zip(header, map(unescaped, line), strict=True)) for line in lines]


@EITHER
async def test_a_csv_says_of_each_row_what_became_of_it(exported: Any, service: Sandbox) -> None:
    service.on("payouts.create", description="row 3").respond("http:422")
    path, rows, report = await exported("out.csv")
    assert (report.path, report.rows, report.unreadable) == (str(path), 3, ())
    assert report.totals == {"XCD": Decimal("1000002.11"), "GHS": Decimal("3.01")}
    one, two, three = cells(path)
    assert [*one] == [
        *FACTS,
        *(f"instrument.{field.name}" for field in attrs.fields(Instrument)),
        *(f"customer.{field.name}" for field in attrs.fields(CustomerInput)),
        *(f"metadata.{name}" for name in ("cost", "n", "nested", "ok")),
    ]
    expected = {
        "number": "1",
        "line": "",
        "row_key": "row-1",
        "reference": rows[0].reference,
        "outcome": "not_final",
        "payout_id": rows[0].payout_id,
        "payout_status": rows[0].service_status,
        "amount": "1000000.1",
        "currency": "XCD",
        "payout_amount": "1000000.1",
        "payout_currency": "XCD",
        "description": "row 1",
        "generation": "0",
        "metadata.cost": "=1+1",
        "metadata.n": "1.50",
        "metadata.ok": "true",
        "customer.email": "",
    }
    assert {name: one[name] for name in expected} == expected
    assert (one["ended_at"], one["read_at"]) == ("", "2026-01-01T00:00:00Z"), "its end has no time yet"
    assert (two["instrument.account_number"], two["customer.email"]) == ("***", "***")
    assert (two["instrument.bank_code"], two["customer.country"]) == ("058", "NG")
    assert (three["payout_amount"], three["payout_currency"], three["ended_at"]) == ("", "", "")
    assert three["read_at"] == "", "it has no payout"
    assert (three["outcome"], three["payout_id"], bool(three["failure_code"])) == ("rejected", "", True)
    assert json.loads(three["metadata.nested"]) == {"a": [1, None]}
    assert three["metadata.cost"] == "'quoted"


async def test_no_cell_is_a_formula_and_each_reads_back(exported: Any) -> None:
    odd = ["=1", "+1", "-1", "@x", "\tx", "\rx", "'x", "x", 'a"b,c\nd']
    rows = [item(n, metadata={"odd": text, f"={n}": "x"}) for n, text in enumerate(odd, 1)]
    path, *_ = await exported("out.csv", rows, accounts=True)
    with path.open(newline="") as file:
        written = [cell for line in csv.reader(file) for cell in line]
    assert not [cell for cell in written if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    escapes = {"\tx": r"\tx", "\rx": r"\rx", 'a"b,c\nd': r'a"b,c\nd'}
    assert [row["metadata.odd"] for row in cells(path)] == [escapes.get(text, text) for text in odd]
    assert {row["instrument.phone_number"] for row in cells(path)} == {"+2290190112233"}


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
async def test_account_data_is_masked_unless_asked_for(
    desk: Desk, exported: Any, place: Place, name: str
) -> None:
    path, *_ = await exported(name)
    assert not [secret for secret in SECRETS if secret in path.read_bytes()]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    async with desk.open(place) as batch:
        await batch.export(path, accounts=True, overwrite=True)
    assert [secret for secret in SECRETS if secret in path.read_bytes()] == [*SECRETS]


async def test_json_lines_hold_exact_text_and_nested_parts(exported: Any) -> None:
    path, rows, _ = await exported("out.jsonl", accounts=True)
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(each["number"], each["amount"], each["reference"]) for each in found] == [
        (row.number, str(row.amount), row.reference) for row in rows
    ]
    assert found[1]["instrument"]["account_number"] == "0123456789"
    assert found[2]["metadata"] == {"cost": "'quoted", "nested": {"a": [1, None]}}
    assert (found[0]["outcome"], found[0]["line"], found[0]["customer"]) == ("not_final", None, {})


async def test_only_rows_of_the_asked_outcomes(
    desk: Desk, exported: Any, service: Sandbox, place: Place, tmp_path: Path
) -> None:
    service.on("payouts.create", description="row 3").respond("http:422")
    *_, report = await exported("out.csv", states=["rejected"])
    assert (report.rows, report.totals) == (1, {"GHS": Decimal("3.01")})
    async with desk.open(place) as batch:
        for name in ("none.csv", "none.jsonl"):
            none = await batch.export(tmp_path / name, states={Outcome.CONFLICT})
            assert (none.rows, none.totals) == (0, {})
        assert cells(tmp_path / "none.csv") == []
        assert (tmp_path / "none.jsonl").read_text() == ""
        with pytest.raises(ValueError, match="NONSENSE"):
            await batch.export(tmp_path / "other.csv", states=["NONSENSE"])


@EITHER
async def test_many_pages_and_many_metadata_names(
    batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_async.bulk._export.export._PAGE", 2)
    monkeypatch.setattr("payments_async.bulk._export.export._MOST_NAMES", 3)
    await batch.load([item(n, metadata={f"name {n}": "x"}) for n in range(1, 5)] + [item(5)])
    for name in ("out.csv", "out.jsonl"):
        assert (await batch.export(tmp_path / name)).rows == 5
    found = cells(tmp_path / "out.csv")
    assert [row["metadata"] for row in found] == [*(f'{{"name {n}":"x"}}' for n in range(1, 5)), ""]
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2, 3, 4, 5]


async def test_nothing_of_the_batchs_own_is_overwritten(desk: Desk, client: Any, tmp_path: Path) -> None:
    source = csv_file(tmp_path, PHONE)
    ledger = tmp_path / "june.csv.ledger"
    (tmp_path / "link.jsonl").symlink_to(ledger)
    for name in ("other.csv", "june.csv"):
        (tmp_path / name).write_text("an older one")
    refused = {
        "link.jsonl": "the ledger's own",
        "june.csv.ledger-journal": "the ledger's own|an export is",
        source.name: "the batch's input",
        "june.csv": "the batch's input",
        "out.txt": r"an export is \.csv",
        "out": r"an export is \.csv",
        "out.parquet": r"an export is \.csv",
    }
    async with desk.open(ledger, client) as batch:
        await batch.load(source)
        for name, told in refused.items():
            with pytest.raises(BulkError, match=told):
                await batch.export(tmp_path / name, overwrite=True)
        with pytest.raises(BulkError, match=r"exists already.*--overwrite \(overwrite=True\)"):
            await batch.export(tmp_path / "other.csv")
        assert (tmp_path / "other.csv").read_text() == "an older one"
        await batch.export(tmp_path / "other.csv", overwrite=True)
        assert cells(tmp_path / "other.csv")[0]["number"] == "1"


async def test_a_broken_export_leaves_what_was_there(
    batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("no room")

    name = "out.csv"
    await batch.load(items(2))
    await batch.export(tmp_path / name)
    before, seen = (tmp_path / name).read_bytes(), sorted(os.listdir(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr("payments_async.bulk._export.formats.CsvFormat.write", broken)
        with pytest.raises(OSError, match="no room"):
            await batch.export(tmp_path / name, overwrite=True)
    assert (tmp_path / name).read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == seen
    with pytest.raises(OSError, match="nowhere"):
        await batch.export(tmp_path / "nowhere" / name)


async def test_json_shows_control_characters_as_escapes(exported: Any) -> None:
    path, *_ = await exported("out.jsonl", [item(1, metadata={"a": "b\u0085\u202ec"})])
    assert r'"metadata":{"a":"b\u0085\u202ec"}' in path.read_text()
    assert json.loads(path.read_text())["metadata"] == {"a": "b\u0085\u202ec"}


@EITHER
async def test_an_export_has_what_the_service_said_of_the_payout_and_when(
    service: Sandbox, batch: Any, tmp_path: Path
) -> None:
    rounded = Decimal("2.0099999999999999999999")  # equal only as a double
    await run_rows(batch, 2, wait_final=60.0)
    service.advance(86_400.0)
    service._core.world.tenants[service.api_key].payouts_by_id[
        next(entry.id for entry in service.books.payouts() if entry.amount == Decimal("2.01"))
    ].amount = rounded
    await batch.reconcile()
    await batch.export(tmp_path / "out.jsonl")
    one, two = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert [(row["amount"], row["payout_amount"], row["payout_currency"]) for row in (one, two)] == [
        ("1.01", "1.01", "XCD"),
        ("2.01", str(rounded), "XCD"),
    ]
    assert {row["ended_at"] for row in (one, two)} == {"2026-01-01T00:00:05Z"}, "the service's time"
    assert one["read_at"] > one["ended_at"], "when the list was read"
    shown = await batch.row(1)
    assert datetime.fromisoformat(one["read_at"]).timestamp() == int(shown.statuses[-1].at)
    assert shown.decided_at < shown.statuses[-1].service_at, "when it was created"
