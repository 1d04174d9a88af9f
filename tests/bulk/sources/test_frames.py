"""Frames of pandas, polars, DuckDB and pyarrow, and Parquet files: the same as the CSV file of their rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

from payments_async import Instrument
from payments_async.bulk import PayoutBatch
from payments_async.bulk.errors import SourceErrors, SourceUnreadable
from payments_async.bulk.sources import Row, RowFault
from tests.support.desks import Desk
from tests.support.payout_files import PHONE, bytes_file, csv_file, read, source_of

ROWS: list[dict[str, str]] = [
    {**PHONE, "row_key": "ama", "description": "June, and more than twelve bytes"},
    {**PHONE, "row_key": "kofi", "amount": "7.00", "description": ""},
    {**PHONE, "row_key": "esi", "description": "June"},
]
COLUMNS: Mapping[str, list[Any]] = {
    name: [Decimal(row[name]) if name == "amount" else row[name] or None for row in ROWS] for name in ROWS[0]
}
"""The rows as a frame has them: decimals, and nulls for what is empty."""
ONE: Mapping[str, list[Any]] = {name: [cell] for name, cell in PHONE.items()}


def arrow(**kinds: Any) -> pyarrow.Table:
    """The rows as a table, whose columns may have other types."""
    table = pyarrow.table(dict(COLUMNS))
    fields = [field.with_type(kinds.get(field.name, field.type)) for field in table.schema]
    return table.cast(pyarrow.schema(fields))


def filtered() -> pandas.DataFrame:
    twice = pandas.concat([pandas.DataFrame(COLUMNS)] * 2, ignore_index=True)
    return twice[twice.index.isin([0, 4, 5])]


def duck() -> Any:
    connection = duckdb.connect()
    connection.register("payroll", arrow())
    return connection.sql("SELECT * FROM payroll")


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pandas.DataFrame(COLUMNS),
    "pandas, missing as NaN": lambda: pandas.DataFrame(COLUMNS, dtype=object).fillna(float("nan")),
    "pandas, categories": lambda: pandas.DataFrame(COLUMNS).astype({"currency": "category"}),
    "pandas, filtered": filtered,
    "pandas, index of keys": lambda: pandas.DataFrame(COLUMNS).set_index("row_key"),
    "polars": lambda: polars.DataFrame(COLUMNS),
    "polars, categories": lambda: polars.DataFrame(COLUMNS).cast({"currency": polars.Categorical}),
    "polars, a struct": lambda: polars.DataFrame(COLUMNS).select(
        polars.exclude("^instrument.*$"),
        instrument=polars.struct(
            phone_number=polars.col("instrument.phone_number"), country=polars.col("instrument.country")
        ),
    ),
    "DuckDB": duck,
    "pyarrow": arrow,
    "pyarrow, a batch": lambda: arrow().to_batches()[0],
    "pyarrow, large text": lambda: arrow(description=pyarrow.large_string()),
    "pyarrow, 38 digits": lambda: arrow(amount=pyarrow.decimal128(38, 2)),
    "pyarrow, 76 digits": lambda: arrow(amount=pyarrow.decimal256(76, 2)),
    "pyarrow, amounts as text": lambda: arrow(amount=pyarrow.string()),
}


async def frame_items(frame: Any) -> tuple[list[Row | RowFault], str]:
    source = source_of(frame)
    items = [item async for item in source.rows()]
    return items, source.fingerprint()


@pytest.mark.parametrize("kind", FRAMES)
async def test_a_frame_is_the_same_input_as_the_csv_file_of_its_rows(kind: str, tmp_path: Path) -> None:
    file = source_of(csv_file(tmp_path, *ROWS))
    rows = [item async for item in file.rows()]
    items, fingerprint = await frame_items(FRAMES[kind]())
    assert [(row.row_key, row.request) for row in items if isinstance(row, Row)] == [
        (row.row_key, row.request) for row in rows if isinstance(row, Row)
    ]
    assert len(items) == 3
    assert fingerprint == file.fingerprint()


@pytest.mark.parametrize("surface", ["async", "sync"])
@pytest.mark.parametrize("kind", ["pandas", "polars", "DuckDB", "pyarrow"])
async def test_a_frame_is_loaded_and_paid(kind: str, desk: Desk, client: Any, tmp_path: Path) -> None:
    async with desk.open(tmp_path / "l", client) as batch:
        preview = await batch.preview(FRAMES[kind]())
        report = await batch.load(FRAMES[kind](), rejects=tmp_path / "rejects.csv")
        assert (
            (report.rows, report.totals) == (3, {"XCD": Decimal("107.20")}) == (preview.rows, preview.totals)
        )
        assert not (await batch.load(csv_file(tmp_path, *ROWS))).is_new
        assert (await batch.run()).counts["created"] == 3


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        (
            pandas.DataFrame({**ONE, "instrument.phone_number": [22990000000]}),
            "row 1, instrument.phone_number: is a number: write it as text",
        ),
        (
            pandas.DataFrame({**ONE, "amount": [50.1]}).astype({"amount": "category"}),
            "row 1, amount: is a float, which is not exact: write",
        ),
        (
            pyarrow.table({**ONE, "amount": [Decimal("1" * 36 + ".01")]}),
            "row 1, amount: ",
        ),
        (
            polars.DataFrame({**ONE, "description": polars.Series([object()], dtype=polars.Object)}),
            "row 1, description: must be text",
        ),
        (pyarrow.table({**ONE, "description": [b"June"]}), "row 1, description: must be text"),
        (pandas.DataFrame({**ONE, "amount": ["1E+5"]}), "row 1, amount: is in scientific notation"),
    ],
)
async def test_a_row_at_fault_is_named_by_its_number(frame: Any, fault: str) -> None:
    (first, *_), _ = await frame_items(frame)
    assert isinstance(first, RowFault)
    assert str(first).startswith(fault)
    assert len(first.original) == len(frame.columns)


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        (pandas.DataFrame({**ONE, "amount": [50.1]}), "header, amount: is a floating-point column"),
        (polars.DataFrame({**ONE, "amount": [50.1]}), "header, amount: is a floating-point column"),
        (
            pandas.DataFrame({**ONE, "Reference": ["a"]}).set_index("Reference"),
            "write reference for Reference",
        ),
        (pyarrow.table([["a"], ["b"]], names=["amount", "amount"]), "amount: is there 2 times"),
    ],
)
async def test_the_schema_is_checked_like_a_header(frame: Any, fault: str) -> None:
    with pytest.raises(SourceErrors) as caught:
        await frame_items(frame)
    assert fault in str(caught.value)


FAILING = (
    "SELECT if(range = 9000, error('+229'), '50.10') amount, 'XCD' currency, 'mtn_bj' AS method, "
    "'+2290190000000' \"instrument.phone_number\", 'BJ' \"instrument.country\" FROM range(9001)"
)
"""A query that fails behind rows that are good."""


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (lambda: pandas.DataFrame({**ONE, "description": [object()]}), "ArrowInvalid"),
        (lambda: pandas.DataFrame({"method": ["+2290190000000", 1]}), "ArrowTypeError"),
        (lambda: pandas.DataFrame([["+2290190000000"] * 2], columns=["amount"] * 2), "ValueError"),
        (lambda: polars.Series(["+2290190000000"]), "ArrowInvalid"),
        (lambda: duckdb.connect().sql(FAILING), "OSError"),
    ],
)
async def test_what_cannot_be_read_as_arrow_data_to_its_end_is_refused_without_its_values(
    frame: Callable[[], Any], kind: str
) -> None:
    with pytest.raises(SourceUnreadable) as caught:
        await frame_items(frame())
    assert caught.value.reason == (
        f"cannot be read to its end as Arrow data ({kind}): give each column a name and one type"
    )
    assert caught.value.__cause__ is caught.value.__context__ is None


async def test_a_stream_that_is_read_once_is_refused_before_it_is_read() -> None:
    reader = arrow().to_reader()
    with pytest.raises(SourceUnreadable, match=r"gives its rows once.*reader\.read_all\(\)"):
        source_of(reader)
    assert source_of(reader.read_all()).stat() == {}


async def test_many_rows_are_made_in_parts(tmp_path: Path) -> None:
    many = {name: cells * 5_000 for name, cells in ONE.items()}
    items, fingerprint = await frame_items(pandas.DataFrame(many))
    assert (await frame_items(polars.DataFrame(many)))[1] == fingerprint
    assert [item.number for item in items] == [*range(1, 5_001)]


def test_the_index_in_a_parquet_file_of_pandas_is_left_out_too(tmp_path: Path) -> None:
    filtered().to_parquet(tmp_path / "june.parquet")
    rows, faults = read(tmp_path / "june.parquet")
    assert (len(rows), faults) == (3, [])


async def test_what_the_owner_of_a_frame_lacks_is_for_it_to_say() -> None:
    class Bare:
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            raise ImportError("needs a library")

    with pytest.raises(ImportError, match="needs a library"):
        await frame_items(Bare())


def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "payments_async.bulk.sources._arrow", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ImportError,
        match=r"^Parquet files and DataFrames need pyarrow: pip install",
    ):
        __import__("payments_async.bulk.sources._arrow")


# Files


MAP = pyarrow.map_(pyarrow.string(), pyarrow.string())


def parquet_file(folder: Path, columns: dict[str, Any]) -> Path:
    path = folder / "payouts.parquet"
    table = pyarrow.table(list(columns.values()), names=list(columns))
    pyarrow.parquet.write_table(table, path)
    return path


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
    columns = {**ONE, "metadata": pyarrow.array([[("a", "1"), ("a", "2")]], MAP)}
    _, (fault,) = read(parquet_file(tmp_path, columns))
    assert str(fault) == "row 1, metadata: gives one name twice"


def test_the_schema_of_a_file_is_checked_like_a_header(tmp_path: Path) -> None:
    columns: dict[str, Any] = {**ONE, "customer": [{"mail": "a@b.example"}], "colour": ["red"]}
    del columns["method"]
    with pytest.raises(SourceErrors) as caught:
        read(parquet_file(tmp_path, columns))
    assert [fault.column for fault in caught.value.faults] == ["customer.mail", "colour", "method"]
    assert caught.value.faults[2].reason == "is missing"


@pytest.mark.parametrize("content", [b"", b"PAR1 but not really PAR1", b"amount,currency\n"])
def test_what_is_no_parquet_file_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(SourceUnreadable, match="is not a Parquet file that can be read"):
        read(bytes_file(tmp_path, content, "payouts.parquet"))


async def test_a_file_is_read_and_its_rejects_are_written_as_of_a_csv_file(tmp_path: Path) -> None:
    file = parquet_file(tmp_path, COLUMNS)
    assert await frame_items(file) == await frame_items(pandas.DataFrame(COLUMNS))
    bad, rejects = parquet_file(tmp_path, {**ONE, "currency": ["xof"]}), tmp_path / "rejects.csv"
    with pytest.raises(SourceErrors):
        await PayoutBatch.open(tmp_path / "l").preview(bad, rejects=rejects)
    text = rejects.read_text().splitlines()
    assert text[1].endswith("50.10,xof,mtn_bj,'+2290190000000,BJ")
    assert text[1].startswith("1,currency,must be three uppercase letters")
