"""The ledger's database, SQLite or PostgreSQL: opened by its address, and worked on in transactions.

Each statement of a ledger may be carried out twice. So a transaction that was lost with its connection is
begun again, for a minute, and nothing has to find out what became of it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sqlite3
import stat
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, TypeVar

import attrs
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, NoResultFound, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from ..._extras import needs
from ..._files import network_file_system
from ..._runtime import Runtime
from ...models._masking import clean
from ..errors import BulkError, LedgerError, LedgerMissing, LedgerUnavailable
from .tables import FORM, batches, metadata, rows
from .values import UnreadableRow

T = TypeVar("T")
Work = Callable[[AsyncConnection], Awaitable[T]]
PATIENCE: Final = 60.0
"""Seconds for which a transaction is tried again that fails for a passing reason."""
_REST: Final = 0.3
_BUSY: Final = 20_000
"""Milliseconds for which SQLite waits for another process's transaction."""
_IDLE: Final = "60s"
"""For how long PostgreSQL lets a process hold rows that was stopped within a transaction."""
_HAS_SAFE_WAL: Final = sqlite3.sqlite_version_info >= (3, 51, 3)
"""Earlier versions can lose what two connections have written to one log."""
_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_KEYWORDS: Final = re.compile(
    r"\s*(?:dbname|host|hostaddr|options|passfile|password|port|service|ssl[a-z_]+|user)\s*=", re.ASCII
)
_SQLITE_START: Final = b"SQLite format 3\0"
_PASSING: Final = frozenset({"40001", "40P01", "53", "55P03", "57", "58", "08"})
"""SQLSTATEs, and classes of them, of failures that pass."""
_MOST_HOLDERS: Final = 5
_MADE: Final = frozenset({"23505", "42P07", "42710"})
"""SQLSTATEs of what is there already: a batch's line or a row, a table, a type."""


@attrs.frozen
class DatabaseAddress:
    """Where a ledger is: a file, or a database on a server."""

    text: str = attrs.field(repr=False)  # the path, or the address with its password
    is_insecure: bool = False
    """True if a server on another host may be used without a checked certificate."""


def path_of(text: str) -> str | None:
    """The path of a ledger in a file; None for one in PostgreSQL. Raises BulkError for any other address."""
    kind = _ADDRESS.match(text)
    scheme = "" if kind is None else kind[1].lower()
    if kind is not None and scheme in ("sqlite", "sqlite+aiosqlite"):
        return text[kind.end() :].removeprefix("/")
    if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        return None
    has_keywords = _KEYWORDS.match(text) is not None
    if kind is None and not has_keywords:
        return text
    del text, kind  # tracebacks print locals, and it has a password
    what = "name=value" if has_keywords else f"{scheme}://"
    raise BulkError(f"a ledger is a file on a local disk or postgresql://user@host:port/database, not {what}")


_NO_WINDOWS: Final = (
    "a batch needs Linux or macOS: Windows has no clock that is known to go on in suspension, and a ledger "
    "there would not be its owner's alone"
)


class Database:
    """An open database. One transaction that writes is under way at a time in this process."""

    def __init__(self, engine: AsyncEngine, label: str, runtime: Runtime, path: str | None) -> None:
        self.label: str = label
        """The file, or the server and database without a password."""
        self.path: str | None = path  # the file's; None on a server
        self._engine, self._runtime = engine, runtime
        self._writing = asyncio.Lock()

    @classmethod
    async def open(cls, address: DatabaseAddress, runtime: Runtime, *, create: bool) -> Database:
        """Open a database, and make the tables that are missing.

        Raises LedgerMissing without `create` for one without tables, LedgerError, BulkError and ImportError.
        """
        if sys.platform == "win32":
            raise BulkError(_NO_WINDOWS)
        path = path_of(address.text)
        if path is None:
            engine, label = _server(address)
        else:
            label = path
            engine = _file(path, create=create)
        async with AsyncExitStack() as undo:
            undo.push_async_callback(engine.dispose)
            database = cls(engine, label, runtime, path)
            await database._prepare(create=create)
            undo.pop_all()
        return database

    async def close(self) -> None:
        await self._engine.dispose()

    async def write(self, work: Work[T], *, is_long: bool = False) -> T:
        """Do work in a transaction that ends even if its caller is cancelled. Raises LedgerError.

        `is_long`: it is undone then, as nobody waits for a whole input.
        """

        async def written() -> T:
            async with self._writing:
                return await self._repeated(work, reads=False)

        if is_long:
            return await written()
        task = asyncio.ensure_future(written())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()
            raise

    async def read(self, work: Work[T]) -> T:
        """Do work that only reads, of one moment. Raises LedgerError."""
        return await self._repeated(work, reads=True)

    async def find(self, query: sa.Executable) -> Sequence[sa.RowMapping]:
        """What a query finds. Raises LedgerError."""

        async def work(connection: AsyncConnection) -> Sequence[sa.RowMapping]:
            return (await connection.execute(query)).mappings().all()

        return await self.read(work)

    async def has(self, query: sa.Select[Any]) -> bool:
        """Whether a query finds anything. Raises LedgerError."""
        return bool(await self.find(query.limit(1)))

    async def change(self, statement: sa.Update) -> int:
        """Change rows in a transaction of its own; gives their number. Raises LedgerError."""

        async def work(connection: AsyncConnection) -> int:
            return int((await connection.execute(statement)).rowcount)

        return await self.write(work)

    async def _repeated(self, work: Work[T], *, reads: bool, patience: float = PATIENCE) -> T:
        until, was_made = self._runtime.monotonic() + patience, False
        while True:
            try:
                return await self._attempt(work, reads=reads)
            except DBAPIError as error:
                if not was_made and getattr(error.orig, "sqlstate", None) in _MADE:
                    was_made = True  # by another process, at the same time: the work now finds it
                elif not _passes(error):
                    raise LedgerError(self.label, _words(error), remedy=SEE) from None
                if self._runtime.monotonic() >= until:
                    raise LedgerUnavailable(self.label, _words(error) + await self._holders()) from None
            except UnreadableRow as error:
                raise LedgerError(self.label, str(error), remedy=SEE) from None
            except NoResultFound:
                raise LedgerMissing(self.label, "its batch was deleted meanwhile") from None
            except SQLAlchemyError as error:
                raise LedgerError(self.label, f"{type(error).__name__}", remedy=SEE) from None
            await self._runtime.sleep(_REST)

    async def _holders(self) -> str:
        """Name the processes that have rows taken: one that is stopped in a transaction holds a file."""
        taken = sa.select(rows.c.taken_by).where(rows.c.taken_by.is_not(None)).distinct().limit(_MOST_HOLDERS)

        async def look(connection: AsyncConnection) -> list[str]:
            return [clean(name) for name in await connection.scalars(taken)]

        try:
            found = await self._attempt(look, reads=True)
        except SQLAlchemyError:
            return ""
        return f"; rows are taken by {', '.join(found)}" if found else ""

    async def _attempt(self, work: Work[T], *, reads: bool) -> T:
        async with self._engine.connect() as connection:
            await connection.execution_options(payments_reads=reads)
            async with connection.begin():
                return await work(connection)

    async def _prepare(self, *, create: bool) -> None:
        def look(inner: sa.Connection) -> dict[str, set[str]]:
            there = sa.inspect(inner)
            return {
                name: {each["name"] for each in there.get_columns(name)} if name in ours else set()
                for name in there.get_table_names()
            }

        ours = metadata.tables.keys()
        # one that is away when it is opened is told at once: nothing is under way
        found = await self._repeated(lambda each: each.run_sync(look), reads=True, patience=0.0)
        missing = ours - found.keys()
        if missing and self.path is not None and found.keys() - ours:
            raise LedgerError(self.label, "is no ledger of this form", remedy=_OTHER_FILE)
        if missing and not create:
            raise LedgerMissing(self.label, "it holds no ledger's tables", remedy=_START)
        if batches.c.form.name in found.get(batches.name, ()):  # first: another form has other columns
            (form,) = await self.find(sa.select(sa.func.max(batches.c.form).label("form")))
            if form["form"] not in (None, FORM):
                problem = f"its tables are of form {form['form']}, and this version works with {FORM}"
                raise LedgerError(self.label, problem, remedy="use the version that wrote it")
        for name in sorted(ours & found.keys()):
            if lacking := {*metadata.tables[name].columns.keys()} - found[name]:
                problem = f"has other tables under the names of a ledger's ({name} has no {min(lacking)})"
                raise LedgerError(self.label, problem, remedy="give the ledger a database of its own")
        if missing:
            await self.write(lambda connection: connection.run_sync(metadata.create_all))


SEE: Final = "see to the database; every row is as it was recorded last"
_OTHER_FILE: Final = "choose another path; this file was not touched"


def _passes(error: DBAPIError) -> bool:
    """Whether a failure of the database may pass by itself: a lost connection, a busy or full one."""
    code = getattr(error.orig, "sqlstate", None)
    if code:
        return code in _PASSING or code[:2] in _PASSING
    if error.connection_invalidated:
        return True
    name = getattr(error.orig, "sqlite_errorname", "") or ""
    if name:
        return name.startswith(
            ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN")
        )
    is_away = isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError)
    return is_away and not _is_refused(error.orig)


def _is_refused(error: BaseException | None) -> bool:
    """Whether a server refused the user, the password or the database's name."""
    if not type(error).__module__.startswith("psycopg"):
        return False
    from psycopg import Error

    from ..._postgresql import asks_weakly, is_refusal

    return isinstance(error, Error) and (is_refusal(error) or asks_weakly(error))


def _words(error: DBAPIError) -> str:
    """A failure in the database's own words, without the values that it was about."""
    told = str(error.orig).strip()
    return told.splitlines()[0][:200] if told else type(error.orig).__name__


# A file


def _file(path: str, *, create: bool) -> AsyncEngine:
    """The engine of a ledger in a file, which is its owner's alone and lies on a local disk."""
    try:
        import aiosqlite  # noqa: F401 - named where it is missing
    except ImportError as missing:
        raise ImportError(needs("a ledger in a file needs", "bulk")) from missing
    if (kind := network_file_system(os.path.abspath(path))) is not None:
        problem = f"lies on a file system of type {kind}, whose locks cannot be relied on"
        raise LedgerError(path, problem, remedy="put the ledger on a local disk, or in PostgreSQL")
    _prepare_file(path, create=create)
    if (driver := logging.getLogger("aiosqlite")).level == logging.NOTSET:
        driver.setLevel(logging.INFO)  # its debug lines have each statement's values: accounts
    engine = create_async_engine(
        sa.URL.create("sqlite+aiosqlite", database=path), hide_parameters=True, pool_size=2, max_overflow=0
    )
    sa.event.listen(engine.sync_engine, "connect", _set_up)
    sa.event.listen(engine.sync_engine, "begin", _begin)
    return engine


def _prepare_file(path: str, *, create: bool) -> None:
    start = b""
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            raise LedgerError(path, "is no regular file", remedy=_OTHER_FILE)
        if mode & 0o077:
            problem = "can be read by others, and it holds account data"
            raise LedgerError(path, problem, remedy="make it the owner's alone: chmod 600")
        with open(path, "rb") as file:
            start = file.read(len(_SQLITE_START))
    except FileNotFoundError:
        if not create:
            raise LedgerMissing(path, "there is no ledger", remedy=_START) from None
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            problem = f"cannot be made ({error.strerror})"
            raise LedgerError(path, problem, remedy="make the folder writable for this user") from None
    except OSError as error:
        raise LedgerError(path, f"cannot be read ({error.strerror})", remedy=SEE) from None
    if start and start != _SQLITE_START:
        raise LedgerError(path, "is no ledger", remedy=_OTHER_FILE)


_START: Final = "give the path of an existing ledger, or start the run first: it makes its ledger"


def _set_up(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin` says
    mode = "WAL" if _HAS_SAFE_WAL else "TRUNCATE"
    for pragma in (f"busy_timeout={_BUSY}", f"journal_mode={mode}", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: sa.Connection) -> None:
    """A transaction that writes has the file at once: what it has read cannot be out of date."""
    reads = connection.get_execution_options().get("payments_reads", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


# A server


def _server(address: DatabaseAddress) -> tuple[AsyncEngine, str]:
    """The engine of a ledger in PostgreSQL, and its name for messages."""
    try:
        from psycopg import AsyncConnection as Driver

        from ..._postgresql import Address
    except ImportError as missing:
        raise ImportError(needs("a ledger in PostgreSQL needs", "postgresql")) from missing
    where = Address.of(re.sub(r"^\w+(\+psycopg)?://", "postgresql://", address.text), BulkError)
    if where.exposure is not None and not address.is_insecure:
        raise BulkError(f"{where.label}: {where.exposure}")
    session = "-c synchronous_commit=on"
    options = (
        f"{where.parameters.get('options', '')} -c idle_in_transaction_session_timeout={_IDLE} {session}"
    )
    parameters = {**where.parameters, "options": options.strip()}

    async def connected() -> Any:
        return await Driver.connect(**parameters, autocommit=True, prepare_threshold=None)

    engine = create_async_engine(
        "postgresql+psycopg://",
        async_creator=connected,
        hide_parameters=True,
        pool_pre_ping=True,
        pool_size=4,
        max_overflow=0,
        isolation_level="READ COMMITTED",
    )
    return engine, where.label
