"""Importing: all rows or none, exact sums, duplicates told together."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import attrs
import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from payments_async import __version__
from payments_async.bulk.ledger import importing
from payments_async.bulk.ledger.journal import LedgerState
from payments_async.bulk.ledger.ledger import Ledger
from payments_async.bulk.ledger_errors import LedgerDuplicates, LedgerMissing, LedgerRefused
from payments_async.bulk.protocol.clocks import Timestamps
from payments_async.bulk.protocol.records import NewRow
from payments_async.bulk.protocol.row_state import RowState
from tests.support.ledgers import (
    BINDING,
    Clock,
    all_rows,
    begun,
    counts,
    imported,
    new_row,
    new_rows,
    tampering,
)


async def test_a_ledger_says_what_was_imported_and_still_does_when_opened_again(path: Path) -> None:
    rows = [
        new_row(1, amount=Decimal("10.10")),
        new_row(2, amount=Decimal("0.90")),
        new_row(3, currency="GHS"),
    ]
    async with await Ledger.open(path, clock=Clock(), create=True) as ledger:
        header = await imported(ledger, rows)
        assert header == ledger.header
    async with await Ledger.open(path, clock=Clock("second")) as ledger:
        assert ledger.header == header
        assert ledger.totals == {
            (RowState.NEW, "XOF"): (2, Decimal("11.00")),
            (RowState.NEW, "GHS"): (1, Decimal("10.10")),
        }
    assert header.binding == BINDING
    assert header.rows == 3
    assert header.totals == {"XOF": Decimal("11.00"), "GHS": Decimal("10.10")}
    assert header.client_version == __version__
    assert header.created_at == Clock().wall + 2


async def test_every_field_of_a_row_comes_back_as_it_went_in(path: Path) -> None:
    given = new_row(7, line=None, metadata='{"order": 1}', amount=Decimal("1E+2"), body=b"\x00\xff not text")
    async with await Ledger.open(path, clock=Clock(), create=True) as ledger:
        await imported(ledger, [given])
        (row,) = await all_rows(ledger)
    assert {name: getattr(row, name) for name in attrs.asdict(given)} == attrs.asdict(given)
    assert row.state is RowState.NEW
    assert row.changed_in == 1


async def test_indexes_are_sorted_in_little_memory_and_the_cache_is_as_large_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite sorts in as much memory as the cache has, beside it: together they would be twice as much."""
    index, during = importing._index, list[int]()

    async def watched(db: AsyncConnection, path: str) -> None:
        during.append(await _cache(db))
        await index(db, path)

    async def look(db: AsyncConnection, standing: LedgerState, at: Timestamps) -> LedgerState:
        during.append(await _cache(db))
        return standing

    monkeypatch.setattr(importing, "_index", watched)
    async with await begun(tmp_path / "ledger") as ledger:
        await ledger.edit(look, dry=True)
    sorting, after = during
    assert (-sorting, -after) == (4096, 16384)


async def _cache(db: AsyncConnection) -> int:
    return int((await db.exec_driver_sql("PRAGMA cache_size")).scalar_one())


async def test_sums_of_very_long_amounts_are_exact(path: Path) -> None:
    amounts = [Decimal("1234567890123456789012345678901.123456789"), Decimal("1.0000000000000000000000001")]
    async with await Ledger.open(path, clock=Clock(), create=True) as ledger:
        await imported(ledger, [new_row(n, amount=each) for n, each in enumerate(amounts, 1)])
        assert ledger.header.totals["XOF"] == Decimal(
            "1234567890123456789012345678902.1234567890000000000000001"
        )
        assert [row.amount for row in await all_rows(ledger)] == amounts


async def test_duplicates_are_reported_all_together_and_nothing_is_imported(path: Path) -> None:
    rows = [
        *new_rows(4),
        new_row(5, row_key="row-2"),
        new_row(6, reference="reference-1"),
        new_row(7, row_key="row-2"),
    ]
    async with await Ledger.open(path, clock=Clock(), create=True) as ledger:
        with pytest.raises(LedgerDuplicates) as caught:
            await imported(ledger, rows)
        found = [(each.column, each.value, each.rows, each.lines) for each in caught.value.duplicates]
        assert found == [("row_key", "row-2", (2, 5), (3, 6)), ("reference", "reference-1", (1, 6), (2, 7))]
        assert caught.value.total == 2
        assert "lines 3 and 6 have the same row_key" in str(caught.value)
        assert ledger.is_empty
        await imported(ledger, new_rows(2))
        assert counts(ledger) == {"NEW": 2}


async def test_duplicates_without_lines_are_reported_by_row_and_only_the_first_are_listed(path: Path) -> None:
    rows = [new_row(n, line=None, row_key=f"row-{n % 150}") for n in range(1, 301)]
    async with await Ledger.open(path, clock=Clock(), create=True) as ledger:
        with pytest.raises(LedgerDuplicates) as caught:
            await imported(ledger, rows)
    assert len(caught.value.duplicates) == 100
    assert caught.value.total == 150
    assert "rows 1 and 151 have the same row_key" in str(caught.value)
    assert "and 145 more" in str(caught.value)


async def test_a_source_that_fails_leaves_nothing_behind(path: Path) -> None:
    def source() -> Iterator[NewRow]:
        yield from new_rows(700)
        raise RuntimeError("line 702 is torn")

    path.touch(mode=0o600)  # one that was made by this opening would be removed with it
    async with await Ledger.open(path, clock=Clock(), create=True) as ledger:
        with pytest.raises(RuntimeError, match="line 702 is torn"):
            await imported(ledger, source())
        assert ledger.is_empty
        assert await all_rows(ledger) == []
    with pytest.raises(LedgerMissing, match="import did not end"):
        await Ledger.open(path, clock=Clock())


async def test_row_numbers_must_rise(path: Path) -> None:
    async with await Ledger.open(path, clock=Clock(), create=True) as ledger:
        with pytest.raises(ValueError, match="2 follows 2"):
            await imported(ledger, [new_row(2), new_row(2)])


async def test_a_ledger_holds_one_batch(path: Path) -> None:
    async with await begun(path) as ledger:
        with pytest.raises(LedgerRefused, match="holds a batch already"):
            await imported(ledger, new_rows(1))
        assert counts(ledger) == {"NEW": 5}


async def test_an_input_without_rows_is_a_batch_that_is_done(path: Path) -> None:
    async with await begun(path, 0) as ledger:
        assert ledger.header.rows == 0
        assert (await ledger.claim(5)).rows == ()
        assert ledger.head[0] == 1
    async with await Ledger.open(path, clock=Clock()) as ledger:
        assert (await ledger.check()).findings == ()


async def test_before_the_import_there_is_nothing_to_ask(path: Path) -> None:
    async with await Ledger.open(path, clock=Clock(), create=True) as ledger:
        for question in ("header", "totals", "head"):
            with pytest.raises(LedgerMissing, match="holds no batch yet: `load` comes first"):
                getattr(ledger, question)
        with pytest.raises(LedgerMissing, match="holds no batch yet: `load` comes first"):
            await ledger.claim(1)


async def test_amounts_and_keys_stay_text_in_the_file(path: Path) -> None:
    await (await begun(path, 1)).close()
    with tampering(path) as tables:
        kinds = tables.execute(
            "SELECT typeof(amount), typeof(row_key), typeof(reference) FROM rows"
        ).fetchall()
        assert kinds == [("text", "text", "text")]
        assert tables.execute("SELECT typeof(amount), amount FROM totals").fetchall() == [("text", "10.10")]
