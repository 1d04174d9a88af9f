"""Headers: every fault of one is told by name, and never a cell taken for a name."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from payments_async.bulk.errors import SourceErrors
from payments_async.bulk.sources import _cells, _columns, open_source
from payments_async.sandbox.api.request_schemas import INSTRUMENT_TYPES
from tests.support.payout_files import PHONE, bytes_file, csv_file, read, told

NEEDED = ",".join(PHONE)


def header_faults(folder: Path, header: str) -> list[tuple[str | None, str]]:
    """What is said of a header."""
    source = open_source(bytes_file(folder, header.encode() + b"\n"))
    with pytest.raises(SourceErrors) as caught:
        list(source.read())
    assert caught.value.rows == 0
    assert {fault.line for fault in caught.value.faults} == {1}
    return [(fault.column, fault.reason) for fault in caught.value.faults]


def test_all_missing_columns_are_named_together(tmp_path: Path) -> None:
    assert header_faults(tmp_path, "reference") == [
        ("amount", "is missing"),
        ("currency", "is missing"),
        ("method", "is missing"),
        ("instrument", "is missing: name its columns, such as instrument.phone_number"),
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Reference", "reference"),
        (" method", "method"),
        ("web-hook url", "webhook_url"),
        ("phone_number", "instrument.phone_number"),
        ("phone", "instrument.phone_number"),
        ("instrument.contry", "instrument.country"),
        ("customer.mail", "customer.email"),
        ("metadata.", None),
        ("colour", None),
    ],
)
def test_an_unknown_column_is_refused_with_what_was_meant(
    tmp_path: Path, name: str, meant: str | None
) -> None:
    ((column, reason),) = header_faults(tmp_path, f"{NEEDED},{name}")
    assert column == name
    expected = "is not a column of a payout file" + (f"; did you mean {meant}?" if meant else "")
    assert reason == expected


def test_a_whole_part_is_not_a_column_of_a_csv_file(tmp_path: Path) -> None:
    ((column, reason),) = header_faults(tmp_path, f"{NEEDED},customer")
    assert column == "customer"
    assert "customer.email" in reason


def test_duplicate_and_nameless_columns_are_refused(tmp_path: Path) -> None:
    assert header_faults(tmp_path, f"{NEEDED},amount,,metadata.a,metadata.a") == [
        ("amount", "is there 2 times"),
        (None, "has a column without a name"),
        ("metadata.a", "is there 2 times"),
    ]
    assert header_faults(tmp_path, f"{NEEDED},,") == [(None, "has 2 columns without a name")]


@pytest.mark.parametrize("first", ["", "50,XOF,mtn_bj,+22990000000,BJ"])
def test_a_file_without_a_header_is_refused_without_showing_its_cells(tmp_path: Path, first: str) -> None:
    ((column, reason),) = header_faults(tmp_path, first)
    assert column is None
    assert reason == "is not a header: it must name the columns, among them amount, currency, method"


def test_a_name_that_may_be_data_is_told_by_its_length(tmp_path: Path) -> None:
    ((column, _),) = header_faults(tmp_path, f"{NEEDED},+22990000000")
    assert column == "a name of 12 characters"


def test_a_header_alone_is_a_file_without_rows(tmp_path: Path) -> None:
    assert read(bytes_file(tmp_path, NEEDED.encode())) == ([], [])


def test_the_types_that_are_inferred_are_those_of_the_interface() -> None:
    known = {name: frozenset(fields) for name, fields in INSTRUMENT_TYPES.items()}
    assert {name: one.required for name, one in _cells.TYPES.items()} == known


def test_no_fields_fit_two_types() -> None:
    for one, other in permutations(_cells.TYPES.values(), 2):
        assert one.required - other.allowed


BANK = {"account_name": "Ama", "account_number": "0012", "bank_code": "044", "country": "NG"}


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"phone_number": "+1", "country": "BJ"}, "phone"),
        ({"phone_number": "+1", "country": "BJ", "account_name": "Ama"}, "phone"),
        (BANK, "bank_account"),
        ({**BANK, "swift_bic": "ABCDEF12"}, "bank_account"),
        ({"address": "bc1", "network": "bitcoin", "memo_tag": "1"}, "crypto_address"),
    ],
)
def test_a_missing_type_is_the_one_that_fits(tmp_path: Path, fields: dict[str, str], kind: str) -> None:
    own = {"amount": "50", "currency": "XOF", "method": "m"}
    ((row,), faults) = read(
        csv_file(tmp_path, {**own, **{f"instrument.{name}": cell for name, cell in fields.items()}})
    )
    assert faults == []
    assert getattr(row.request.instrument, "type", None) == kind


@pytest.mark.parametrize(
    "fields",
    [
        {"country": "BJ"},
        {"phone_number": "+1", "country": "BJ", "account_number": "0012"},
        {"phone_number": "+1", "country": "BJ", **BANK},
    ],
    ids=["too few", "a foreign one", "two types"],
)
def test_a_type_that_cannot_be_told_must_be_given(tmp_path: Path, fields: dict[str, str]) -> None:
    own = {"amount": "50", "currency": "XOF", "method": "m"}
    cells = {**own, **{f"instrument.{name}": cell for name, cell in fields.items()}}
    _, faults = read(csv_file(tmp_path, cells))
    assert [fault.column for fault in faults] == ["instrument.type"]
    assert "phone: country, phone_number; bank_account: " in faults[0].reason
    ((row,), _) = read(csv_file(tmp_path, {**cells, "instrument.type": "some_other_type"}))
    assert getattr(row.request.instrument, "type", None) == "some_other_type"


def test_a_row_without_an_instrument_is_a_fault(tmp_path: Path) -> None:
    bare = {**PHONE, "instrument.phone_number": "", "instrument.country": ""}
    _, faults = read(csv_file(tmp_path, bare))
    assert told(faults) == [(2, "instrument", "is required")]


def test_every_field_of_a_payout_has_a_place() -> None:
    assert _columns.place("metadata.any name") == ("metadata", "any name")
    assert _columns.place("instrument") is None
    assert _columns.place("customer.zip") == ("customer", "zip")
