"""Importing into a file: in little memory, and exact texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiosqlite import Connection

from payments_async.bulk._ledger.sqlite import driver
from tests.support.ledgers import begun, tampering


async def test_indexes_are_sorted_in_little_memory_and_the_cache_is_as_large_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite sorts in as much memory as the cache has, beside it: together they would be twice as much."""
    run, during = driver.run, list[int]()

    async def watched(db: Connection, statement: str, *parameters: Any) -> Any:
        if statement.startswith("CREATE UNIQUE INDEX row_keys"):
            during.append(await _cache(db))
        return await run(db, statement, *parameters)

    monkeypatch.setattr(driver, "run", watched)
    async with await begun(tmp_path / "ledger") as ledger:
        during.append(await _cache(ledger._handle._connection))
    sorting, after = during
    assert (-sorting, -after) == (4096, 16384)


async def _cache(db: Connection) -> int:
    ((size,),) = await db.execute_fetchall("PRAGMA cache_size")
    return int(size)


async def test_amounts_and_keys_stay_text_in_the_file(path: Path) -> None:
    await (await begun(path, 1)).close()
    with tampering(path) as tables:
        kinds = tables.execute(
            "SELECT typeof(amount), typeof(row_key), typeof(reference) FROM rows"
        ).fetchall()
        assert kinds == [("text", "text", "text")]
        totals = tables.execute("SELECT typeof(totals), totals FROM chunks WHERE chunk = 1").fetchall()
        assert totals == [("text", '{"not_started":{"XOF":[1,"10.10"]}}')]
