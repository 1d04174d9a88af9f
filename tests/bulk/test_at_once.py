"""Processes that begin one batch at the same time, and databases that let nobody in."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk import BulkError, LedgerError, LedgerUnavailable, PayoutBatch
from payments_async.bulk._ledger import database
from payments_async.sandbox import Sandbox
from tests.support.batches import items
from tests.support.desks import Desk
from tests.support.places import EITHER
from tests.support.sightings import books


@EITHER
async def test_one_of_those_that_load_a_batch_at_once_imports_it(
    desk: Desk, client: Any, place: Path | str, service: Sandbox
) -> None:
    async def paid() -> tuple[bool, int]:
        async with desk.open(place, client) as batch:
            loaded = await batch.load(items(20))
            return loaded.is_new, (await batch.run()).exit_code

    ended = await asyncio.gather(*(paid() for _ in range(5)))
    assert (sorted(ended), len(books(service))) == ([(False, 0)] * 4 + [(True, 0)], 20)


async def test_a_database_that_refuses_is_not_asked_again(database: str) -> None:
    with pytest.raises(LedgerError, match=r'database ".*_" does not exist') as refused:
        async with PayoutBatch.open(f"{database}_"):
            pass
    assert not isinstance(refused.value, LedgerUnavailable)


@pytest.mark.parametrize(("variable", "value"), [("PGHOST", "db..internal"), ("PGPORT", "54 32")])
async def test_variables_that_make_no_address_are_refused(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(
        BulkError, match=r"^PGHOST, PGPORT or the service file, which complete the database's"
    ):
        async with PayoutBatch.open("postgresql:///db"):
            pass


async def test_a_process_that_is_stopped_in_a_transaction_is_named(
    desk: Desk, client: Any, service: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_BUSY", 1)
    path = tmp_path / "june.ledger"
    async with desk.open(path, client) as batch:
        await batch.load(items(2))
        with closing(sqlite3.connect(path, isolation_level=None)) as stopped:
            stopped.execute("UPDATE payments_rows SET taken_by = 'host-2:911' WHERE id = 1")
            stopped.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerUnavailable, match="locked; rows are taken by host-2:911; see to"):
                await batch.run()
        assert (await batch.run()).exit_code == 0
    assert len(books(service)) == 2
