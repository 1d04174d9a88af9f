"""An open ledger: lock, connection, one transaction at a time, and the errors for failures of SQLite."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, NoReturn, TypeVar

import attrs
from aiosqlite import Connection

from ...ledger_errors import (
    LedgerBroken,
    LedgerClosed,
    LedgerDamaged,
    LedgerError,
    LedgerFull,
    LedgerGone,
    LedgerLocked,
    LedgerMissing,
    LedgerReadOnly,
    LedgerRefused,
)
from ..statements import Copying, Rows, Statement
from ..stored_rows import UnreadableRecord
from ..transactions import LedgerDatabase, Purpose, Transaction, Work
from . import driver
from .dialect import SQL
from .file import DiskReserve, FileWatch, needs_check, prepare, refuse_remote, remove
from .lock import LedgerLock, emptied


@attrs.frozen
class TransactionFailure:
    """A transaction failed."""

    kind: str
    """The kind of failure, from `driver.diagnosed`."""
    finding: str = ""
    """The damage, when the ledger is damaged."""


def error_of(path: str, failure: TransactionFailure) -> LedgerError:
    """Make the error to raise for a failure."""
    if failure.kind == driver.DAMAGED:
        return LedgerDamaged(path, [failure.finding])
    if failure.kind == driver.BUSY:
        return LedgerLocked(path, pid=None, since=None)
    if failure.kind == driver.TAKEN:
        return LedgerRefused(path, None, "a reference that should be new belongs to another row")
    kind, problem = _ERRORS[failure.kind]
    return kind(path, problem)


_ERRORS: Final[dict[str, tuple[type[LedgerError], str]]] = {
    driver.FULL: (LedgerFull, "the disk is full"),
    driver.READ_ONLY: (LedgerReadOnly, "cannot be written"),
    driver.BROKEN: (LedgerBroken, "the disk failed, or a commit was broken off"),
}


T = TypeVar("T")

RESERVE_SIZE: Final = 4 << 20
"""Bytes kept free for outcomes: more than the write-ahead log grows to before it is reused."""


class FileTransaction(Transaction):
    """Statements of one transaction of the file: there is one at a time."""

    sql = SQL

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._waiting: list[Callable[[], Awaitable[object]]] = []

    async def read(self, *statements: Statement) -> list[Rows]:
        """Run what waits and all statements, and return what each of these finds."""
        waiting, self._waiting = self._waiting, []
        for write in waiting:
            await write()
        return [await driver.run(self.connection, sql, *values) for sql, values in statements]

    def lock(self, name: str) -> None:
        """Do nothing: there is no other."""

    def write(self, *statements: Statement) -> None:
        """Run statements with the next read or the commit."""
        self._waiting.extend(partial(driver.run, self.connection, sql, *values) for sql, values in statements)

    def write_rows(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of these rows, with the next read or the commit."""

        async def written() -> None:
            if await driver.run_many(self.connection, sql, rows) != len(rows):
                raise UnreadableRecord("rows are changed by something else than this run")

        self._waiting.append(written)

    async def copy(self, into: Copying, rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows."""
        await self.read()
        await driver.run_many(self.connection, into.sql, rows)

    async def are_unique(self, indexes: Iterable[str]) -> bool:
        """Make unique indexes. Returns False when rows share what is to be unique."""
        await self.read()
        async with driver.sorting(self.connection):
            try:
                for index in indexes:
                    await driver.run(self.connection, index)
            except sqlite3.IntegrityError:
                return False
        return True


@attrs.define(eq=False)
class LedgerConnection(LedgerDatabase):
    """An open ledger file. It is unusable once a failure has left its state unknown."""

    sql = SQL

    path: str
    lock: LedgerLock
    made: bool
    """True if this opening created the file."""
    needs_check: bool
    """True if SQLite has to check the file's structure before it is used."""
    _connection: Connection = attrs.field(kw_only=True)
    _reserve: DiskReserve = attrs.field(kw_only=True)
    _watch: FileWatch = attrs.field(kw_only=True)
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    _running: set[asyncio.Future[Any]] = attrs.field(factory=set)
    _failure: TransactionFailure | None = None
    _closed: bool = False
    _is_to_be_removed: bool = False

    @property
    def gone(self) -> str | None:
        """Describe what happened to the files when they are no longer those that were opened; else None."""
        path = self._watch.gone()
        return None if path is None else f"{path} was deleted, moved or replaced"

    async def read(self, *statements: Statement, purpose: Purpose = Purpose.READ) -> list[Rows]:
        """Read with all statements."""
        return await self.commit(lambda transaction: transaction.read(*statements), purpose=purpose)

    async def snapshot(self, work: Work[T]) -> T:
        """Run `work`, which reads."""
        return await self.commit(work, purpose=Purpose.READ)

    async def once(
        self,
        work: Work[T],
        committed: Work[bool] | None = None,
        *,
        may_repeat: Callable[[], bool] = bool,
        purpose: Purpose = Purpose.IMPORT,
    ) -> T:
        """Run `work` in a transaction. A cancelled caller rolls it back, unless it only reads."""
        if purpose is Purpose.IMPORT:
            return await self._in_turn(work, purpose, bool)
        return await self.commit(work, purpose=purpose)

    async def commit(
        self,
        work: Work[T],
        committed: Work[bool] | None = None,
        *,
        purpose: Purpose = Purpose.OUTCOME,
        done: Callable[[T], object] = bool,
    ) -> T:
        """Run `work` in a transaction of its own, and finish it even when the caller is cancelled.

        Raises the LedgerError that fits; a failed transaction was rolled back.
        """
        self._refuse_closed()
        running = asyncio.ensure_future(self._in_turn(work, purpose, done))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return await asyncio.shield(running)

    async def in_write_ahead_log(self) -> None:
        """Switch to the write-ahead log, where a commit is one write and one sync. Raises LedgerError."""
        async with self._turn:
            self._refuse_closed()
            done = await self._guarded(driver.run(self._connection, "PRAGMA journal_mode=WAL"))
            if isinstance(done, TransactionFailure):
                self._give_up(done)

    def remove_when_closed(self) -> None:
        """Remove the file once it is closed: nothing of its batch was ever sent."""
        self._is_to_be_removed = True

    async def close(self) -> None:
        """Finish the transactions, close the file and release the lock. A second call does nothing."""
        if not self._closed:
            self._closed = True
            await driver.to_its_end(self._close())

    async def _close(self) -> None:
        if self._running:
            await asyncio.wait(self._running)
        async with self._turn:
            gone = self.gone
            try:
                await self.disconnect()
                self._reserve.drop()
                if self._is_to_be_removed and self._failure is None and not gone:
                    self.lock.note(None)  # the lock file stays, as always
                    remove(self.path)
            finally:
                self.lock.release()

    async def disconnect(self) -> None:
        """Close the file alone."""
        with contextlib.suppress(sqlite3.Error):  # a broken disk; earlier commits are safe
            await self._connection.close()

    async def _in_turn(self, work: Work[T], purpose: Purpose, done: Callable[[T], object]) -> T:
        async with self._turn:
            self._refuse_unusable(purpose)
            found = await self._guarded(self._transaction(work))
            if isinstance(found, TransactionFailure) and self._makes_room(found, purpose):
                found = await self._guarded(self._transaction(work))
            if isinstance(found, TransactionFailure):
                self._give_up(found, purpose)
            done(found)
            return found

    def _refuse_closed(self) -> None:
        if self._closed:
            raise LedgerClosed(self.path, "is closed")

    def _refuse_unusable(self, purpose: Purpose) -> None:
        if self._failure is not None:
            self._give_up(self._failure)
        if self._is_to_be_removed and purpose not in (Purpose.READ, Purpose.FIGURES):
            raise LedgerClosed(self.path, "was discarded, and is removed when the batch is left")
        if purpose is Purpose.IMPORT:
            self._refuse_closed()
        if purpose in (Purpose.INTENT, Purpose.IMPORT):
            if gone := self.gone:
                raise LedgerGone(self.path, gone)
            if not self._reserve.ready():
                raise LedgerFull(self.path, "no room is left on the disk for the outcomes of what is sent")

    def _makes_room(self, failure: TransactionFailure, purpose: Purpose) -> bool:
        return failure.kind == driver.FULL and purpose is Purpose.OUTCOME and self._reserve.drop()

    async def _transaction(self, work: Work[T]) -> T:
        may_be_committed = False
        try:
            async with driver.transaction(self._connection):
                transaction = FileTransaction(self._connection)
                found = await work(transaction)
                await transaction.read()
                may_be_committed = True
        except asyncio.CancelledError:
            # what was committed is not in this process's memory
            if may_be_committed or self._connection.in_transaction:
                self._failure = TransactionFailure(driver.BROKEN)
            raise
        return found

    async def _guarded(self, action: Awaitable[T]) -> T | TransactionFailure:
        try:
            return await action
        except sqlite3.Error as error:
            stuck = self._connection.in_transaction  # it could not be rolled back
            return (
                TransactionFailure(driver.BROKEN) if stuck else TransactionFailure(*driver.diagnosed(error))
            )
        except UnreadableRecord as error:
            return TransactionFailure(driver.DAMAGED, str(error))

    def _give_up(self, failure: TransactionFailure, purpose: Purpose = Purpose.OUTCOME) -> NoReturn:
        if failure.kind in (driver.DAMAGED, driver.BROKEN) and purpose is not Purpose.FIGURES:
            self._failure = failure
        raise error_of(self.path, failure)


async def open_handle(
    path: str, *, create: bool, pid: int, since: float, read_only: bool = False
) -> LedgerConnection:
    """Lock the ledger at `path` and open it; `create` makes the file when there is none.

    `read_only` is written into the lock, for a process that finds the ledger locked. Raises LedgerMissing,
    LedgerOnNetwork, LedgerReadOnly, LedgerLocked, LedgerExposed, LedgerForeign or LedgerDamaged; then nothing
    stays open.
    """
    path = _located(path, create=create)
    lock = LedgerLock.acquire(path, pid=pid, since=since, read_only=read_only)
    try:
        made = _prepared(path, lock)
        opening = _connected(path, lock, made=made, check=not made and needs_check(path))
        return await driver.to_its_end(opening, LedgerConnection.disconnect)
    except BaseException:
        lock.release()
        raise


def _located(path: str, *, create: bool) -> str:
    path = os.path.realpath(path)  # one file under two names is one ledger
    if not create and not os.path.exists(path):
        raise LedgerMissing(path, "is not there")
    refuse_remote(path)
    if os.path.exists(path) and not os.path.exists(f"{path}.lock"):
        prepare(path)  # nothing has it open: what is no ledger gets no lock beside it
    return path


def _prepared(path: str, lock: LedgerLock) -> bool:
    """Prepare the locked file. Returns True if it was created.

    Not before: closing a handle to a file ends the locks that SQLite has on it in this process.
    """
    if not os.path.lexists(path):
        lock.note(None)  # its record is of a removed ledger: clear it before the new one exists
    made = prepare(path)
    if lock.mark is not None and not os.path.getsize(path):  # otherwise SQLite would remove its log
        raise LedgerDamaged(path, [emptied(lock.mark)])
    return made


async def _connected(path: str, lock: LedgerLock, *, made: bool, check: bool) -> LedgerConnection:
    try:
        connection = await driver.connect(path)
    except sqlite3.Error as error:
        failure = TransactionFailure(*driver.diagnosed(error))
    else:
        reserve, watch = DiskReserve(f"{path}.ballast", RESERVE_SIZE), FileWatch((path, f"{path}-wal"))
        watch.gone()  # remember the files that were opened
        return LedgerConnection(path, lock, made, check, connection=connection, reserve=reserve, watch=watch)
    raise error_of(path, failure)
