"""SQLite: all that depends on this database.

One file and one connection. SQLite before 3.51.3 can corrupt a write-ahead log that two connections use, so
the file is locked exclusively while it is open, which also avoids shared memory. Rows are
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
"""SQLite's page cache, in KiB."""
_SORTING_CACHE: Final = 4096
_SETTINGS: Final = (
    "PRAGMA locking_mode=EXCLUSIVE",
    "PRAGMA synchronous=FULL",
    "PRAGMA fullfsync=ON",  # macOS: flush the disk's own cache too
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
"""Errors of statements, through SQLAlchemy or directly. Both may hold parameters, and so account data."""


def diagnosed(error: Exception) -> tuple[str, str]:
    """Classify one of `FAILURES`: its kind, and SQLite's own words. An unknown code means a failing disk."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    code: int = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # none for text that is not UTF-8
    return _KINDS.get(code & 0xFF, BROKEN), f"SQLite says: {cause}"


def engine_for(path: str) -> AsyncEngine:
    """Make an engine whose transactions begin as writers. It logs no parameters: they hold account data."""
    url = URL.create("sqlite+aiosqlite", database=path)
    options = {"isolation_level": None, "timeout": 0.0}
    engine = create_async_engine(url, poolclass=NullPool, hide_parameters=True, connect_args=options)
    event.listen(engine.sync_engine, "begin", _begin)
    return engine


def _begin(connection: Any) -> None:
    connection.connection.dbapi_connection.run_async(lambda driver: driver.execute("BEGIN IMMEDIATE"))


async def settle(connection: AsyncConnection) -> None:
    """Set a new connection to safe writes, and lock the file for it alone."""
    for setting in _SETTINGS:
        await _pragma(connection, setting)


async def mark(connection: AsyncConnection) -> None:
    """Mark a new file as a ledger, within the transaction that makes its tables."""
    await connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")


async def use_write_ahead_log(connection: AsyncConnection) -> None:
    """Switch to the write-ahead log, where a commit is one write and one sync."""
    await _pragma(connection, "PRAGMA journal_mode=WAL")


async def roll_back(connection: AsyncConnection) -> None:
    """Roll back after a failed commit, whose transaction SQLAlchemy takes for ended."""
    await (await _driver(connection)).rollback()


async def faults(connection: AsyncConnection, *, quick: bool = False) -> list[str]:
    """Run SQLite's own check of the file. Returns what is wrong; `quick` does not check indexes."""
    check = "quick_check" if quick else "integrity_check"
    found = await connection.exec_driver_sql(f"PRAGMA {check}({_MOST_FAULTS})")
    return [str(text) for (text,) in found if text != "ok"]


@asynccontextmanager
async def sorting(connection: AsyncConnection) -> AsyncIterator[None]:
    """Context for making indexes: SQLite then sorts in as much memory again as the cache has."""
    await _pragma(connection, f"PRAGMA cache_size=-{_SORTING_CACHE}")
    yield
    await _pragma(connection, f"PRAGMA cache_size=-{_CACHE}")


class ManyStatements(NamedTuple):
    """A statement to be run once for each row of values."""

    statement: Insert | Update
    names: tuple[str, ...]
    """The parameter of each value of a row, in the order of the statement's parameters."""


async def execute_many(
    connection: AsyncConnection, many: ManyStatements, rows: Sequence[Sequence[Any]]
) -> int:
    """Run a statement once for each row of values. Returns how many table rows it matched in all.

    SQLAlchemy compiles it once, but does not run it: its cursors cost three thread switches a statement
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
    # not through SQLAlchemy, which would begin a transaction first: these cannot be changed within one
    await (await (await _driver(connection)).execute(statement)).close()


async def _driver(connection: AsyncConnection) -> Any:
    return (await connection.get_raw_connection()).driver_connection
