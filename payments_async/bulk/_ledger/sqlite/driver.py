"""What is asked of SQLite itself: settings (PRAGMA), statements, transactions, its own check, its errors.

One file and one connection. SQLite before 3.51.3 can corrupt a write-ahead log that two connections use, so
the file is locked exclusively while it is open, which also avoids shared memory. Rows are imported under a
rollback journal, so that a million of them are written once, not twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar, cast

import aiosqlite

from ..statements import Rows

T = TypeVar("T")

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


def diagnosed(error: sqlite3.Error) -> tuple[str, str]:
    """Classify a failure: its kind, and SQLite's own words. An unknown code means a failing disk."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # none for text that is not UTF-8
    return _KINDS.get(code & 0xFF, BROKEN), f"SQLite says: {error}"


async def connect(path: str) -> aiosqlite.Connection:
    """Open the file with safe writes, and lock it for this connection alone. Raises sqlite3.Error."""
    connection = aiosqlite.connect(path, isolation_level=None, timeout=0.0)
    connection._thread.daemon = True  # a process that leaves it open must be able to end
    await connection
    try:
        for setting in _SETTINGS:
            await run(connection, setting)
    except BaseException:
        await connection.close()
        raise
    return connection


async def run(connection: aiosqlite.Connection, statement: str, *parameters: Any) -> Rows:
    """Run a statement, and return all that it finds; a list is a JSON text. Raises sqlite3.Error."""
    values = [json.dumps(each) if isinstance(each, list) else each for each in parameters]
    try:
        return cast(Rows, list(await connection.execute_fetchall(statement, values)))
    except sqlite3.Error as error:  # whose traceback holds the statement, and so the lock of a closed file
        raise error.with_traceback(None) from None
    except UnicodeDecodeError:  # SQLite's own words, which quote a damaged file
        raise sqlite3.DatabaseError("the file's tables are not described in UTF-8") from None


async def run_many(connection: aiosqlite.Connection, statement: str, rows: Iterable[Sequence[Any]]) -> int:
    """Run a statement once for each row of parameters. Returns how many table rows it changed in all."""
    return (await connection.executemany(statement, rows)).rowcount


@asynccontextmanager
async def transaction(connection: aiosqlite.Connection) -> AsyncIterator[None]:
    """Context of a transaction that begins as a writer. A commit that has begun is awaited to its end.

    What fails is rolled back. Where that fails too, the connection stays in the transaction.
    """
    await to_its_end(run(connection, "BEGIN IMMEDIATE"), lambda _: connection.rollback())
    try:
        yield
        await to_its_end(connection.commit())
    except (Exception, asyncio.CancelledError):  # after a GeneratorExit nothing can be awaited
        with contextlib.suppress(sqlite3.Error):
            await to_its_end(connection.rollback())
        raise


async def to_its_end(work: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[None]] | None = None) -> T:
    """Await `work` to its end and `undo` it when the caller is cancelled: a thread outlives no loop."""
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with contextlib.suppress(asyncio.CancelledError):  # once more
                await asyncio.wait([running])
        if not running.cancelled() and running.exception() is None and undo is not None:
            await undo(running.result())
        raise


async def faults(connection: aiosqlite.Connection, *, quick: bool = False) -> list[str]:
    """Run SQLite's own check of the file. Returns what is wrong; `quick` does not check indexes."""
    check = "quick_check" if quick else "integrity_check"
    found = await run(connection, f"PRAGMA {check}({_MOST_FAULTS})")
    return [str(text) for (text,) in found if text != "ok"]


@asynccontextmanager
async def sorting(connection: aiosqlite.Connection) -> AsyncIterator[None]:
    """Context for making indexes: SQLite then sorts in as much memory again as the cache has."""
    await run(connection, f"PRAGMA cache_size=-{_SORTING_CACHE}")
    try:
        yield
    finally:
        await run(connection, f"PRAGMA cache_size=-{_CACHE}")
