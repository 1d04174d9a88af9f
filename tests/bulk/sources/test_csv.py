"""CSV: text stays text, amounts are exact, and every odd cell is named by line and column."""

from __future__ import annotations

import csv
import tracemalloc
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from payments_async import CustomerInput, Instrument, PayoutRequest
from payments_async.bulk.errors import BulkError, SourceUnreadable
from payments_async.bulk.sources import Row, open_source
from tests.support.payout_files import PHONE, bytes_file, csv_file, read, reported

HEADER = b"amount,currency,method,description,instrument.phone_number,instrument.country\n"


def test_a_row_becomes_the_request_it_says(tmp_path: Path) -> None:
    full = {
        **PHONE,
        "row_key": "ama/june",
        "reference": "inv-7",
        "description": "salary, June",
        "webhook_url": "https://shop.example/hook",
        "instrument.account_name": "Ama",
        "customer.email": "ama@shop.example",
        "metadata.team": "north",
        "gateway_options": '{"acme": {"rate": 1.10}}',
    }
    ((row,), faults) = read(csv_file(tmp_path, full))
    assert faults == []
    assert row == Row(
        number=1,
        line=2,
        row_key="ama/june",
        reference="inv-7",
        request=PayoutRequest(
            amount=Decimal("50.10"),
            currency="XCD",
            method="mtn_bj",
            instrument=Instrument.phone("+2290190000000", "BJ", account_name="Ama"),
            reference="inv-7",
            description="salary, June",
            customer=CustomerInput(email="ama@shop.example"),
            webhook_url="https://shop.example/hook",
            metadata={"team": "north"},
            gateway_options={"acme": {"rate": Decimal("1.10")}},
        ),
    )


KEYED, UNKEYED = {"row_key": "a", **PHONE}, {**PHONE, "row_key": ""}
NOT_UTF8 = "is in another encoding than UTF-8: save it as UTF-8 (CSV UTF-8)"
BAD: list[tuple[list[dict[str, str]], list[tuple[int, str, str]]]] = [
    ([KEYED, UNKEYED], [(3, "row_key", "is missing here, other rows have one")]),
    (
        [{**KEYED, "row_key": "k" * 191}, {**KEYED, "row_key": "k" * 192}],
        [(3, "row_key", "has 192 characters, at most 191 are allowed")],
    ),
    (
        [
            {**PHONE, "amount": "1,000", "currency": "xof", "description": "d" * 501},
            {**PHONE, "amount": "", "method": "", "description": ""},
        ],
        [
            (
                2,
                "amount",
                "is '1,000', which is no decimal number: write a point before decimals, and nothing else",
            ),
            (2, "currency", "must be three uppercase letters (ISO 4217): write it in capitals"),
            (2, "description", "has 501 characters, at most 500 are allowed"),
            (3, "amount", "is required"),
            (3, "method", "is required"),
        ],
    ),
    (
        [{**PHONE, "description": "Andr\udce9"}, {**PHONE, "description": "André 😀"}],
        [(2, "description", NOT_UTF8)],
    ),
    (
        [{**PHONE, "description": "a\0b"}, {**PHONE, "description": "a \\u0000 b"}],
        [(2, "description", "holds a NUL character")],
    ),
    *(
        ([{**PHONE, "gateway_options": text}], [(2, "gateway_options", reason)])
        for text, reason in (
            ('{"a": }', "is not JSON: look at character 7"),
            ('{"a": NaN}', "holds NaN, which is not JSON"),
            ('{"a": 1, "a": 2}', "gives a twice"),
            ('{"a": {"22990000000": 1, "22990000000": 2}}', "gives a name of 11 characters twice"),
            ('{"a": 1e9999999999999999999999}', "holds a number that cannot be read"),
            ("[" * 100_000, "is nested too deep"),
            ("[1]", "must be a mapping, not list"),
        )
    ),
]


@pytest.mark.parametrize(("rows", "faults"), BAD, ids=[each[1][0][2] for each in BAD])
def test_every_fault_is_named_by_line_and_column_and_spares_other_rows(
    tmp_path: Path, rows: list[dict[str, str]], faults: list[tuple[int, str, str]]
) -> None:
    good, found = read(csv_file(tmp_path, *rows))
    assert reported(found) == faults
    assert {row.line for row in good} == set(range(2, 2 + len(rows))) - {line for line, *_ in faults}


@pytest.mark.parametrize(
    ("beyond", "widths"),  # what stands beyond the header's columns, of the header and each row
    [
        (["", "", ",,", ",x"], {3: 8, 4: 7}),
        ([",,", "", ",,", ",", ",,x"], {4: 7, 5: 8}),
        (["", ",x"], {2: 7}),
    ],
)
def test_rows_of_another_width_than_the_header_are_faults(
    tmp_path: Path, beyond: list[str], widths: dict[int, int]
) -> None:
    rest = ["50,XCD,mtn_bj,June,+2290190000000,BJ"] * (len(beyond) - 1)
    lines = [line + end for line, end in zip([HEADER.decode().strip(), *rest], beyond, strict=True)]
    rows, faults = read(bytes_file(tmp_path, "\n".join([*lines, ""]).encode()))
    said = [(line, None, f"has {width} cells, the header names 6 columns") for line, width in widths.items()]
    assert reported(faults) == said
    assert {row.line for row in rows} == {*range(2, len(lines) + 1)} - widths.keys()
    assert all(len(fault.original) == width for fault, width in zip(faults, widths.values(), strict=True))


@pytest.mark.parametrize("end", [b"\n", b"\r"])
def test_empty_cells_at_the_end_may_be_left_out_but_not_where_a_file_ends(tmp_path: Path, end: bytes) -> None:
    header = b"amount,currency,method,instrument.phone_number,instrument.country,description,metadata.a\n"
    row = b"50,XCD,mtn_bj,+2290190000000,BJ"
    text = header + row + b",June,x\n" + row + b"\n" + row
    rows, faults = read(bytes_file(tmp_path, text.replace(b"\n", end)))
    assert [(row.line, row.request.description) for row in rows] == [(2, "June"), (3, None)]
    assert reported(faults) == [(4, None, "has 5 cells, the header names 7 columns")]


@pytest.mark.parametrize(
    ("cells", "hint"),
    [
        ("10,50,XCD,mtn_bj,June,+2290190000000,BJ", "; a decimal comma? write 10.50"),
        ("10,500,XCD,mtn_bj,June,+2290190000000,BJ", ""),
    ],
)
def test_a_comma_that_makes_two_cells_of_an_amount_is_told(tmp_path: Path, cells: str, hint: str) -> None:
    _, faults = read(bytes_file(tmp_path, HEADER + cells.encode() + b"\n"))
    ((_, _, reason),) = reported(faults)
    assert reason.endswith(f"the header names 6 columns{hint}")


def test_no_reason_shows_account_data(tmp_path: Path) -> None:
    secret = "BJ-0099887766"
    bad = {
        **PHONE,
        "amount": secret,
        "currency": secret,
        "instrument.country": secret,
        "customer.country": secret,
        "gateway_options": f'{{"acme": {secret}}}',
    }
    _, faults = read(csv_file(tmp_path, bad))
    assert len(faults) == 5
    assert not any(secret in shown for fault in faults for shown in (fault.reason, str(fault), repr(fault)))


@pytest.mark.parametrize(
    "rest",
    [
        b'50,XCD,mtn_bj,";;;;;;;;;;;;;;;;"x,+1,BJ\n',
        b'50,XCD,mtn_bj,"June,+1,BJ\n',
        b"50,XCD,mtn_bj," + b"x" * 140_000 + b",+1,BJ\n",
    ],
    ids=["text after a quotation mark", "no second quotation mark", "field too long"],
)
def test_reading_ends_where_rows_cannot_be_told_apart(tmp_path: Path, rest: bytes) -> None:
    source = open_source(bytes_file(tmp_path, HEADER + b"50,XCD,mtn_bj,June,+2290190000000,BJ\n" + rest))
    items = source.read()
    assert isinstance(next(items), Row)
    with pytest.raises(SourceUnreadable, match="line 3: the row that begins here breaks the rules") as caught:
        next(items)
    assert caught.value.line == 3
    with pytest.raises(ValueError, match="read to the end"):
        source.fingerprint()


def test_a_header_that_breaks_the_rules_may_have_another_delimiter(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="is the delimiter ';'"):
        list(open_source(bytes_file(tmp_path, b'amount;"a,"b";currency;method\n')).read())


@pytest.mark.parametrize(
    "line", [b"x" * 1_100_000, b'50,"' + b"some text\n" * 110_000], ids=["line", "lines"]
)
def test_a_row_without_end_is_given_up(tmp_path: Path, line: bytes) -> None:
    path = bytes_file(tmp_path, HEADER + line)
    limit = csv.field_size_limit(10_000_000)
    try:
        with pytest.raises(SourceUnreadable, match="line 2: the row that begins here has more than 1048576"):
            list(open_source(path).read())
    finally:
        csv.field_size_limit(limit)


@pytest.mark.parametrize(
    ("cell", "hint"),
    [
        ("10,50", "a decimal comma? write 10.50"),
        ("1 000.50", "spaces between thousands? write 1000.50"),
        ("1\u202f500", "spaces between thousands? write 1500"),
        ("1'500", "apostrophes between thousands? write 1500"),
        ("1,000.50", "commas between thousands? write 1000.50"),
        ("1.000,50", "points between thousands? write 1000.50"),
        ("1.500.000", "points between thousands? write 1500000"),
        ("GHS 10.50", "a currency? write 10.50"),
        ("10.50XOF", "a currency? write 10.50"),
        ("10,500", "write a point before decimals, and nothing else"),
        (" 50", "write it without the space beside it"),
        *((text, "a negative amount? nothing below 1 can be paid") for text in ("−500", "500-", "(500)")),
    ],
)
def test_an_amount_in_another_form_is_shown_with_a_guess(tmp_path: Path, cell: str, hint: str) -> None:
    _, faults = read(csv_file(tmp_path, {**PHONE, "amount": cell}))
    shown = " ".join(cell.split())
    assert reported(faults) == [(2, "amount", f"is '{shown}', which is no decimal number: {hint}")]


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        (
            "1 500 000",
            "is no decimal number: if spaces stand between thousands, write digits and nothing else",
        ),
        ("+229 90 00 00 01", "begins with a sign"),
        ("990 112 2334", "is text that is not a decimal number"),
        ("150.000", "is '150.000', and XCD has 2 decimals: 150000, or 150? write one of them"),
        ("1.505", "is '1.505', and XCD has 2 decimals: is it 1505?"),
        ("1.5051", "has more decimals than XCD, which has 2"),
    ],
)
def test_an_amount_that_may_be_an_account_is_not_shown_and_decimals_are_looked_at(
    tmp_path: Path, cell: str, fault: str
) -> None:
    _, faults = read(csv_file(tmp_path, {**PHONE, "amount": cell}))
    assert reported(faults) == [(2, "amount", fault)]


@pytest.mark.parametrize("start", [b"PK\x03\x04\x14", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_workbook_under_another_name_is_said_to_be_one(tmp_path: Path, name: str, start: bytes) -> None:
    path = bytes_file(tmp_path, start + bytes(range(256)), name)
    with pytest.raises(
        SourceUnreadable, match=r"is a .*workbook.*save it as Excel Workbook \(\.xlsx\), or as CSV in UTF-8"
    ):
        list(open_source(path).read())


def test_rows_come_one_by_one_in_bounded_memory(tmp_path: Path) -> None:
    lines = (b"%d,XCD,mtn_bj,June,+2290190000000,BJ\n" % number for number in range(1, 3_001))
    source = open_source(bytes_file(tmp_path, b"".join([HEADER, *lines])))
    assert isinstance(next(source.read()), Row)  # what is made once is there
    tracemalloc.start()
    try:
        assert sum(1 for _ in source.read()) == 3_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


EXACT = ("amount", "row_key", "reference", "instrument.phone_number", "instrument.account_number")
ROUNDED = ("2.2990E+10", "2,299E+10", "+1E+05", " .1E+06 ", " 2,5E07")


@pytest.mark.parametrize(
    ("column", "cell"), [(column, "2.2990E+10") for column in EXACT] + [("amount", cell) for cell in ROUNDED]
)
def test_a_number_that_a_spreadsheet_rounded_is_a_fault(tmp_path: Path, column: str, cell: str) -> None:
    account = {"amount": "5", "currency": "NGN", "method": "bank", "instrument.type": "bank_account"}
    cells = PHONE if column != "instrument.account_number" else account
    rows, faults = read(csv_file(tmp_path, {**cells, column: cell}))
    assert rows == []
    ((line, name, reason),) = reported(faults)
    assert (line, name) == (2, column)
    assert "a spreadsheet took it for a number" in reason
    assert "go back to the original data, and keep it as text" in reason
    assert cell not in reason


def test_an_account_with_an_e_in_it_is_no_rounded_number(tmp_path: Path) -> None:
    rows, faults = read(csv_file(tmp_path, {"row_key": "12E5", "reference": "E+7", **PHONE}))
    assert faults == []
    assert [(row.row_key, row.reference) for row in rows] == [("12E5", "E+7")]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(content=st.binary(max_size=400), suffix=st.sampled_from([".csv", ".jsonl"]))
def test_no_bytes_make_a_reader_fail_in_another_way(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"payouts{suffix}"
    path.write_bytes(b"amount,currency,method,instrument.type\n" + content)
    with suppress(BulkError):  # anything else fails the test
        rows, faults = read(path)
        assert all(row.amount >= Decimal(1) for row in rows)
        assert all(fault.reason for fault in faults)
