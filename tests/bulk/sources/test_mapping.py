"""Inputs with other column names: what a mapping may say, and that the rows are those under our names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from payments_async import AsyncPayments, ConfigurationError
from payments_async.bulk import LedgerOfAnotherInput, PayoutBatch
from payments_async.bulk.errors import SourceErrors, SourceUnreadable
from payments_async.bulk.sources import ColumnMapping, Row, open_source
from payments_async.sandbox import Sandbox

THEIRS = ["Staff no.", "Phone", "Salary", "Remarks"]
ROWS = [["s-1", "+233200000001", "120.50", "=1+1"], ["s-2", "+233200000002", "100", ""]]
OURS = """row_key,instrument.phone_number,amount,currency,method,instrument.country
s-1,+233200000001,120.50,GHS,mobile_money,GH
s-2,+233200000002,100,GHS,mobile_money,GH
"""
COLUMNS = {"Staff no.": "row_key", "Phone": "instrument.phone_number", "Salary": "amount", "Remarks": ""}
CONSTANTS = {"currency": "GHS", "method": "mobile_money", "instrument.country": "GH"}
MAPPING = ColumnMapping(columns=COLUMNS, constants=CONSTANTS)
FILE = """
[columns]
"Staff no." = "row_key"
"Remarks" = ""
[constants]
currency = "GHS"
method = "mobile_money"
"instrument.country" = "GH"
"""


def theirs(folder: Path, suffix: str = ".csv", rows: list[list[str]] = ROWS) -> Path:
    """Payouts under names of their own."""
    path = folder / f"theirs{suffix}"
    if suffix == ".csv":
        path.write_text("\n".join(",".join(row) for row in (THEIRS, *rows)) + "\n")
        return path
    book = openpyxl.Workbook()
    for row in (THEIRS, *rows):
        book.active.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_the_rows_are_those_under_our_names(tmp_path: Path, suffix: str) -> None:
    ours = tmp_path / "ours.csv"
    ours.write_text(OURS)
    plain, mapped = open_source(ours), open_source(theirs(tmp_path, suffix), mapping=MAPPING)
    same, rows = list(plain.read()), list(mapped.read())
    assert [row.request for row in rows if isinstance(row, Row)] == [
        row.request for row in same if isinstance(row, Row)
    ]
    assert mapped.fingerprint() == plain.fingerprint()
    assert mapped.columns == ("row_key", "instrument.phone_number", "amount", *CONSTANTS)


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize(
    ("columns", "column", "reason"),
    [
        ({"Phnoe": "description"}, "Phnoe", "is no column of the input; did you mean Phone?"),
        ({"Ratio": "description"}, "Ratio", "is mapped, and is no column of the input"),
    ],
)
def test_a_mapping_that_does_not_fit_the_file_is_refused(
    tmp_path: Path, suffix: str, columns: dict[str, str], column: str, reason: str
) -> None:
    mapping = ColumnMapping(columns={**COLUMNS, **columns}, constants=CONSTANTS)
    with pytest.raises(SourceErrors) as caught:
        list(open_source(theirs(tmp_path, suffix), mapping=mapping).read())
    (fault,) = caught.value.faults
    assert (fault.column, fault.reason.endswith(reason)) == (column, True)


def test_a_constant_that_is_a_column_too_and_an_unmapped_column_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "both.csv"
    path.write_text("amount,currency,Wallet,Phone\n1,GHS,x,+233200000001\n")
    mapping = ColumnMapping(columns={"Phone": "instrument.phone_number"}, constants=CONSTANTS)
    with pytest.raises(SourceErrors) as caught:
        list(open_source(path, mapping=mapping).read())
    assert [(fault.column, fault.reason) for fault in caught.value.faults] == [
        ("Wallet", "is not a column of a payout file"),
        ("currency", "is a column of the input and a constant of the mapping"),
    ]


@pytest.mark.parametrize(
    ("columns", "constants", "said"),
    [
        ({"A": "amout"}, {}, "A: amout is not a column of a payout file; did you mean amount?"),
        ({"A": "amount", "B": "amount"}, {}, "two columns are amount"),
        ({"A": "currency"}, {"currency": "GHS"}, "currency is a column and a constant"),
        ({}, {"amout": "10"}, "amout is not a column of a payout file; did you mean amount?"),
        ({}, {"reference": "r"}, "reference names one row, and cannot be the same in all"),
        ({}, {"currency": ""}, "currency needs a text that is not empty"),
        ({"currency": "GHS"}, {}, "file; a value that all rows share goes under [constants] in --map-file"),
        ({}, {"currency": "ghs"}, "constant currency: must be three uppercase letters"),
        ({}, {"amount": "12,5"}, "constant amount: is '12,5', which is no decimal number"),
    ],
)
def test_a_mapping_that_contradicts_itself_is_refused(columns: Any, constants: Any, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ColumnMapping(columns=columns, constants=constants)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[columns", "cannot be read as TOML"),
        ("[column]\n", "'column' is unknown; a mapping has [columns] and [constants]"),
        ('columns = "A"', "'columns' is a table: write [columns] above its lines"),
        ("[constants]\namount = 10.5", "amount needs a text: write it in quotation marks"),
        ("[constants]\ncustomer = {}", "customer needs a text"),
        ("a = " + "[\n" * 100_000, "cannot be read as TOML (maximum recursion depth"),
        ("[constants]\n" + "a" * 4_000 + " = 1", f"{'a' * 60}… needs a text"),
    ],
)
def test_a_file_that_is_no_mapping_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "salaries.toml"
    path.write_text(text)
    limit = sys.getrecursionlimit()  # which hypothesis raises and leaves so
    sys.setrecursionlimit(1_000)
    try:
        with pytest.raises(ConfigurationError) as caught:
            ColumnMapping.from_file(path)
    finally:
        sys.setrecursionlimit(limit)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)
    assert len(str(caught.value)) < len(str(path)) + 300
    with pytest.raises(ConfigurationError, match=r"missing\.toml: cannot be read \(No such file"):
        ColumnMapping.from_file(tmp_path / "missing.toml")


@pytest.mark.parametrize(
    "text",
    [
        '[columns]\n"Tel.No" = "amount"\n[constants]\n"instrument.country" = "GH"\n"metadata.a.b" = "1"',
        '[columns]\nTel.No = "amount"\n[constants]\ninstrument.country = "GH"\nmetadata.a.b = "1"',
        '[columns.Tel]\nNo = "amount"\n[constants]\ninstrument = {country = "GH"}\nmetadata."a.b" = "1"',
    ],
)
def test_a_dotted_name_is_the_same_with_and_without_quotation_marks(tmp_path: Path, text: str) -> None:
    path = tmp_path / "salaries.toml"
    path.write_text(text)
    found = ColumnMapping.from_file(path)
    assert found.columns == {"Tel.No": "amount"}
    assert found.constants == {"instrument.country": "GH", "metadata.a.b": "1"}


def test_options_add_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "salaries.toml"
    path.write_text(FILE + 'amount = "50"\n')
    found = ColumnMapping.from_options(["Phone=instrument.phone_number", "Remarks="], path)
    assert found.constants["amount"] == "50"
    assert found.columns["Phone"] == "instrument.phone_number"
    cases = {"Phone": "maps nothing", "=amount": "maps nothing", "Remarks=method": "mapped twice"}
    for text, said in cases.items():
        with pytest.raises(ConfigurationError, match=said):
            ColumnMapping.from_options([text], path)
    assert ColumnMapping.from_options(["="], None).columns == {"": ""}


def test_a_name_is_one_in_each_unicode_form_and_with_any_blanks(tmp_path: Path) -> None:
    path = tmp_path / "june.csv"
    path.write_text(OURS.replace("instrument.phone_number", '"Nume\u0301ro\nde\u00a0t\u00e9l. "'))
    for name in ("Num\u00e9ro de te\u0301l.", "Nume\u0301ro  de t\u00e9l."):
        mapping = ColumnMapping(columns={name: "instrument.phone_number"})
        assert all(isinstance(item, Row) for item in open_source(path, mapping=mapping).read())
        assert str(mapping) == "Num\u00e9ro de t\u00e9l. is instrument.phone_number"
    with pytest.raises(ConfigurationError, match="Nume\u0301ro is mapped twice"):
        ColumnMapping(columns={"Num\u00e9ro": "amount", "Nume\u0301ro": "method"})
    path.write_text(OURS.replace("amount", "metadata.e\u0301,metadata.\u00e9"))
    with pytest.raises(SourceErrors, match="\u00e9: is there 2 times"):
        list(open_source(path).read())


def test_a_mapping_shows_no_account_and_compares_by_what_it_says() -> None:
    secret = ColumnMapping(constants={"instrument.account_number": "00123456", "currency": "GHS"})
    assert repr(secret) == (
        "<ColumnMapping instrument.account_number is the same in all rows, currency = GHS>"
    )
    assert secret.digest != MAPPING.digest
    assert MAPPING.digest == ColumnMapping(columns=COLUMNS, constants=CONSTANTS).digest


def test_other_files_are_not_mapped(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="is no CSV file and no workbook: name its columns as ours"):
        open_source(tmp_path / "june.jsonl", mapping=MAPPING)
    with pytest.raises(SourceUnreadable, match="is no CSV file and no workbook"):
        open_source(tmp_path / "june.parquet", header_row=1)


async def test_another_mapping_of_the_same_file_is_read_again(sandbox: Sandbox, tmp_path: Path) -> None:
    path = theirs(tmp_path)
    async with (
        AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client,
        PayoutBatch.open(tmp_path / "june.ledger", client) as batch,
    ):
        assert (await batch.load(open_source(path, mapping=MAPPING))).is_new
        assert '"form":"' + MAPPING.digest in (await batch.facts()).binding.input_stat
        assert not (await batch.load(open_source(path, mapping=MAPPING))).is_new
        other = ColumnMapping(columns=COLUMNS, constants={**CONSTANTS, "description": "June"})
        report = await batch.preview(open_source(path, mapping=other))
        assert report.differing == 2
        with pytest.raises(LedgerOfAnotherInput):
            await batch.load(open_source(path, mapping=other))
