"""One connection to a database: one transaction at a time, finished even if its caller is cancelled.

    rows, more = await database.read((SQL, values), (SQL, values))      # one round trip
    found = await database.commit(work, committed)                      # a transaction

What fails for a passing reason is repeated on a new connection, for a minute from the beginning of the
outage. When a connection is lost during COMMIT, `committed` finds out whether that took place. It takes the
same locks first, because the lost session may still be committing. Errors have our words; the server's own
may show rows.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, NoReturn, Self, TypeVar

import attrs
from psycopg import AsyncConnection, Error
from psycopg.errors import UniqueViolation
from psycopg.pq import TransactionStatus

from ...._postgresql import Address, Connection, cut, exposure
from ...._runtime import Runtime
from ...errors import BulkError
from ...ledger_errors import DatabaseUnfit, LedgerClosed, LedgerUnavailable
from ..statements import Copying, Rows, Statement
from ..transactions import LedgerDatabase, Purpose, Transaction, Work
from .dialect import LISTEN, SQL
from .session import (
    DatabaseClock,
    DatabaseFailure,
    DatabaseServer,
    FailureKind,
    diagnosed,
    error_of,
    is_shared,
    refusal,
    sent,
    set_up,
)

T = TypeVar("T")
PATIENCE: Final = 60.0
"""Seconds in which work that fails for a passing reason is repeated."""
BUSY: Final = 10
"""How many times as long work is repeated that others' work holds up: the database is there."""
ANSWER: Final = 40.0
"""Seconds in which a transaction has to end; then its connection is cut."""
_CONNECT: Final = 10
"""Seconds for a new connection, where the address sets no bound."""
_NO_ANSWER: Final = DatabaseFailure(FailureKind.LOST, "no answer")
_FIRST_REST, _LONGEST_REST = 0.1, 2.0
_BEGIN: Final[Statement] = ("BEGIN ISOLATION LEVEL READ COMMITTED", ())
_BEGIN_READING: Final[Statement] = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ())
# a time-out during COMMIT would end the wait for a standby, and look like success
_COMMIT: Final[tuple[Statement, ...]] = (("SET LOCAL statement_timeout = 0", ()), ("COMMIT", ()))


class SessionTransaction(Transaction):
    """Statements of one transaction of a session: what waits and is read is one round trip."""

    sql = SQL

    def __init__(self, connection: Connection, *, limited: bool = True, begin: Statement = _BEGIN) -> None:
        """`limited`: each statement has to end within 30 seconds."""
        self.connection = connection
        self._waiting: list[Statement] = [begin]
        if not limited:
            self._waiting.append(("SET LOCAL statement_timeout = 0", ()))
            self._waiting.append(("SET LOCAL idle_in_transaction_session_timeout = 0", ()))

    async def read(self, *statements: Statement) -> list[Rows]:
        """Send all statements in one round trip, and return what each finds."""
        waiting, self._waiting = self._waiting, []
        return (await sent(self.connection, [*waiting, *statements]))[len(waiting) :]

    def lock(self, name: str) -> None:
        """Let one transaction at a time go on from the next read, of those that lock this name."""
        self._waiting.append(("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (name,)))

    def write(self, *statements: Statement) -> None:
        """Send statements with the next read or the commit."""
        self._waiting.extend(statements)

    def write_rows(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Send a statement that takes a list of each column, with the next read or the commit."""
        self._waiting.append((sql, [list(column) for column in zip(*rows, strict=True)]))

    async def copy(self, into: Copying, rows: Iterable[Sequence[Any]]) -> None:
        """Run one `COPY … FROM STDIN (FORMAT binary)`: parameters of statements can end up in a log."""
        if self._waiting:
            await self.read()
        async with self.connection.cursor() as cursor, cursor.copy(into.sql.encode()) as copy:
            copy.set_types(into.types)
            for row in rows:
                await copy.write_row(row)

    async def are_unique(self, indexes: Iterable[str]) -> bool:
        """Make unique indexes. Returns False, and undoes that alone, when rows share what is to be unique."""
        self.write(("SAVEPOINT indexes", ()))
        try:
            await self.read(*((index, ()) for index in indexes))
        except UniqueViolation:
            await self.read(("ROLLBACK TO SAVEPOINT indexes", ()))
            return False
        return True

    async def commit(self) -> None:
        """Send what waits, and commit."""
        await sent(self.connection, [*self._waiting, *_COMMIT])


@attrs.frozen
class _Unknown:
    """A transaction whose connection was lost during COMMIT."""

    result: Any
    failure: DatabaseFailure


_Attempt = Callable[[Connection, _Unknown | None], Awaitable[T | _Unknown]]
"""An attempt at work, given the last one's result when it is not known if that was committed."""


class Database(LedgerDatabase):
    """A database, through one connection that is made again when it is lost."""

    sql = SQL

    def __init__(
        self, address: Address, runtime: Runtime, *, insecure_database: bool, patience: float, answer: float
    ) -> None:
        """Use `open`."""
        self._insecure_database = insecure_database
        self.address: Address = address
        self.runtime: Runtime = runtime
        self.clock: DatabaseClock = DatabaseClock(runtime)
        self.patience = patience
        """Seconds in which work that fails for a passing reason is repeated."""
        self._answer = answer
        self.connections: int = 0
        """How often it was connected to."""
        self._connection: Connection | None = None
        self._server: DatabaseServer | None = None
        self._lost_at: float | None = None
        """When the attempt began that found the database lost; None while it is there."""
        self._on_notice: Callable[[], object] | None = None
        self._watched: int | None = None
        """The socket that is watched for notices, while no work is done on it."""
        self._turn = asyncio.Lock()
        self._running: set[asyncio.Future[Any]] = set()
        self._closed = False

    @classmethod
    async def open(
        cls,
        address: str | Address,
        runtime: Runtime,
        *,
        insecure_database: bool = False,
        patience: float = PATIENCE,
        answer: float = ANSWER,
    ) -> Self:
        """Connect to a database.

        Args:
            address: `postgresql://…`; what it leaves open comes from libpq's environment variables.
            runtime: time and chance.
            insecure_database: allow another host without `sslmode=verify-full`.
            patience: seconds in which work is repeated that fails for a passing reason; ten times as long
                when others' work holds it up.
            answer: seconds in which a transaction has to end; then its connection is cut.

        Raises BulkError, DatabaseUnfit, or LedgerUnavailable.
        """
        address = address if isinstance(address, Address) else Address.of(address, BulkError)
        database = cls(
            address, runtime, insecure_database=insecure_database, patience=patience, answer=answer
        )
        database._require_private(address.exposure)
        connection = await database._connect()
        try:
            await database._require_fit(connection)
        except BaseException:
            await database.close()
            raise
        return database

    def _require_private(self, exposure: str | None) -> None:
        if not self._insecure_database and exposure is not None:
            raise DatabaseUnfit(self.label, exposure)

    async def _require_fit(self, connection: Connection | DatabaseFailure) -> None:
        if self._server is not None and (unfit := self._server.unfit):
            raise DatabaseUnfit(self.label, unfit)
        if isinstance(connection, DatabaseFailure):
            raise error_of(self.label, connection)
        shared = self.server.is_pooled and await self._attempt(self._is_shared, self._answer)
        if isinstance(shared, DatabaseFailure):
            raise error_of(self.label, shared)
        if shared:
            raise DatabaseUnfit(
                self.label, "a pooler gives each transaction another session: use its session mode, or none"
            )

    async def _is_shared(self, connection: Connection) -> bool:
        async with await AsyncConnection.connect(**self._parameters) as other:
            timer = self.runtime.call_later(self._answer, lambda: cut(other))
            try:
                return await is_shared(connection, other)
            finally:
                timer.cancel()

    def __repr__(self) -> str:
        return f"Database({self.label!r})"

    @property
    def label(self) -> str:
        """The address, for messages: without user and password."""
        return self.address.label

    @property
    def server(self) -> DatabaseServer:
        """The server, as found when it was last connected to."""
        assert self._server is not None  # `open` connects
        return self._server

    # Work

    async def read(self, *statements: Statement, purpose: Purpose = Purpose.READ) -> list[Rows]:
        """Read with all statements in one round trip, each for itself. Raises LedgerError."""

        async def reading(connection: Connection, before: _Unknown | None) -> list[Rows]:
            return await sent(connection, statements)

        return await self._finished(self._repeated(reading))

    async def commit(
        self,
        work: Work[T],
        committed: Work[bool] | None = None,
        *,
        purpose: Purpose = Purpose.OUTCOME,
        done: Callable[[T], object] = bool,
    ) -> T:
        """Run `work` in a transaction and commit it. Raises LedgerError."""

        async def attempt(connection: Connection, before: _Unknown | None) -> T | _Unknown:
            return await self._transact(SessionTransaction(connection), work, committed, before)

        async def to_its_end() -> T:
            result = await self._repeated(attempt)
            done(result)
            return result

        return await self._finished(to_its_end())

    async def snapshot(self, work: Work[T]) -> T:
        """Run `work`, which reads, on one unchanging view of the database. Raises LedgerError."""

        async def attempt(connection: Connection, before: _Unknown | None) -> T | _Unknown:
            reading = SessionTransaction(connection, begin=_BEGIN_READING)
            return await self._transact(reading, work, None, before)

        return await self._finished(self._repeated(attempt))

    async def once(
        self,
        work: Work[T],
        committed: Work[bool] | None = None,
        *,
        may_repeat: Callable[[], bool] = bool,
        purpose: Purpose = Purpose.IMPORT,
    ) -> T:
        """Run `work` in a transaction, once, for as long as it takes. A cancelled caller rolls it back.

        Raises LedgerError: LedgerUnavailable too when nothing was committed because the connection was lost.
        """
        rests = _Rests(self.runtime, self.patience)

        async def attempt(connection: Connection) -> T | _Unknown:
            return await self._transact(SessionTransaction(connection, limited=False), work, committed, None)

        async with self._turn:
            done = await self._attempt(attempt)
            while _was_broken_off(done) and may_repeat() and await rests.rest(None):
                done = await self._attempt(attempt)
            self._note_loss(done, self.runtime.monotonic())
        if isinstance(done, _Unknown):
            return await self._finished(self._settled(done, committed))
        if isinstance(done, DatabaseFailure):
            raise error_of(self.label, done)
        return done

    async def _settled(self, unknown: _Unknown, committed: Work[bool] | None) -> Any:
        async def attempt(connection: Connection, before: _Unknown | None) -> Any:
            return await self._transact(
                SessionTransaction(connection), self._refuse_repeat, committed, unknown
            )

        return await self._repeated(attempt)

    async def _refuse_repeat(self, _: Transaction) -> NoReturn:
        raise LedgerUnavailable(self.label, "the connection was lost, and nothing was changed")

    async def close(self) -> None:
        """Wait for a running transaction and disconnect. A second call does nothing."""
        if not self._closed:
            self._closed = True
            await self._finished(self._close())

    async def _close(self) -> None:
        async with self._turn:
            await self._drop()

    async def _finished(self, work: Awaitable[T]) -> T:
        """Run work to its end even when the caller is cancelled."""
        running = asyncio.ensure_future(work)
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        running.add_done_callback(_looked_at)
        running.add_done_callback(self._watch)
        return await asyncio.shield(running)

    async def _repeated(self, attempt: _Attempt[T]) -> T:
        rests, unknown = _Rests(self.runtime, self.patience), list[_Unknown | None]((None,))
        async with self._turn:
            while True:
                began = self.runtime.monotonic()
                done = await self._attempt(lambda connection: attempt(connection, unknown[-1]), self._answer)
                self._note_loss(done, began)
                if isinstance(done, _Unknown):
                    unknown.append(done)
                    done = done.failure
                if not isinstance(done, DatabaseFailure):
                    return done
                if not done.may_pass or not await rests.rest(self._lost_at):
                    raise error_of(self.label, done)

    def _note_loss(self, done: object, began: float) -> None:
        """Note what an attempt showed of the database, which is lost since then, if it is."""
        failure = done.failure if isinstance(done, _Unknown) else done
        if not isinstance(failure, DatabaseFailure) or failure.kind is not FailureKind.LOST:
            self._lost_at = None
        elif self._lost_at is None:
            self._lost_at = began

    async def _attempt(
        self, work: Callable[[Connection], Awaitable[T]], seconds: float | None = None
    ) -> T | DatabaseFailure:
        """Run work on a connection, which is cut after `seconds`. A failed transaction is rolled back."""
        if self._closed:
            raise LedgerClosed(self.label, "is closed")
        self._unwatch()
        connection = self._connection or await self._connect()
        if isinstance(connection, DatabaseFailure):
            return connection
        timer = None if seconds is None else self.runtime.call_later(seconds, lambda: cut(connection))
        try:
            return await work(connection)
        except Error as error:
            failure = diagnosed(error, is_closed=connection.closed)
        except asyncio.CancelledError:  # in the middle of a statement, perhaps
            await self._drop()
            raise
        except BaseException:
            self._lost_at = None  # what the work raises follows from an answer
            await self._roll_back(connection)
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if failure.kind is FailureKind.LOST:
            await self._drop()
        await self._roll_back(connection)
        return failure

    async def _transact(
        self,
        transaction: SessionTransaction,
        work: Work[T],
        committed: Work[bool] | None,
        before: _Unknown | None,
    ) -> T | _Unknown:
        if before is not None and committed is not None and await committed(transaction):
            result: T = before.result
            await transaction.commit()
            return result
        result = await work(transaction)
        try:
            await _uncancelled(transaction.commit())
        except Error as error:
            failure = diagnosed(error, is_closed=transaction.connection.closed)
            if failure.kind is not FailureKind.LOST:
                raise
        else:
            return result
        await self._drop()
        return _Unknown(result, failure)

    async def _roll_back(self, connection: Connection) -> None:
        if connection.closed or connection.info.transaction_status is TransactionStatus.IDLE:
            return
        timer = self.runtime.call_later(self._answer, lambda: cut(connection))
        try:
            await connection.execute("ROLLBACK")
        except Error:
            await self._drop()
        finally:
            timer.cancel()

    # Notices

    async def listen(self, on_notice: Callable[[], object]) -> None:
        """Have this called when others may have made work, or the connection is lost. Raises LedgerError.

        After a call it may not be called again before the next use of the database.
        """
        self._on_notice = on_notice
        await self.read(LISTEN)

    def _watch(self, _: object) -> None:
        """Watch the connection for a notice, unless work is done on it."""
        connection = self._connection
        if self._on_notice is None or connection is None or connection.closed or self._turn.locked():
            return
        self._watched = connection.fileno()
        asyncio.get_running_loop().add_reader(self._watched, self._heard)
        if connection.pgconn.notifies() is not None:  # pragma: no cover  # it came with the last answer
            self._heard()

    def _unwatch(self) -> None:
        if self._watched is not None:  # before libpq may close the socket, whose number is then another's
            asyncio.get_running_loop().remove_reader(self._watched)
            self._watched = None

    def _heard(self, *_: object) -> None:
        self._unwatch()  # until the next use, which reads it
        (self._on_notice or bool)()

    # The connection

    async def _connect(self) -> Connection | DatabaseFailure:
        """Connect and set up the session. Returns the connection, or what failed."""
        try:
            connection: Connection = await AsyncConnection.connect(autocommit=True, **self._parameters)
        except Error as error:
            failed = refusal(error)  # of a database that was there, it may be over as soon as it is mended
            return attrs.evolve(failed, kind=FailureKind.LOST) if self.connections else failed
        failure: DatabaseFailure | None = _NO_ANSWER
        timer = self.runtime.call_later(self._answer, lambda: cut(connection))
        try:
            self._require_private(exposure(connection.info.get_parameters()))
            failure = await self._set_up(connection)
            connection.add_notify_handler(self._heard)
        finally:
            timer.cancel()
            if failure is not None:
                await connection.close()
        if failure is not None:
            return failure
        self._connection = connection
        self.connections += 1
        return connection

    async def _set_up(self, connection: Connection) -> DatabaseFailure | None:
        """Set up a new session. Returns why it cannot be used."""
        try:
            self._server, now = await set_up(connection)
            if self._on_notice is not None:
                await sent(connection, [LISTEN])
        except Error as error:
            return diagnosed(error, is_closed=True)
        self.clock.note(now)
        return DatabaseFailure(FailureKind.LOST, "a standby") if self._server.is_standby else None

    @property
    def _parameters(self) -> dict[str, Any]:
        """Those of a new connection, for which it waits no longer than for an answer."""
        given = int(self.address.parameters.get("connect_timeout") or 0) or _CONNECT
        return {**self.address.parameters, "connect_timeout": max(2, min(given, math.ceil(self._answer)))}

    async def _drop(self) -> None:
        self._unwatch()
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Error):
                await connection.close()


class _Rests:
    """Pauses between attempts, longer each time, until the time for them is over."""

    def __init__(self, runtime: Runtime, seconds: float) -> None:
        self._runtime, self._seconds = runtime, seconds
        self._began: float | None = None
        self._next = _FIRST_REST

    async def rest(self, lost_at: float | None) -> bool:
        """Pause. Returns False when the time is over: since the loss, else since the first failure."""
        now = self._runtime.monotonic()
        self._began = now if self._began is None else self._began
        until = self._began + self._seconds * BUSY if lost_at is None else lost_at + self._seconds
        pause, self._next = self._next * (0.5 + self._runtime.random()), min(2 * self._next, _LONGEST_REST)
        if now + pause > until:
            return False
        await self._runtime.sleep(pause)
        return True


def _was_broken_off(done: object) -> bool:
    return isinstance(done, DatabaseFailure) and done.kind is FailureKind.REPEAT


def _looked_at(work: asyncio.Future[Any]) -> None:
    """Look at the error of work that has ended: its caller may be gone."""
    with contextlib.suppress(asyncio.CancelledError):
        work.exception()


async def _uncancelled(work: Awaitable[None]) -> None:
    """Wait for work to end, and only then be cancelled."""
    running, cancelled = asyncio.ensure_future(work), False
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        _looked_at(running)
        raise asyncio.CancelledError
    running.result()
