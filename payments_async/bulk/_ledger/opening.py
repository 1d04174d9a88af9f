"""Opens a ledger: a file by its path, a batch of a database by its address, `postgresql://…`, and its name.

A backend, and with it aiosqlite or psycopg, is imported only where it is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..._extras import missing_libraries, needs
from ..._runtime import Runtime
from .._protocol.clocks import Timestamps
from ..errors import BulkError
from .ledger import Ledger

if TYPE_CHECKING:
    from .postgresql.ledger import PostgresLedger

DATABASE: Final = re.compile(r"postgres(?:ql)?://")
"""How the address of a database begins."""
KEYWORDS: Final = re.compile(
    r"\s*(?:dbname|host|hostaddr|options|passfile|password|port|service|ssl[a-z_]+|user)\s*=", re.ASCII
)
"""How the address of a database begins in libpq's keywords, which may hold a password: it is no path."""
WRITTEN: Final = "write the database's address as postgresql://user@host:port/database, not as name=value"
FILE: Final = ("a ledger in a file needs", "bulk")
SHARED: Final = ("a ledger in PostgreSQL needs", "machines")
_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def is_database(path: str) -> bool:
    """True if a ledger is in a database, for `SharedBatch.open`, and not in a file, for `PayoutBatch.open`.

    Raises BulkError for an address of an unknown kind.
    """
    if KEYWORDS.match(path):
        raise BulkError(WRITTEN)
    if DATABASE.match(path):
        return True
    if unknown := _ADDRESS.match(path):
        raise BulkError(
            f"a ledger is a file on a local disk or postgresql://user@host:port/database, not {unknown[1]}://…"
        )
    return False


def require_extra(subject: str, extra: str) -> None:
    """Raise ImportError, with what to install, without the libraries of an extra."""
    if missing_libraries((extra,)):
        raise ImportError(needs(subject, extra))


def require_address(address: str) -> None:
    """Raise BulkError for anything but the address of a database."""
    if not is_database(address):
        raise BulkError(
            "a batch that many processes share is in a database, postgresql://user@host:port/database; "
            "`PayoutBatch.open(path, client)` opens one in a file, which has one process at a time"
        )


async def open_file(
    path: str, *, clock: Callable[[], Timestamps], create: bool = False, read_only: bool = False
) -> Ledger:
    """Open the ledger at a path.

    Args:
        path: the file's.
        clock: gives the moment of each commit; its `session` names this run.
        create: make a file that is missing.
        read_only: open it for a moment, to read it.

    Raises LedgerError, BulkError for an address, and ImportError without the extra.
    """
    if is_database(path):
        raise BulkError(
            "this is the address of a database, not the path of a file: open one of its batches by "
            "`SharedBatch.open(address, client, batch_id=...)`"
        )
    try:
        from .sqlite.ledger import SqliteLedger
    except ImportError as missing:
        raise ImportError(needs(*FILE)) from missing
    return await SqliteLedger.open(path, clock=clock, create=create, read_only=read_only)


async def open_shared(
    address: str,
    *,
    batch_id: str | None,
    clock: Callable[[], Timestamps],
    runtime: Runtime,
    create: bool = False,
    must_exist: bool = True,
    insecure_database: bool = False,
) -> PostgresLedger:
    """Open the ledger of a batch in a database.

    Args:
        address: the database's.
        batch_id: the batch; None for one that gets its name with its import.
        clock: gives the moment of each commit; its `session` names this run.
        runtime: time and chance.
        create: make tables that are missing; the batch is empty until its import.
        must_exist: without `create`: refuse a batch that is not in the database.
        insecure_database: allow a database on another host without `sslmode=verify-full`.

    Raises LedgerError, BulkError for a path or without a name, and ImportError without the extra.
    """
    require_address(address)
    may_be_missing = create or not must_exist
    if batch_id is None and not may_be_missing:
        raise BulkError("a database has many batches: name one by batch_id=")
    require_extra(*SHARED)
    from .postgresql.database import Database
    from .postgresql.ledger import PostgresLedger

    database = await Database.open(address, runtime, insecure_database=insecure_database)
    try:
        return await PostgresLedger.open(
            database, batch_id, clock=clock, create=create, must_exist=not may_be_missing
        )
    except BaseException:
        await database.close()
        raise
