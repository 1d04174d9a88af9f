"""The state file of a sandbox: rows of an SQLite file, replaced as a whole.

A transaction replaces them, so that a crash leaves the old state or the new one. SQLite's own lock keeps a
second sandbox away. Written at the end, and every two seconds while something happens (less often when a
state is so large that writing it takes long): a crash loses that much. The file holds account data, so that
only its owner may read it.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from .._common.clock import real_seconds
from .._common.values import StateError
from .restore import Unreadable
from .rows import VERSION, StateRow

T = TypeVar("T")

EVERY: Final = 2.0
"""Seconds between two writings."""

_SHARE: Final = 20
"""Writing takes at most this fraction of the time: one part in so many."""

_MARK: Final = 0x70617973
"""SQLite's application_id of such a file."""

LOCKS: Final = Path("/proc/locks")
"""Linux's list of locks: process, kind and file."""

log: logging.Logger = logging.getLogger("payments.sandbox")


class StateFile:
    """One state on disk, held from construction to `close`. Callable from any thread, one at a time."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open or create it. `StateError` when it cannot be used."""
        self.path: Path = Path(path)
        try:
            with suppress(FileExistsError):  # a handle is kept: to close one would end our locks on the file
                made = os.path.realpath(self.path)  # O_EXCL follows no link, and SQLite would
                os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._refuse_exposed()
            self._file = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as failure:
            raise StateError(f"{self.path} cannot be opened: {_reason(failure, self.path)}") from failure
        try:
            self._prepare()
        except sqlite3.Error as failure:
            self._file.close()
            raise StateError(f"{self.path}: {_reason(failure, self.path)}") from failure
        except StateError:
            self._file.close()
            raise

    def _refuse_exposed(self) -> None:
        status = os.stat(self.path)
        mode = status.st_mode
        if os.name == "posix" and status.st_uid != os.geteuid():
            raise StateError(
                f"{self.path} belongs to another user (uid {status.st_uid}), who can read what is kept in it:"
                " name another file"
            )
        if os.name == "posix" and mode & 0o077:
            raise StateError(
                f"{self.path} may be used by others than its owner (mode {mode & 0o777:03o}), and a state"
                " holds keys and account data: chmod 600 it if you trust its content, else name another file"
            )

    def _prepare(self) -> None:
        self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._file.execute("BEGIN EXCLUSIVE")
        (mark,) = self._file.execute("PRAGMA application_id").fetchone()
        (tables,) = self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and mark != _MARK:
            raise StateError(f"{self.path} is another program's database: name another file")
        (version,) = self._file.execute("PRAGMA user_version").fetchone()
        if tables and version != VERSION:
            raise StateError(f"{self.path} was written by another version of payments-sdk: delete it")
        self._file.execute(f"PRAGMA application_id = {_MARK}")
        self._file.execute(f"PRAGMA user_version = {VERSION}")
        self._file.execute("CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY, kind TEXT, body BLOB)")
        self._file.execute("COMMIT")

    def read(self, reader: Callable[[list[StateRow]], T]) -> T | None:
        """Read the state with `reader`; None in a new file. Raises `StateError`, and closes the file then."""
        try:
            rows = self._file.execute("SELECT kind, body FROM state ORDER BY id").fetchall()
            return reader(rows) if rows else None
        except (Unreadable, sqlite3.Error) as damage:
            self.close()
            raise StateError(f"{self.path}: {damage}") from damage

    def save(self, rows: list[StateRow]) -> None:
        """Replace the state; `StateError` when it cannot be written, and the old one stays."""
        try:
            with self._file:  # commits, or rolls back
                self._file.execute("BEGIN")
                self._file.execute("DELETE FROM state")
                self._file.executemany("INSERT INTO state (kind, body) VALUES (?, ?)", rows)
        except sqlite3.Error as failure:
            raise StateError(f"{self.path} cannot be written: {_reason(failure, self.path)}") from failure

    def close(self) -> None:
        """Release the file for the next sandbox."""
        self._file.close()


class StateSaver:
    """Saves a state every few seconds, from its own thread.

    `dump` gives its rows, None when nothing has changed since it last gave them.
    """

    def __init__(self, file: StateFile, dump: Callable[[], list[StateRow] | None]) -> None:
        self._file = file
        self._dump = dump
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._unwritten: list[StateRow] | None = None

    @property
    def is_over(self) -> bool:
        """True if the file was released."""
        return self._ended.is_set()

    def start(self) -> None:
        """Start to save every few seconds."""
        self._thread = threading.Thread(target=self._run, name="sandbox-state", daemon=True)
        self._thread.start()

    def save(self) -> None:
        """Save the state if it has changed; `StateError` when it cannot be written."""
        with self._lock:
            self._unwritten = self._dump() or self._unwritten
            if self._unwritten is not None:
                self._file.save(self._unwritten)
            self._unwritten = None

    def stop(self) -> None:
        """Save for the last time and release the file; `StateError` when that failed."""
        if self._ended.is_set():
            return
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self.save()
        finally:
            self._file.close()

    def _run(self) -> None:
        pause = EVERY
        while not self._ended.wait(pause):
            began = real_seconds()
            try:
                self.save()
            except StateError as failure:
                log.warning("the sandbox's state is not kept for now: %s", failure)
            pause = max(EVERY, _SHARE * (real_seconds() - began))


def _reason(failure: OSError | sqlite3.Error, path: Path) -> str:
    reason = str(failure)
    with suppress(AttributeError):
        reason = getattr(failure, "strerror") or reason  # noqa: B009 - SQLite's errors have none
    if "locked" in reason:
        return f"another sandbox has it{_holder(path)}: stop that one, or name another file"
    if "not a database" in reason:
        return "it is no state of a sandbox: name another file, or delete this one if nothing needs it"
    return reason


def _holder(path: Path) -> str:
    """Name the process that has locked a file, if the system tells."""
    try:
        locks = LOCKS.read_text(encoding="ascii").splitlines()
        file = os.stat(path)
    except OSError:
        return ""
    inode = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    holders = (fields[4] for line in locks if inode in (fields := line.split()) and fields[4].isdigit())
    return next((f" (process {process})" for process in holders), "")
