"""Parquet: typed columns, none of them guessed."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from payments_async import Instrument
from payments_async.bulk.errors import SourceErrors, SourceUnreadable
from payments_async.bulk.sources import RejectsFile, open_source
from tests.support.payout_files import PHONE, bytes_file, csv_file, read, split

FLAT: dict[str, list[Any]] = {name: [cell] for name, cell in PHONE.items()}
MAP = pyarrow.map_(pyarrow.string(), pyarrow.string())


def parquet_file(folder: Path, columns: dict[str, Any]) -> Path:
    """A Parquet file with these columns."""
    path = folder / "payouts.parquet"
    table = pyarrow.table(list(columns.values()), names=list(columns))
    pyarrow.parquet.write_table(table, path)
    return path


def test_dotted_columns_are_read_as_those_of_a_csv_file(tmp_path: Path) -> None:
    source = open_source(parquet_file(tmp_path, FLAT))
    same = open_source(csv_file(tmp_path, PHONE))
    ((row,), faults), ((other,), _) = split(source), split(same)
    assert faults == []
    assert (row.number, row.line, row.row_key) == (1, None, "1")
    assert row.request == other.request
    assert source.fingerprint() == same.fingerprint()


def test_structs_maps_and_decimals_are_taken(tmp_path: Path) -> None:
    phone = {"phone_number": "+2290190000000", "country": "BJ", "account_name": None}
    columns = {
        "amount": pyarrow.array([Decimal("50.10")], pyarrow.decimal128(20, 2)),
        "currency": pyarrow.array(["XCD"]).dictionary_encode(),
        "method": ["mtn_bj"],
        "instrument": [phone],
        "metadata": pyarrow.array([[("team", "north"), ("", None)]], MAP),
        "description": pyarrow.array([None], pyarrow.string()),
    }
    ((row,), faults) = read(parquet_file(tmp_path, columns))
    assert faults == []
    assert row.request.amount == Decimal("50.10")
    assert row.request.instrument == Instrument.phone("+2290190000000", "BJ")
    assert row.request.metadata == {"team": "north"}
    assert row.request.description is None


def test_a_map_that_gives_one_name_twice_is_refused(tmp_path: Path) -> None:
    columns = {**FLAT, "metadata": pyarrow.array([[("a", "1"), ("a", "2")]], MAP)}
    _, (fault,) = read(parquet_file(tmp_path, columns))
    assert str(fault) == "row 1, metadata: gives one name twice"


def test_the_schema_is_checked_like_a_header(tmp_path: Path) -> None:
    columns = {**FLAT, "customer": [{"mail": "a@b.example"}], "colour": ["red"]}
    del columns["method"]
    with pytest.raises(SourceErrors) as caught:
        read(parquet_file(tmp_path, columns))
    assert [fault.column for fault in caught.value.faults] == ["customer.mail", "colour", "method"]
    assert caught.value.faults[2].reason == "is missing"


@pytest.mark.parametrize("content", [b"", b"PAR1 but not really PAR1", b"amount,currency\n"])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(SourceUnreadable, match="is not a Parquet file that can be read"):
        read(bytes_file(tmp_path, content, "payouts.parquet"))


def test_rejects_show_the_row(tmp_path: Path) -> None:
    source = open_source(parquet_file(tmp_path, {**FLAT, "currency": ["xof"]}))
    rejects = RejectsFile(tmp_path / "rejects.csv", source)
    with rejects.written():
        for fault in split(source)[1]:
            rejects.add(fault)
    text = (tmp_path / "rejects.csv").read_text().splitlines()
    assert text[1].endswith("50.10,xof,mtn_bj,'+2290190000000,BJ")
    assert text[1].startswith("1,currency,")


def test_no_mapping_is_advised_where_none_is_read(tmp_path: Path) -> None:
    with pytest.raises(SourceErrors, match=r"among them amount, currency, method, and names colour$"):
        read(parquet_file(tmp_path, {"colour": ["red"]}))
