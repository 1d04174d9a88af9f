"""Whatever rows are written, the same rows are read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from payments_async import CustomerInput, Instrument, PayoutRequest
from payments_async._validation import rules
from payments_async._validation.texts import Destination, PersonName
from payments_async.bulk.errors import BulkError
from payments_async.bulk.sources import CsvSource, JsonLinesSource, Row
from tests.support.payout_files import split

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
SOME = TEXTS.filter(bool)
NAMES = st.text(st.characters(categories=["L", "Nd", "P", "Zs"]), min_size=1, max_size=40).filter(
    lambda text: PersonName()(text) is None
)
PLACES = st.from_regex(r"[0-9A-Za-z]{1,9}(?: [0-9A-Za-z.:/#]{1,9}){0,3}", fullmatch=True).filter(
    lambda text: Destination()(text) is None
)
PHONES = st.from_regex(r"\+?[0-9]{5,15}", fullmatch=True)
REFERENCES = TEXTS.filter(lambda text: text and rules.reference(text) is None)
AMOUNTS = st.decimals(min_value=1, max_value=10**12, places=2)
INSTRUMENTS = st.one_of(
    st.builds(Instrument.phone, PHONES, st.just("BJ"), account_name=st.none() | NAMES),
    st.builds(
        Instrument.bank_account,
        PLACES,
        PLACES,
        st.just("NG"),
        account_name=NAMES,
        swift_bic=st.none() | PLACES,
    ),
    st.builds(Instrument.crypto_address, PLACES, PLACES, memo_tag=st.none() | PLACES),
)
REQUESTS = st.builds(
    PayoutRequest,
    amount=AMOUNTS,
    currency=st.sampled_from(["XCD", "NGN"]),
    method=PLACES,
    instrument=INSTRUMENTS,
    reference=st.none() | REFERENCES,
    description=st.none() | SOME,
    customer=st.none() | st.builds(CustomerInput, email=PLACES, city=st.none() | SOME),
    metadata=st.none() | st.dictionaries(SOME, SOME, min_size=1, max_size=3),
    gateway_options=st.none() | st.dictionaries(TEXTS, st.integers(-(10**18), 10**18) | AMOUNTS, max_size=2),
)
ONE_FILE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)


def cells_of(request: PayoutRequest) -> dict[str, str]:
    """A request as an operator would write it."""
    cells = {name: getattr(request, name) for name in ("currency", "method", "reference", "description")}
    cells["amount"] = str(request.amount)
    for part in ("instrument", "customer"):
        value = getattr(request, part)
        cells |= (
            {f"{part}.{name}": getattr(value, name) for name in value.__slots__ if name != "__weakref__"}
            if value
            else {}
        )
    cells |= {f"metadata.{name}": value for name, value in (request.metadata or {}).items()}
    if request.gateway_options is not None:
        pairs = (f"{json.dumps(name)}: {value}" for name, value in request.gateway_options.items())
        cells["gateway_options"] = "{" + ", ".join(pairs) + "}"
    return {name: cell for name, cell in cells.items() if cell is not None}


def as_csv(rows: Sequence[Mapping[str, str]], columns: Sequence[str], end: str = "\r\n") -> bytes:
    """Rows as the standard library writes them."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="", lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def columns_of(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Every column that some row has."""
    return list(dict.fromkeys(name for row in rows for name in row))


def requests_in(source: Any) -> list[PayoutRequest]:
    """The requests of a clean file."""
    rows, faults = split(source)
    assert faults == []
    return [row.request for row in rows if isinstance(row, Row)]


@ONE_FILE
@given(requests=st.lists(REQUESTS, min_size=1, max_size=4), typed=st.booleans())
def test_rows_written_as_csv_are_read_back(
    tmp_path: Path, requests: list[PayoutRequest], typed: bool
) -> None:
    rows = [cells_of(request) for request in requests]
    if not typed:
        rows = [{name: cell for name, cell in row.items() if name != "instrument.type"} for row in rows]
    path = tmp_path / "payouts.csv"
    path.write_bytes(as_csv(rows, columns_of(rows)))
    read = requests_in(CsvSource(path))
    assert read == requests
    assert [str(one.amount) for one in read] == [str(one.amount) for one in requests]


@ONE_FILE
@given(requests=st.lists(REQUESTS, min_size=1, max_size=4))
def test_rows_written_as_json_lines_are_read_back(tmp_path: Path, requests: list[PayoutRequest]) -> None:
    path = tmp_path / "payouts.jsonl"
    path.write_text("".join(json.dumps(cells_of(request)) + "\n" for request in requests))
    assert requests_in(JsonLinesSource(path)) == requests


@ONE_FILE
@given(content=st.binary(max_size=400), kind=st.sampled_from([CsvSource, JsonLinesSource]))
def test_no_bytes_make_a_reader_fail_in_another_way(tmp_path: Path, content: bytes, kind: Any) -> None:
    path = tmp_path / "payouts"
    path.write_bytes(b"amount,currency,method,instrument.type\n" + content)
    with suppress(BulkError):  # anything else fails the test
        rows, faults = split(kind(path))
        assert all(
            row.request.amount >= Decimal(1) for row in rows if isinstance(row.request.amount, Decimal)
        )
        assert all(fault.reason for fault in faults)
