"""SQLite: everything that is not the same in every database.

One file and one connection. SQLite before 3.51.3 can corrupt a write-ahead log that two connections use, so
the file is locked exclusively for as long as it is open, which also makes do without shared memory. Rows are
imported under a rollback journal, so that a million of them are written once, not twice.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import Insert, NullPool, Update, event
from sqlalchemy.dialects.sqlite.aiosqlite import dialect
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from .file import APPLICATION_ID

_CACHE: Final = 16384
"""KiB of pages that are kept."""
_SORTING_CACHE: Final = 4096
_SETTINGS: Final = (
    "PRAGMA locking_mode=EXCLUSIVE",
    "PRAGMA synchronous=FULL",
    "PRAGMA fullfsync=ON",  # macOS: through the disk's own cache too
    "PRAGMA checkpoint_fullfsync=ON",
    "PRAGMA trusted_schema=OFF",
    "PRAGMA cell_size_check=ON",
    f"PRAGMA cache_size=-{_CACHE}",
)
_MOST_FAULTS: Final = 20

FULL: Final = "full"
BUSY: Final = "busy"
READ_ONLY: Final = "read only"
DAMAGED: Final = "damaged"
BROKEN: Final = "broken"
TAKEN: Final = "taken"
_KINDS: Final = {
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: READ_ONLY,
    sqlite3.SQLITE_PERM: READ_ONLY,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
    sqlite3.SQLITE_CONSTRAINT: TAKEN,
    sqlite3.SQLITE_ERROR: DAMAGED,  # a table or column is missing
}


FAILURES: Final = (DBAPIError, sqlite3.Error)
"""What a statement raises, through SQLAlchemy or past it. Both may hold parameters, and so account data."""


def diagnosed(error: Exception) -> tuple[str, str]:
    """The kind of one of `FAILURES`, and SQLite's own words; an unknown code counts as a failing disk."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    code: int = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # none: a text that is no UTF-8
    return _KINDS.get(code & 0xFF, BROKEN), f"SQLite says: {cause}"


def engine_for(path: str) -> AsyncEngine:
    """An engine whose transactions all begin as writers. It shows no parameters: they hold account data."""
    url = URL.create("sqlite+aiosqlite", database=path)
    options = {"isolation_level": None, "timeout": 0.0}
    engine = create_async_engine(url, poolclass=NullPool, hide_parameters=True, connect_args=options)
    event.listen(engine.sync_engine, "begin", _begin)
    return engine


def _begin(connection: Any) -> None:
    connection.connection.dbapi_connection.run_async(lambda driver: driver.execute("BEGIN IMMEDIATE"))


async def settle(connection: AsyncConnection) -> None:
    """Make a new connection careful, and the file its own."""
    for setting in _SETTINGS:
        await _pragma(connection, setting)


async def mark(connection: AsyncConnection) -> None:
    """Mark a new file as a ledger, within the transaction that makes its tables."""
    await connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")


async def use_write_ahead_log(connection: AsyncConnection) -> None:
    """Go over to the write-ahead log, where a commit is one write and one sync."""
    await _pragma(connection, "PRAGMA journal_mode=WAL")


async def roll_back(connection: AsyncConnection) -> None:
    """Undo what a commit that failed has left open, which SQLAlchemy takes for ended."""
    await (await _driver(connection)).rollback()


async def faults(connection: AsyncConnection, *, quick: bool = False) -> list[str]:
    """What SQLite's own check finds wrong with the file; `quick` leaves out whether indexes agree."""
    check = "quick_check" if quick else "integrity_check"
    found = await connection.exec_driver_sql(f"PRAGMA {check}({_MOST_FAULTS})")
    return [str(text) for (text,) in found if text != "ok"]


@asynccontextmanager
async def sorting(connection: AsyncConnection) -> AsyncIterator[None]:
    """While indexes are made: SQLite sorts in as much memory as the cache has, beside it."""
    await _pragma(connection, f"PRAGMA cache_size=-{_SORTING_CACHE}")
    yield
    await _pragma(connection, f"PRAGMA cache_size=-{_CACHE}")


class ManyStatements(NamedTuple):
    """A statement to be run once for each row of values."""

    statement: Insert | Update
    names: tuple[str, ...]
    """Which parameter each value of a row is for, in the order of the statement's parameters."""


async def execute_many(
    connection: AsyncConnection, many: ManyStatements, rows: Sequence[Sequence[Any]]
) -> int:
    """Run a statement once for each row of values. Gives how many table rows it found in all.

    Compiled by SQLAlchemy, once, and run past it: its cursors cost three changes of thread for each statement
    and most of the time of a small commit. All our types are SQLite's own.
    """
    driver = await _driver(connection)
    return int((await driver.executemany(_compiled(many), rows)).rowcount)


@cache
def _compiled(many: ManyStatements) -> str:
    compiled = many.statement.compile(dialect=dialect())
    assert tuple(compiled.positiontup or ()) == many.names, compiled.positiontup
    return str(compiled)


async def _pragma(connection: AsyncConnection, statement: str) -> None:
    # past SQLAlchemy, which would begin a transaction first: these cannot be changed within one
    await (await (await _driver(connection)).execute(statement)).close()


async def _driver(connection: AsyncConnection) -> Any:
    return (await connection.get_raw_connection()).driver_connection
