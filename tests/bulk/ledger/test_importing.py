"""Importing: all rows or none, exact sums, duplicates told together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from payments_async import __version__
from payments_async._runtime import SYSTEM
from payments_async.bulk._protocol.outcomes import Outcome
from payments_async.bulk._protocol.records import NewRow
from payments_async.bulk.ledger_errors import BatchExists, LedgerDuplicates, LedgerMissing, LedgerRefused
from tests.support.ledgers import BINDING, Clock, all_rows, counts, fresh, imported, new_row, new_rows
from tests.support.places import BOTH, Place, begun, looked_at, opened

pytestmark = BOTH


async def test_a_ledger_says_what_was_imported_and_still_does_when_opened_again(path: Place) -> None:
    rows = [
        new_row(1, amount=Decimal("10.10")),
        new_row(2, amount=Decimal("0.90")),
        new_row(3, currency="GHS"),
    ]
    async with await opened(path, create=True) as ledger:
        header = await imported(ledger, rows)
        assert header == ledger.header
    async with await opened(path, Clock("second")) as ledger:
        assert ledger.header == header
        assert ledger.totals == {
            (Outcome.NOT_STARTED, "XOF"): (2, Decimal("11.00")),
            (Outcome.NOT_STARTED, "GHS"): (1, Decimal("10.10")),
        }
    assert header.binding == BINDING
    assert header.rows == 3
    assert header.totals == {"XOF": Decimal("11.00"), "GHS": Decimal("10.10")}
    assert header.client_version == __version__
    by_clock = Clock().wall + 2 if isinstance(path, Path) else SYSTEM.now().timestamp()  # or the database's
    assert header.created_at == pytest.approx(by_clock, abs=0 if isinstance(path, Path) else 60)


async def test_every_field_of_a_row_comes_back_as_it_went_in(path: Place) -> None:
    given = [
        new_row(1, line=None, metadata=None),
        new_row(2, metadata='{"order": 1}', amount=Decimal("1E+2"), body=b"\x00\xff not text" * 1000),
        new_row(
            3, row_key="\u043a\u043b\u044e\u0447 \U0001f511", reference="r\xe9f\xe9rence", line=2**31 - 1
        ),
    ]
    async with await opened(path, create=True) as ledger:
        await imported(ledger, given)
        assert await all_rows(ledger) == [fresh(row, 1) for row in given]
        assert [row.number for row in await ledger.by_references(["r\xe9f\xe9rence", "nobody's"])] == [3]


async def test_sums_of_very_long_amounts_are_exact(path: Place) -> None:
    amounts = [Decimal("1234567890123456789012345678901.123456789"), Decimal("1.0000000000000000000000001")]
    async with await opened(path, create=True) as ledger:
        await imported(ledger, [new_row(n, amount=each) for n, each in enumerate(amounts, 1)])
        assert ledger.header.totals["XOF"] == Decimal(
            "1234567890123456789012345678902.1234567890000000000000001"
        )
        assert [row.amount for row in await all_rows(ledger)] == amounts


async def test_duplicates_are_reported_all_together_and_nothing_is_imported(path: Place) -> None:
    rows = [
        *new_rows(4),
        new_row(5, row_key="row-2"),
        new_row(6, reference="reference-1"),
        new_row(7, row_key="row-2"),
    ]
    async with await opened(path, create=True) as ledger:
        with pytest.raises(LedgerDuplicates) as caught:
            await imported(ledger, rows)
        found = [(each.column, each.value, each.rows, each.lines) for each in caught.value.duplicates]
        assert found == [("row_key", "row-2", (2, 5), (3, 6)), ("reference", "reference-1", (1, 6), (2, 7))]
        assert caught.value.total == 2
        assert "lines 3 and 6 have the same row_key" in str(caught.value)
        assert ledger.is_empty
        await imported(ledger, new_rows(2))
        assert counts(ledger) == {"not_started": 2}


async def test_duplicates_without_lines_are_reported_by_row_and_the_first_are_listed(path: Place) -> None:
    rows = [new_row(n, line=None, row_key=f"row-{n % 150}") for n in range(1, 301)]
    async with await opened(path, create=True) as ledger:
        with pytest.raises(LedgerDuplicates) as caught:
            await imported(ledger, rows)
    assert len(caught.value.duplicates) == 100
    assert caught.value.total == 150
    assert "rows 1 and 151 have the same row_key" in str(caught.value)
    assert "and 145 more" in str(caught.value)


async def test_a_source_that_fails_leaves_nothing_behind(path: Place) -> None:
    def source() -> Iterator[NewRow]:
        yield from new_rows(700)
        raise RuntimeError("line 702 is torn")

    if isinstance(path, Path):
        path.touch(mode=0o600)  # one that was made by this opening would be removed with it
    async with await opened(path, create=True) as ledger:
        with pytest.raises(RuntimeError, match="line 702 is torn"):
            await imported(ledger, source())
        assert ledger.is_empty
    with pytest.raises(LedgerMissing, match=r"import did not end|there is no such batch"):
        await opened(path)


async def test_row_numbers_must_rise(path: Place) -> None:
    async with await opened(path, create=True) as ledger:
        with pytest.raises(ValueError, match="2 follows 2"):
            await imported(ledger, [new_row(2), new_row(2)])
        with pytest.raises(ValueError, match="2147483648 follows 1"):  # which no table can hold
            await imported(ledger, [new_row(1), new_row(2**31)])
        await imported(ledger, [new_row(1), new_row(2**31 - 1, line=7)])
        assert (await ledger.check()).findings == ()
    async with await looked_at(path) as ledger:
        assert set(await ledger.numbered([2**31 - 1, 2**31, 2**70])) == {2**31 - 1}
        assert await ledger.find(2**31) is None


async def test_a_ledger_holds_one_batch(path: Place) -> None:
    async with await begun(path) as ledger:
        with pytest.raises(LedgerRefused, match="holds a batch already"):
            await imported(ledger, new_rows(1))
        assert counts(ledger) == {"not_started": 5}


async def test_of_two_imports_at_the_same_time_the_second_finds_the_first(path: Place) -> None:
    async with await opened(path, create=True) as ledger:
        both = (imported(ledger, new_rows(2)), imported(ledger, new_rows(3)))
        first, second = await asyncio.gather(*both, return_exceptions=True)
        assert isinstance(second, BatchExists)
        assert first == ledger.header
        assert counts(ledger) == {"not_started": 2}


async def test_an_input_without_rows_is_a_batch_that_is_done(path: Place) -> None:
    async with await begun(path, 0) as ledger:
        assert ledger.header.rows == 0
        assert await all_rows(ledger) == []
    async with await opened(path) as ledger:
        assert (await ledger.check()).findings == ()


async def test_before_the_import_there_is_nothing_to_ask(path: Place) -> None:
    async with await opened(path, create=True) as ledger:
        for question in ("header", "totals"):
            with pytest.raises(LedgerMissing, match="holds no batch yet: `load` comes first"):
                getattr(ledger, question)
        with pytest.raises(LedgerMissing, match="holds no batch yet: `load` comes first"):
            await ledger.first()
