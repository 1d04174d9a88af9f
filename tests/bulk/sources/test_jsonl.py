"""JSON Lines: nested or dotted, numbers exact, nothing said twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from payments_async import CustomerInput, Instrument
from payments_async.bulk.errors import SourceUnreadable
from payments_async.bulk.sources import open_source
from tests.support.payout_files import PHONE, bytes_file, jsonl_file, read, reported

NESTED: dict[str, Any] = {
    "amount": "50.10",
    "currency": "XCD",
    "method": "mtn_bj",
    "instrument": {"phone_number": "+2290190000000", "country": "BJ"},
}


def test_nested_and_dotted_names_say_the_same(tmp_path: Path) -> None:
    more = {"customer": {"email": "a@b.example", "city": None}, "metadata": {"a": "1"}}
    dotted = {"customer.email": "a@b.example", "customer.city": None, "metadata.a": "1"}
    empty = {"instrument": {**NESTED["instrument"], "bank_code": None, "network": ""}}
    (nested, flat), faults = read(jsonl_file(tmp_path, {**NESTED, **more, **empty}, {**PHONE, **dotted}))
    assert faults == []
    assert nested.request == flat.request
    assert nested.request.instrument == Instrument.phone("+2290190000000", "BJ")
    assert nested.request.customer == CustomerInput(email="a@b.example")


NUMBER = "is a number: write it as text"


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("instrument.phone_number", 22990000000, NUMBER),
        ("reference", 1.5, NUMBER),
        ("customer.zip", 10**30, NUMBER),
        ("row_key", 1, NUMBER),
        ("amount", True, "must be a Decimal, an int or decimal text, not bool"),
        ("method", ["mtn_bj"], "must be text, not list"),
        ("row_key", ["k"], "must be text, not list"),
        ("instrument.country", True, "must be a two-letter country code, not bool"),
        ("customer", "Ama", "must be an object"),
        ("instrument", {"type": 1, "network": "x"}, NUMBER),
        ("gateway_options", ["x"], "must be a mapping, not list"),
        ("gateway_options", 1, NUMBER),
        ("row_key", "\ud800", "holds a lone surrogate, which is not text"),
        ("description", "\ud800", "holds a lone surrogate, which is not text"),
        ("row_key", "\0", "holds a NUL character"),
        ("referense", "r", "is not a column of a payout file; did you mean reference?"),
        ("customer", {"mail": "x"}, "is not a column of a payout file; did you mean customer.email?"),
    ],
)
def test_a_value_of_another_kind_is_refused(tmp_path: Path, column: str, value: object, reason: str) -> None:
    _, faults = read(jsonl_file(tmp_path, {**PHONE, column: value}))
    assert (column.split(".")[0], reason) in [((f.column or "").split(".")[0], f.reason) for f in faults]


def test_metadata_is_passed_on_as_it_is(tmp_path: Path) -> None:
    metadata = {"n": 1, "none": None, "empty": "", "list": [1, {"a": "b"}], "yes": True}
    ((row,), faults) = read(jsonl_file(tmp_path, {**NESTED, "metadata": metadata}))
    assert faults == []
    assert row.request.metadata == metadata
    exact = json.dumps({**NESTED, "metadata": {"r": 9}}).replace("9}", "1.10}")
    ((row,), _) = read(jsonl_file(tmp_path, exact))
    assert repr(row.request.metadata) == "{'r': Decimal('1.10')}"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"amount": 5, "amount": 6}', "gives amount twice"),
        ('{"amount": 5', "is not JSON: look at character 13"),
        ("[1, 2]", "is not a JSON object"),
        ("50,XCD", "is not JSON: look at character 3"),
        ('{"a": -Infinity}', "holds -Infinity, which is not JSON"),
    ],
)
def test_a_line_that_is_no_row_is_a_fault_of_that_line(tmp_path: Path, line: str, reason: str) -> None:
    rows, faults = read(jsonl_file(tmp_path, NESTED, "", "  ", line, NESTED))
    assert [(row.number, row.line) for row in rows] == [(1, 1), (3, 5)]
    assert reported(faults) == [(4, None, reason)]
    assert faults[0].original == (line,)


def test_a_field_given_nested_and_dotted_is_refused(tmp_path: Path) -> None:
    twice = {**NESTED, "instrument.country": "TG"}
    _, faults = read(jsonl_file(tmp_path, twice))
    assert reported(faults) == [(1, "instrument.country", "is given twice, dotted and nested")]


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    line = b'{"amount": 5, "currency": "XCD", "method": "m\xe9", "instrument.type": "x", "\xe9\xe9": 1}\n'
    _, faults = read(bytes_file(tmp_path, b"\xef\xbb\xbf" + line, "payouts.ndjson"))
    assert reported(faults) == [
        (1, column, "is in another encoding than UTF-8: save it as UTF-8 (CSV UTF-8)")
        for column in ("method", "\\udce9\\udce9")
    ]


def test_a_line_without_end_is_given_up(tmp_path: Path) -> None:
    path = bytes_file(tmp_path, b'{"a": "' + b"x" * 1_100_000, "payouts.JSONL")
    with pytest.raises(SourceUnreadable, match="line 1: the row that begins here"):
        list(open_source(path).read())
