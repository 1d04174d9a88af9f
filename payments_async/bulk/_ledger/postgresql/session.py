"""Sessions of a database: how one is set up, what is found out about its server, and what its errors mean.

Messages of errors are ours: the server's may show rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from enum import Enum, auto
from typing import Any, Final

import attrs
from psycopg import DataError, Error, OperationalError

from ...._postgresql import OLDEST, WEAK_AUTH, Connection, asks_weakly, is_refusal
from ...._runtime import Runtime
from ..._protocol.machines import ServerIdentity
from ...ledger_errors import (
    DatabaseUnfit,
    LedgerBroken,
    LedgerDamaged,
    LedgerError,
    LedgerFull,
    LedgerRefused,
    LedgerUnavailable,
    RightsMissing,
)
from ..statements import Rows, Statement

NOW: Final[Statement] = ("SELECT extract(epoch FROM clock_timestamp())::float8", ())
"""Reads the database's time, seconds since 1970."""
_SETTINGS: Final = {
    "timezone": "UTC",
    "search_path": "pg_catalog",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "30s",
    "idle_session_timeout": "0",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "3",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "15s",
}
_SET: Final = f"SELECT {', '.join(f'set_config({name!r}, {to!r}, false)' for name, to in _SETTINGS.items())}"
_STATE: Final = (
    "SELECT pg_is_in_recovery(), current_setting('server_version_num')::int, "
    "extract(epoch FROM clock_timestamp())::float8, pg_backend_pid(), current_setting('server_encoding'), "
    "CASE current_setting('synchronous_commit') WHEN 'off' "
    "THEN set_config('synchronous_commit', 'on', false) END, "
    "CASE WHEN current_setting('server_version_num')::int >= 170000 "
    "THEN set_config('transaction_timeout', '0', false) END"
)


@attrs.frozen
class DatabaseServer:
    """A server, as found when it was connected to."""

    version: int
    """For instance 180004."""
    is_standby: bool
    encoding: str
    is_encrypted: bool
    is_pooled: bool
    """True if the process that serves the connection is not the one that took it."""
    identity: ServerIdentity
    """Its data and the line of their history. Each session has it as the setting `payments.store`."""

    @property
    def unfit(self) -> str | None:
        """Describe why this server cannot hold a ledger; None when it can."""
        if self.version < OLDEST:
            return f"it is PostgreSQL {self.version // 10_000}, and {OLDEST // 10_000} or later is needed"
        if self.is_standby:
            return "it is a standby, which takes no changes"
        return None if self.encoding == "UTF8" else f"its encoding is {self.encoding}, and UTF8 is needed"


class DatabaseClock:
    """The database's clock, carried on between readings by a clock that cannot be set."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._read: tuple[float, float] = runtime.now().timestamp(), self._elapsed()

    def _elapsed(self) -> float:
        boottime = self._runtime.boottime()
        return self._runtime.monotonic() if boottime is None else boottime

    def note(self, seconds: float) -> None:
        """Take a reading that has just come in, in seconds since 1970."""
        self._read = seconds, self._elapsed()

    def now(self) -> float:
        """Seconds since 1970 by the database; by this machine before the first reading."""
        seconds, elapsed = self._read
        return seconds + self._elapsed() - elapsed


async def sent(connection: Connection, statements: Sequence[Statement]) -> list[Rows]:
    """Send statements in one round trip, and return what each finds. Raises psycopg's errors."""
    async with connection.pipeline() as pipeline:
        cursors = [await connection.execute(sql.encode(), values, binary=True) for sql, values in statements]
        await pipeline.sync()
        pipeline._exit_gen = _nothing_left  # type: ignore[method-assign]
    return [await cursor.fetchall() if cursor.description else [] for cursor in cursors]


def _nothing_left() -> Generator[Any, Any, None]:
    """End a pipeline whose answers have all come in.

    psycopg would send Sync and Flush. After a Flush, `idle_in_transaction_session_timeout` does not count,
    and a suspended process would keep its locks.
    """
    yield from ()


async def set_up(connection: Connection) -> tuple[DatabaseServer, float]:
    """Set up a new session. Returns facts of the server, and its time in seconds since 1970."""
    await connection.execute(_SET.encode())
    with contextlib.suppress(Error):  # not on every platform
        await connection.execute("SET client_connection_check_interval = '5s'")
    (state,) = await sent(connection, [(_STATE, ())])
    is_standby, version, now, pid, encoding, *_ = state[0]
    identity = await _identity(connection)
    await sent(connection, [("SELECT set_config('payments.store', %s, false)", (identity.text,))])
    is_encrypted, is_pooled = bool(connection.pgconn.ssl_in_use), connection.info.backend_pid != pid
    return DatabaseServer(version, is_standby, encoding, is_encrypted, is_pooled, identity), now


async def _identity(connection: Connection) -> ServerIdentity:
    # what is recorded of a checkpoint still has the old timeline right after a promotion
    timeline = await _one(connection, "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)")
    return ServerIdentity(
        system=await _one(connection, "SELECT system_identifier FROM pg_control_system()"),
        timeline=None if timeline is None else int(timeline, 16),
        started=await _one(connection, "SELECT extract(epoch FROM pg_postmaster_start_time())::text")
        if timeline is None
        else None,
    )


async def _one(connection: Connection, sql: str) -> Any:
    """Read one value; None where that is not allowed."""
    with contextlib.suppress(Error):
        return (await sent(connection, [(sql, ())]))[0][0][0]
    return None


async def is_shared(connection: Connection, other: Connection) -> bool:
    """Find out whether another client may get this client's server session: a pooler of transactions."""
    pid = ("SELECT pg_backend_pid()", ())
    ((before,),), *_ = await sent(connection, [pid])
    ((theirs,),), *_ = await sent(other, [pid])  # in a transaction that stays open
    ((now,),), *_ = await sent(connection, [pid])
    return bool(theirs == before or now != before)


# Failures


class FailureKind(Enum):
    """The kinds of failures."""

    LOST = auto()
    """The connection ended, or the server takes no changes now: connect again."""
    REPEAT = auto()
    """The transaction was rolled back for another's sake, or took too long: repeat it."""
    REFUSED = auto()
    """The server answered, and lets nobody in who comes like this."""
    FULL = auto()
    FORBIDDEN = auto()
    TAKEN = auto()
    UNSTORABLE = auto()
    DAMAGED = auto()
    BROKEN = auto()


@attrs.frozen
class DatabaseFailure:
    """A failed transaction, or attempt to connect."""

    kind: FailureKind
    code: str
    """The SQLSTATE, or words where there is none."""

    @property
    def may_pass(self) -> bool:
        """True if the same work may succeed later."""
        return self.kind in (FailureKind.LOST, FailureKind.REPEAT)


_CODES: Final = {
    "25006": FailureKind.LOST,  # read-only
    "25P03": FailureKind.LOST,  # idle in transaction for too long
    "26000": FailureKind.LOST,  # psycopg takes a statement for prepared whose transaction failed before that
    "40001": FailureKind.REPEAT,
    "40P01": FailureKind.REPEAT,  # deadlock
    "55P03": FailureKind.REPEAT,  # a lock was not to be had in time
    "57014": FailureKind.REPEAT,  # statement_timeout
    "53100": FailureKind.FULL,
    "42501": FailureKind.FORBIDDEN,
    "23505": FailureKind.TAKEN,
    "58030": FailureKind.BROKEN,  # the server's disk failed
}
_CLASSES: Final = {
    "08": FailureKind.LOST,
    "53": FailureKind.LOST,  # too many connections, no memory
    "57": FailureKind.LOST,  # shutdown, crash, starting up
    "22": FailureKind.UNSTORABLE,
    "42": FailureKind.DAMAGED,  # a table or column is missing
    "3F": FailureKind.DAMAGED,
    "XX": FailureKind.DAMAGED,
}


def diagnosed(error: Error, *, is_closed: bool) -> DatabaseFailure:
    """Classify an error of psycopg; `is_closed`: the connection ended with it."""
    code = error.sqlstate
    if code is None and (is_closed or isinstance(error, OperationalError)):  # another one's, perhaps
        return DatabaseFailure(FailureKind.LOST, "no answer")
    if code is None:
        return DatabaseFailure(
            FailureKind.UNSTORABLE if isinstance(error, DataError) else FailureKind.BROKEN,
            type(error).__name__,
        )
    return DatabaseFailure(_CODES.get(code) or _CLASSES.get(code[:2]) or FailureKind.BROKEN, code)


def refusal(error: Error) -> DatabaseFailure:
    """Say why a connection could not be made. The library's message may show a part of a password."""
    connection = error.pgconn
    if connection is not None and connection.needs_password:
        return DatabaseFailure(FailureKind.REFUSED, "it asks for a password: see PGPASSFILE")
    if asks_weakly(error):
        return DatabaseFailure(FailureKind.REFUSED, WEAK_AUTH)
    if is_refusal(error):
        return DatabaseFailure(
            FailureKind.REFUSED, "it refused the user, the password or the database's name"
        )
    return DatabaseFailure(FailureKind.LOST, "no answer, or none that lets it in now")


def error_of(path: str, failure: DatabaseFailure) -> LedgerError:
    """Make the error to raise for a failure."""
    code = failure.code
    match failure.kind:
        case FailureKind.LOST:
            return LedgerUnavailable(path, f"cannot be reached, or takes no changes ({code})")
        case FailureKind.REPEAT:
            return LedgerUnavailable(path, f"takes too long, or its work was broken off ({code})")
        case FailureKind.REFUSED:
            return DatabaseUnfit(path, code)
        case FailureKind.FULL:
            return LedgerFull(path, "the database's disk is full")
        case FailureKind.FORBIDDEN:
            return RightsMissing(path, ())
        case FailureKind.TAKEN:
            return LedgerRefused(path, None, "a reference that should be new belongs to another row")
        case FailureKind.UNSTORABLE:
            return LedgerRefused(path, None, f"the database cannot hold one of the values ({code})")
        case FailureKind.DAMAGED:
            return LedgerDamaged(path, [f"its tables are not as they were made ({code})"])
        case _:
            return LedgerBroken(path, f"the database failed ({code})")
