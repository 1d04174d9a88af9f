"""What a ledger's address opens, what is refused as a ledger, failures of its database, and many at once."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from payments_async.bulk import BulkError, LedgerError, LedgerUnavailable, PayoutBatch
from payments_async.sandbox import Sandbox
from tests.support.batches import UnreadableRow, in_process, items, ledger_rows, open_at
from tests.support.desks import Desk
from tests.support.places import EITHER
from tests.support.sightings import books


@pytest.mark.parametrize("scheme", ["sqlite:///", "sqlite+aiosqlite:///", "SQLite:///"])
async def test_an_address_of_sqlite_is_the_files(service: Sandbox, tmp_path: Path, scheme: str) -> None:
    path = tmp_path / "june.ledger"
    async with in_process(service) as client:
        async with open_at(f"{scheme}{path}", client) as batch:
            await batch.load(items(2))
        async with open_at(path, client) as batch:
            assert (await batch.status()).rows == 2


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (Path.mkdir, "is no regular file"),
        (os.mkfifo, "is no regular file"),
        (lambda path: path.symlink_to(path), "cannot be read"),
    ],
)
async def test_what_is_no_file_is_refused_as_a_ledger(
    tmp_path: Path, make: Callable[[Path], object], problem: str
) -> None:
    make(tmp_path / "l")
    with pytest.raises(LedgerError, match=f"l: {problem}"):
        async with open_at(tmp_path / "l"):
            pass


async def test_a_ledger_is_not_made_where_there_is_no_folder(service: Sandbox, tmp_path: Path) -> None:
    async with in_process(service) as client:
        with pytest.raises(LedgerError, match="cannot be made"):
            async with open_at(tmp_path / "missing" / "l", client):
                pass


async def test_a_ledger_of_another_form_is_left_to_the_version_that_wrote_it(
    service: Sandbox, tmp_path: Path
) -> None:
    path = tmp_path / "l"
    async with in_process(service) as client, open_at(path, client) as batch:
        await batch.load(items(1))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE payments_batches SET form = 99")
        connection.execute("ALTER TABLE payments_rows DROP COLUMN unsent")
    with pytest.raises(LedgerError, match=r"of form 99, .* use the version that wrote it"):
        async with open_at(path):
            pass


async def test_a_database_that_is_away_is_told_at_once() -> None:
    with pytest.raises(LedgerUnavailable, match="refused"):
        async with open_at("postgresql://127.0.0.1:1/payroll"):
            pass


@pytest.mark.parametrize(
    ("library", "address", "extra"),
    [("aiosqlite", "june.ledger", "bulk"), ("psycopg", "postgresql://127.0.0.1:9/payroll", "postgresql")],
)
async def test_a_ledger_names_the_extra_that_it_lacks(
    library: str, address: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"a ledger in .*\[{extra}\]"):
        async with PayoutBatch.open(address):
            pass


LOST = psycopg.DatabaseError("server closed the connection")
AWAY = sqlite3.OperationalError("no active connection")


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (sa.exc.DatabaseError("", {}, LOST, connection_invalidated=True), True),
        (sa.exc.OperationalError("", {}, AWAY), True),
        (sa.exc.OperationalError("", {}, psycopg.errors.AdminShutdown("stopped")), True),
        (sa.exc.OperationalError("", {}, psycopg.errors.DiskFull("no space left")), True),
        (sa.exc.ProgrammingError("", {}, psycopg.errors.UndefinedColumn("no such column")), False),
        (sa.exc.DatabaseError("", {}, LOST), False),
        (sa.exc.TimeoutError("the pool"), False),
        (UnreadableRow("it has a currency that is none"), False),
    ],
)
async def test_work_is_done_again_only_after_a_failure_that_passes(
    service: Sandbox, tmp_path: Path, error: Exception, passes: bool
) -> None:
    begun = list[int]()

    async def work(_: AsyncConnection) -> str:
        begun.append(1)
        if len(begun) == 1:
            raise error
        return "done"

    async with in_process(service) as client, open_at(tmp_path / "l", client) as batch:
        database = batch._ledger.database
        if passes:
            assert await database.read(work) == "done"
        else:
            with pytest.raises(LedgerError) as refused:
                await database.read(work)
            assert not isinstance(refused.value, LedgerUnavailable)
    assert len(begun) == 1 + passes


async def test_rows_are_read_a_page_at_a_time(
    service: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_async.bulk._ledger.views._PAGE", 2)
    async with in_process(service) as client, open_at(tmp_path / "l", client) as batch:
        await batch.load(items(5))
        assert [row.number for row in await ledger_rows(batch)] == [1, 2, 3, 4, 5]


async def test_an_input_is_not_compared_with_a_ledger_whose_row_cannot_be_read(
    service: Sandbox, tmp_path: Path
) -> None:
    path = tmp_path / "l"
    async with in_process(service) as client, open_at(path, client) as batch:
        await batch.load(items(2))
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE payments_rows SET currency = 'none' WHERE id = 1")
        with pytest.raises(LedgerError, match=r"row 1 cannot be read: .*currency"):
            await batch.load(items(3))
        assert len(await ledger_rows(batch)) == 1


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
    monkeypatch.setattr("payments_async.bulk._ledger.database._BUSY", 1)
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
