"""Rows from the caller's own code: checked like a file's, in the order they come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async import CustomerInput, Instrument, PayoutRequest
from payments_async.bulk.errors import SourceUnreadable
from payments_async.bulk.sources import Row, RowFault, Source, open_source
from tests.support.payout_files import PHONE, csv_file, source_of, split

REQUEST = PayoutRequest(
    amount=Decimal("50.10"),
    currency="XCD",
    method="mtn_bj",
    instrument=Instrument.phone("+2290190000000", "BJ"),
)


async def items_of(source: Source) -> list[Row | RowFault]:
    return [item async for item in source.rows()]


async def test_requests_and_pairs_become_rows() -> None:
    named = attrs.evolve(REQUEST, reference="inv-7")
    assert await items_of(source_of([REQUEST, named])) == [
        Row(1, None, "1", None, REQUEST),
        Row(2, None, "2", "inv-7", named),
    ]
    assert await items_of(source_of([("ama", REQUEST)])) == [Row(1, None, "ama", None, REQUEST)]


async def test_an_async_iterable_gives_the_same_as_a_list() -> None:
    async def cursor() -> AsyncIterator[PayoutRequest]:
        yield REQUEST

    awaited, listed = source_of(cursor()), source_of([REQUEST])
    assert await items_of(awaited) == await items_of(listed)
    assert awaited.fingerprint() == listed.fingerprint()
    assert awaited.stat() == {}


async def test_an_iterator_is_not_taken_for_an_empty_list_the_second_time() -> None:
    def once() -> Iterator[PayoutRequest]:
        yield REQUEST

    source = source_of(once())
    assert len(await items_of(source)) == 1
    with pytest.raises(SourceUnreadable, match="the given rows: were read before"):
        await items_of(source)
    again = source_of([REQUEST])
    assert await items_of(again) == await items_of(again)


async def test_faults_are_reported_as_those_of_files() -> None:
    odd: list[Any] = [
        attrs.evolve(REQUEST, currency="xof", amount=1.5),
        "a text",
        ("k", REQUEST, 3),
        attrs.evolve(REQUEST, instrument=Instrument(country="BJ")),
        (7, REQUEST),
    ]
    items = await items_of(source_of(odd))
    assert all(isinstance(item, RowFault) for item in items)
    assert [str(item).split(": ")[0] for item in items] == [
        "row 1, amount",
        "row 1, currency",
        "row 2",
        "row 3",
        "row 4, instrument.type",
        "row 5, row_key",
    ]
    assert "must be a PayoutRequest or (row_key, PayoutRequest), not str" in str(items[2])


async def test_a_missing_type_is_inferred_and_the_callers_request_left_alone() -> None:
    bare = attrs.evolve(REQUEST, instrument=Instrument(phone_number="+2290190000000", country="BJ"))
    (row,) = await items_of(source_of([bare]))
    assert isinstance(row, Row)
    assert row.request == REQUEST
    assert bare.instrument == Instrument(phone_number="+2290190000000", country="BJ")


async def test_mappings_are_passed_on_as_they_are() -> None:
    mapped = attrs.evolve(REQUEST, instrument={"anything": ["goes", 1]}, customer={"x": None})
    source = source_of([mapped])
    doubt = "instrument has the unknown field anything"
    assert await items_of(source) == [Row(1, None, "1", None, mapped, warnings=(doubt,))]


async def test_the_same_rows_have_the_fingerprint_of_their_file(tmp_path: Path) -> None:
    cells = {
        **PHONE,
        "instrument.type": "phone",
        "customer.city": "Cotonou",
        "metadata.a": "1",
        "row_key": "k",
    }
    file = open_source(csv_file(tmp_path, cells))
    ((row,), _) = split(file)
    request = attrs.evolve(REQUEST, customer=CustomerInput(city="Cotonou"), metadata={"a": "1"})
    assert row.request == request
    source = source_of([("k", request)])
    await items_of(source)
    assert source.fingerprint() == file.fingerprint()
