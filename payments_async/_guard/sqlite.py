"""Sums in SQLite: in a file for the processes of one user on one host, or in the memory of one process.

The journal is for rollback, because SQLite 3.40 may corrupt a write-ahead log that two connections use. It is
truncated, not deleted: SQLite syncs only that, so a commit outlives a power cut.

A fork waits for a transaction. A child inherits what SQLite knows of this process's locks; in the midst of a
transaction it would find the file locked for ever.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from .._files import network_file_system
from .._runtime import Runtime, has_modes, held_during_fork
from ..errors import ConfigurationError
from .clocks import Clocks, ticks
from .progress_note import noted
from .state import StateUnavailable, SumsState, T
from .sums import TABLES

APPLICATION: Final = 0x70617962  # marks an SQLite file as a guard's: `payb`
FORM: Final = 3  # the form of its tables, SQLite's `user_version`
PATIENCE: Final = 2.0  # seconds for which a transaction waits for another process's
PAUSE: Final = 0.003
"""Seconds, on average, after which a process asks again for a file that another one has: about one commit."""
_MARKS: Final = (
    "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
    "FROM pragma_application_id, pragma_user_version"
)
_MAKE: Final = (*TABLES, f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {FORM}")
_DAMAGED: Final = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_ELSEWHERE: Final = "choose another path"
_turn: Final = held_during_fork()


class _SQLiteState(SumsState):
    lock = _turn

    def _run(self, statement: str, **values: Any) -> Any:
        return self._connection.execute(statement.removesuffix(" FOR UPDATE"), values)  # it has it all


class MemoryState(_SQLiteState):
    place: str = "this process"

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        for statement in TABLES:
            self._connection.execute(statement)

    def clocks(self) -> Clocks:
        """The clock of this process, which alone reads it."""
        return Clocks(boot=self.place, ticks=ticks(self._runtime), clock=0.0, wall=0.0)

    def tell(self, work: Callable[[], object]) -> None:
        """Do work at once: nobody else has the memory."""
        work()

    async def ask(self, work: Callable[[], T], seconds: float) -> T:
        """Do work at once."""
        return work()

    def close(self) -> None:
        """Undo what is under way, and leave it open: it would be lost."""
        self._connection.rollback()

    def forked(self) -> None:
        """Keep what was counted until the fork."""

    def _begin(self) -> None:
        self._connection.execute("BEGIN")


class FileState(_SQLiteState):
    """Sums in a file, which is made when it is first used and belongs to its owner alone."""

    def __init__(self, path: str, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.place: str = os.path.realpath(path)  # one file under two names is one state
        self._file = (0, 0)

    def reached(self, account: str) -> int:
        """How far a guard's sums had come."""
        return noted(self.place, account)

    def note(self, account: str, serial: int) -> None:
        """Note how far they have come."""
        noted(self.place, account, serial)

    def close(self) -> None:
        """Close the connection, once nothing is done with it: SQLite crashes where one is closed in use."""
        with self.lock:
            super().close()

    def _begin(self) -> None:
        """Begin a transaction with the file to itself: whoever comes meanwhile waits before it reads.

        SQLite's own pauses grow to 0.1 s, and many processes would keep one waiting for seconds.
        """
        connection = self._connected()
        until = self._runtime.monotonic() + PATIENCE
        connection.execute("PRAGMA busy_timeout = 0")
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                break
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or self._runtime.monotonic() > until:
                    raise
            threading.Event().wait(PAUSE * (0.5 + self._runtime.random()))
        connection.execute(f"PRAGMA busy_timeout = {PATIENCE * 1000:.0f}")  # for those that only read
        if not self._has_tables(connection):
            for statement in _MAKE:
                connection.execute(statement)

    def _told(self, error: BaseException) -> BaseException:
        if isinstance(error, OSError):
            return StateUnavailable(f"{self.place} cannot be used now ({error.strerror})")
        if not isinstance(error, sqlite3.Error):
            return super()._told(error)
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _DAMAGED:
            return ConfigurationError(
                f"{self.place} is damaged, or no database: {_ELSEWHERE}, or move the file away; what it "
                "counted is forgotten then"
            )
        return StateUnavailable(f"{self.place} cannot be used now ({error.sqlite_errorname})")

    def _connected(self) -> sqlite3.Connection:
        """The connection to the file that is at the path now: what is written to a removed one is lost."""
        if self._connection is None and (kind := network_file_system(self.place)) is not None:
            raise ConfigurationError(
                f"{self.place} lies on a file system of type {kind}: put it on a local disk"
            )
        file = self._checked()
        if self._connection is None or file != self._file:
            self.close()
            address = f"{Path(self.place).as_uri()}?mode=rw"
            self._connection = sqlite3.connect(
                address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            self._has_tables(self._connection)  # another's file is not touched
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("PRAGMA journal_mode = TRUNCATE")
            self._file = file
        found: sqlite3.Connection = self._connection
        return found

    def _checked(self) -> tuple[int, int]:
        """Check the file, or make it. Returns what identifies it.

        It is not opened for that: to close a handle to a file ends SQLite's locks on it in this process.
        """
        if not os.path.exists(self.place):
            try:
                with suppress(FileExistsError):  # another process has made it
                    os.close(os.open(self.place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            except (FileNotFoundError, PermissionError) as error:
                raise ConfigurationError(
                    f"{self.place} cannot be made ({error.strerror}): make its folder, writable by this user"
                ) from None
        found = os.stat(self.place)
        if (problem := _problem_of(found)) is not None:
            raise ConfigurationError(f"{self.place} {problem}")
        return found.st_dev, found.st_ino

    def _has_tables(self, connection: sqlite3.Connection) -> bool:
        """Whether there are tables. Raises ConfigurationError for those of another application."""
        application, form, tables = connection.execute(_MARKS).fetchone()
        is_made = bool(application or form or tables)
        if is_made and (application, form) != (APPLICATION, FORM):
            other = "application" if application != APPLICATION else "version of this library"
            raise ConfigurationError(f"{self.place} is a database of another {other}: {_ELSEWHERE}")
        return is_made


def _problem_of(found: os.stat_result) -> str | None:
    """Why a file may not be the state of a user's processes, and what to do; None if it may."""
    if not stat.S_ISREG(found.st_mode):
        return f"is no regular file: {_ELSEWHERE}"
    if found.st_nlink > 1:
        return "has a second name (a hard link): remove one of them"
    if not has_modes():
        return None
    if found.st_uid != os.geteuid():
        return f"belongs to another user: run as its owner, or {_ELSEWHERE}"
    if found.st_mode & 0o077:
        return f"may be used by others than its owner (mode {found.st_mode & 0o777:03o}): chmod 600 it"
    return None
