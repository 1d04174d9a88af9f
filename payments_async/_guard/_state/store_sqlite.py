"""Rows of the processes of one host in an SQLite file: a change is one transaction.

It waits while another process changes a row, for about a second: the store client has a thread of its own.

The journal is for rollback, because SQLite 3.40 may corrupt a write-ahead log that two connections use. It is
truncated, not deleted: SQLite syncs only that, so a commit outlives a power cut.

A fork waits for a transaction. A child inherits what SQLite knows of this process's locks; in the midst of a
transaction it would find the file locked for ever.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

import attrs

from ..._files import network_file_system
from ..._rate_limit.store import PATIENCE, LimitRow, StoreUnavailable
from ..._runtime import SYSTEM, Runtime, held_during_fork, renewed_in_child
from ...errors import ConfigurationError
from .compare_and_set import LimitStore, RowRule

APPLICATION_ID: Final = 0x70617962
"""Marks an SQLite file as a store of this package: `payb`."""
FORM: Final = 1
"""The form of the tables, SQLite's `user_version`."""
PAUSE: Final = 0.003
"""Seconds, on average, after which a process asks again for a file that another one has: about one commit."""
BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
"""Where Linux identifies the time since the machine was started."""

_TABLES: Final = (
    "CREATE TABLE states (address TEXT, fingerprint TEXT, kind TEXT, content TEXT NOT NULL, "
    "PRIMARY KEY (address, fingerprint, kind))",
    "CREATE TABLE clock (id INTEGER PRIMARY KEY, boot TEXT NOT NULL, boottime REAL, wall REAL NOT NULL, "
    "value REAL NOT NULL)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORM}",
)
_MARKS: Final = (
    "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
    "FROM pragma_application_id, pragma_user_version"
)
_READ: Final = "SELECT content FROM states WHERE (address, fingerprint, kind) = (?, ?, ?)"
_WRITE: Final = "INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?)"
_READ_CLOCK: Final = "SELECT boot, boottime, wall, value FROM clock"
_SET_CLOCK: Final = "INSERT OR REPLACE INTO clock VALUES (1, ?, ?, ?, ?)"
_BUSY_TIMEOUT: Final = f"PRAGMA busy_timeout = {PATIENCE * 1000:.0f}"
_DAMAGED: Final = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_ELSEWHERE: Final = "choose another path"


@attrs.frozen
class ClockReading:
    """The store's clock and those of the machine at one moment, seconds."""

    boot: str
    """Identifies the time since the machine was started; '' where that is not known."""
    boottime: float | None
    wall: float
    value: float
    """The store's clock. It begins at the wall clock's time, and goes on when that is set."""

    def after(self, boot: str, boottime: float | None, wall: float) -> ClockReading:
        """The next reading. After a restart of the machine only the wall clock says how long it took."""
        if boot == self.boot and boottime is not None and self.boottime is not None:
            passed = boottime - self.boottime
        else:
            passed = wall - self.wall
        return ClockReading(boot, boottime, wall, self.value + max(passed, 0.0))


class SQLiteStore(LimitStore):
    """Rows in a file, which is made when it is first used and belongs to its owner alone."""

    def __init__(self, path: str, *, runtime: Runtime = SYSTEM) -> None:
        """Take an absolute path. Raises ConfigurationError for another."""
        if not os.path.isabs(path) or "\0" in path or (path.startswith("//") and path[2:3] != "/"):
            raise ConfigurationError("the address of a store in SQLite must be sqlite:/absolute/path")
        self._path = os.path.realpath(path)  # one file under two names is one store
        super().__init__(f"the limit store sqlite:{self._path}")
        self._runtime = runtime
        self._boot = _boot_id()
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0)
        _stores.add(self)

    async def change(
        self, row: LimitRow, rule: RowRule, kind: str, values: dict[str, Any]
    ) -> tuple[Any, float]:
        """Change the row in one transaction."""
        until = self._runtime.monotonic() + PATIENCE
        while True:
            with _turn, self._failing():
                connection = self._connected()
                if self._begins(connection):
                    done = self._carry_out(connection, row, rule, kind, values)
                    connection.execute("COMMIT")
                    return done
            if self._runtime.monotonic() >= until:
                raise StoreUnavailable(f"{self._place} cannot be used now (SQLITE_BUSY)")
            await self._runtime.sleep(PAUSE * (0.5 + self._runtime.random()))

    async def aclose(self) -> None:
        """Close the connection."""
        with _turn:
            self._close()

    def forked(self) -> None:
        """Begin anew in a forked child. The parent's connection is kept, so that it is never closed here."""
        _INHERITED.append(self._connection)
        self._connection = None

    def _begins(self, connection: sqlite3.Connection) -> bool:
        """Begin a transaction; False while another process has one.

        SQLite's own pauses grow to 0.1 s, and many processes would keep one waiting for seconds.
        """
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        finally:
            connection.execute(_BUSY_TIMEOUT)
        return True

    def _carry_out(
        self, connection: sqlite3.Connection, row: LimitRow, rule: RowRule, kind: str, values: dict[str, Any]
    ) -> tuple[Any, float]:
        place, now = attrs.astuple(row), self._now(connection)
        found = connection.execute(_READ, place).fetchone()
        with self._reading(row):
            state = rule.read(json.loads(found[0]) if found else None)
            state, answer = rule.change(state, kind, values, now, 0.0)
            content = json.dumps(rule.write(state))
        connection.execute(_WRITE, (*place, content))
        return answer, now

    def _now(self, connection: sqlite3.Connection) -> float:
        """Advance the store's clock."""
        clocks = self._boot, self._runtime.boottime(), self._runtime.now().timestamp()
        found = connection.execute(_READ_CLOCK).fetchone()
        reading = ClockReading(*found).after(*clocks) if found else ClockReading(*clocks, value=clocks[2])
        connection.execute(_SET_CLOCK, attrs.astuple(reading))
        return reading.value

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Context of a transaction: a failure ends it with its connection, and is explained."""
        try:
            yield
        except BaseException as error:
            self._close()
            if isinstance(error, sqlite3.Error):
                raise self._error(error) from None
            if isinstance(error, OSError):
                raise StoreUnavailable(f"{self._place} cannot be used now ({error.strerror})") from None
            raise

    def _error(self, error: sqlite3.Error) -> Exception:
        """The error for one of SQLite's."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without its details
        if code in _DAMAGED:
            return ConfigurationError(
                f"{self._place} is damaged, or no database: {_ELSEWHERE}, or move the file away; what it "
                "counted is forgotten then"
            )
        return StoreUnavailable(f"{self._place} cannot be used now ({error.sqlite_errorname})")

    # The file

    def _connected(self) -> sqlite3.Connection:
        """The connection to the file that is at the path now: what is written to a removed one is lost."""
        if self._connection is None and (kind := network_file_system(self._path)) is not None:
            raise ConfigurationError(
                f"{self._place} lies on a file system of type {kind}: put it on a local disk"
            )
        file = self._checked()
        if self._connection is None or file != self._file:
            self._close()
            self._connection = sqlite3.connect(
                f"{Path(self._path).as_uri()}?mode=rw", uri=True, timeout=PATIENCE, isolation_level=None
            )
            self._prepare(self._connection)
            self._file = file
        return self._connection

    def _checked(self) -> tuple[int, int]:
        """Check the file, or make it. Returns what identifies it.

        It is not opened for that: to close a handle to a file ends SQLite's locks on it in this process.
        """
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            self._make()
            found = os.stat(self._path)
        if (problem := problem_of(found, os.geteuid())) is not None:
            raise ConfigurationError(f"{self._place} {problem}")
        return found.st_dev, found.st_ino

    def _make(self) -> None:
        try:
            with suppress(FileExistsError):  # another process has made it
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except (FileNotFoundError, PermissionError) as error:
            raise ConfigurationError(
                f"{self._place} cannot be made ({error.strerror}): make its folder, writable by this user"
            ) from None

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Refuse another's file, set the connection up, and make the tables when there are none."""
        is_made = self._is_made(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        if is_made:
            return
        connection.execute("BEGIN IMMEDIATE")
        if not self._is_made(connection):  # nor by another process meanwhile
            for statement in _TABLES:
                connection.execute(statement)
        connection.execute("COMMIT")

    def _is_made(self, connection: sqlite3.Connection) -> bool:
        """Whether the tables are there. Raises ConfigurationError for those of another application."""
        application, form, tables = connection.execute(_MARKS).fetchone()
        if not (application or form or tables):
            return False
        if application != APPLICATION_ID:
            raise ConfigurationError(f"{self._place} is a database of another application: {_ELSEWHERE}")
        if form > FORM:
            raise ConfigurationError(
                f"{self._place} has form {form}, newer than {FORM}: update this library, or {_ELSEWHERE}"
            )
        return True

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def problem_of(found: os.stat_result, user: int) -> str | None:
    """Why a file may not be a store of a user's processes, and what to do; None if it may."""
    if not stat.S_ISREG(found.st_mode):
        return f"is no regular file: {_ELSEWHERE}"
    if found.st_nlink > 1:
        return "has a second name (a hard link): remove one of them"
    if found.st_uid != user:
        return f"belongs to another user: run as its owner, or {_ELSEWHERE}"
    if found.st_mode & 0o077:
        return f"may be used by others than its owner (mode {found.st_mode & 0o777:03o}): chmod 600 it"
    return None


def _boot_id() -> str:
    with suppress(OSError):
        return Path(BOOT_ID).read_text(encoding="ascii").strip()
    return ""


@renewed_in_child
def _after_fork() -> None:
    for each in _stores:
        each.forked()


_turn: Final = held_during_fork()
_INHERITED: Final[list[object]] = []
"""The parent's connections."""
_stores: Final[WeakSet[SQLiteStore]] = WeakSet()
