"""The file that a sandbox's state outlives it in: one SQLite row, replaced as a whole.

A transaction replaces it, so that a crash leaves the old state or the new one. SQLite's own lock keeps a
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

from ._clock import real_seconds
from ._snapshot import Unreadable, shape
from ._state_error import StateError

T = TypeVar("T")

EVERY: Final = 2.0
"""Seconds between two writings."""

_SHARE: Final = 20
"""Writing takes at most one part in so many of the time."""

_MARK: Final = 0x70617973
"""SQLite's application_id of such a file."""

log = logging.getLogger("payments.sandbox")


class StateFile:
    """One state on disk, held from construction to `close`. Callable from any thread, one at a time."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open or create it. `StateError` when it cannot be used."""
        self.path = Path(path)
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self._file = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as failure:
            raise StateError(f"{self.path} cannot be opened: {_reason(failure)}") from failure
        try:
            self._prepare()
        except sqlite3.Error as failure:
            self._file.close()
            raise StateError(f"{self.path}: {_reason(failure)}") from failure
        except StateError:
            self._file.close()
            raise

    def _prepare(self) -> None:
        self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._file.execute("BEGIN EXCLUSIVE")
        (mark,) = self._file.execute("PRAGMA application_id").fetchone()
        (tables,) = self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and mark != _MARK:
            raise StateError(f"{self.path} is another program's database")
        self._file.execute(f"PRAGMA application_id = {_MARK}")
        self._file.execute("CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY, shape TEXT, body BLOB)")
        self._file.execute("COMMIT")

    def read(self, reader: Callable[[bytes], T]) -> T | None:
        """What `reader` makes of the state, None in a new file; `StateError`, and closed, when it cannot."""
        try:
            body = self._load()
            return None if body is None else reader(body)
        except (Unreadable, sqlite3.Error) as damage:
            self.close()
            raise StateError(f"{self.path}: {damage}") from damage
        except StateError:
            self.close()
            raise

    def _load(self) -> bytes | None:
        row = self._file.execute("SELECT shape, body FROM state WHERE id = 1").fetchone()
        if row is None:
            return None
        if row[0] != shape():
            raise StateError(f"{self.path} was written by another version of payments-sdk: delete it")
        return bytes(row[1])

    def save(self, body: bytes) -> None:
        """Replace the state; `StateError` when it cannot be written, and the old one stays."""
        try:
            self._file.execute("INSERT OR REPLACE INTO state VALUES (1, ?, ?)", (shape(), body))
        except sqlite3.Error as failure:
            raise StateError(f"{self.path} cannot be written: {_reason(failure)}") from failure

    def close(self) -> None:
        """Leave it to whoever comes next."""
        self._file.close()


class Keeper:
    """Writes a state now and then, from a thread of its own.

    `freeze` gives it, None when nothing has changed since it gave the last one, unless its argument is true.
    """

    def __init__(self, file: StateFile, freeze: Callable[[bool], bytes | None]) -> None:
        self._file = file
        self._freeze = freeze
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._owes = False
        """Whether the last state that was given could not be written."""

    @property
    def is_over(self) -> bool:
        """Whether the file was left."""
        return self._ended.is_set()

    def start(self) -> None:
        """Begin to write every few seconds."""
        self._thread = threading.Thread(target=self._run, name="sandbox-state", daemon=True)
        self._thread.start()

    def save(self) -> None:
        """Write what has changed; `StateError` when it cannot be written."""
        with self._lock:
            body = self._freeze(self._owes)
            if body is not None:
                self._owes = True
                self._file.save(body)
                self._owes = False

    def stop(self) -> None:
        """Write for the last time and leave the file; `StateError` when that failed. Once is enough."""
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


def _reason(failure: OSError | sqlite3.Error) -> str:
    told = str(failure)
    with suppress(AttributeError):
        told = getattr(failure, "strerror") or told  # noqa: B009 - SQLite's errors have none
    if "locked" in told:
        return "another sandbox has it"
    return "it is no state of a sandbox" if "not a database" in told else told
