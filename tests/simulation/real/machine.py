"""The computer under the processes: SQLite without threads, locks, a disk that fills up, sudden death.

SQLite is the real one, on real files. Each call of aiosqlite runs at once or at a seeded later turn of the
simulated loop, so that one thread does all and a seed fixes the order. When a process is killed, its files
stay as they are on the disk, hot journals included, its connections go, and the kernel takes its locks back.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import aiosqlite

from payments_async.bulk._ledger.sqlite import connection
from payments_async.bulk._ledger.sqlite.file import DiskReserve
from payments_async.bulk._ledger.sqlite.lock import LedgerLock

from ..loop import SimulatedLoop, current_host
from .desk import Desk, NoThread, Opened

_BALLAST = 4096
_INTENTS = ("claim", "resend")


class Machine:
    """All files and what has them open."""

    def __init__(
        self,
        loop: SimulatedLoop,
        seed: object,
        note: Callable[[str], None],
        committed: Callable[[str, sqlite3.Connection], None],
    ) -> None:
        """`committed` is called with the file and its connection after each commit that changed it."""
        self._loop, self._note, self._committed = loop, note, committed
        self._random = random.Random(f"{seed}:disk").random
        self._opened: list[Opened] = []
        self._locks: list[tuple[str, LedgerLock]] = []
        self._full: dict[str, bool] = {}
        """Processes whose disk is full, and whether even the ballast will not help."""
        self.healthy = False

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Put this machine under the real code."""
        acquire, release, fill = LedgerLock.acquire.__func__, LedgerLock.release, DiskReserve._fill  # type: ignore[attr-defined] # a class method's function

        def acquired(cls: Any, /, ledger: str, **facts: Any) -> LedgerLock:
            lock: LedgerLock = acquire(cls, ledger, **facts)
            self._locks.append((current_host(), lock))
            return lock

        def released(lock: LedgerLock) -> None:
            if any(each is lock for _, each in self._locks):
                self._locks = [(host, each) for host, each in self._locks if each is not lock]
                release(lock)

        def filled(ballast: DiskReserve) -> None:
            if current_host() in self._full:
                raise OSError(errno.ENOSPC, "full")
            fill(ballast)

        with (
            patch.object(aiosqlite, "connect", self._connect),
            patch.object(connection, "RESERVE_SIZE", _BALLAST),
            patch.object(LedgerLock, "acquire", classmethod(acquired)),
            patch.object(LedgerLock, "release", released),
            patch.object(DiskReserve, "_fill", filled),
        ):
            yield

    def left_open(self, host: str) -> bool:
        """Whether a process that has ended kept a lock or a connection."""
        return any(each == host for each, _ in self._locks) or bool(self._of(host))

    def kill(self, host: str) -> None:
        """What the kernel does for a process that is no more."""
        for opened in self._of(host):
            files = [f"{opened.path}{end}" for end in ("", "-wal", "-journal")]
            kept = {path: _content(path) for path in files}
            opened.dead = True
            if opened.raw is not None:
                opened.raw.close()
            opened.adapter._connection = None
            for path, content in kept.items():
                _restore(path, content)
        for each, lock in self._locks:
            if each == host:
                os.close(lock._descriptor)
        self._locks = [(each, lock) for each, lock in self._locks if each != host]

    def _of(self, host: str) -> list[Opened]:
        return [
            each for each in self._opened if each.host == host and not each.dead and each.adapter._running
        ]

    def _connect(self, database: str, *, iter_chunk_size: int = 64, **options: Any) -> Any:
        def connector() -> sqlite3.Connection:
            opened.raw = sqlite3.connect(database, **options)
            return opened.raw

        adapter = aiosqlite.Connection(connector, iter_chunk_size)
        opened = Opened(current_host(), database, adapter)
        self._opened.append(opened)
        adapter._tx = Desk(self, opened)  # type: ignore[assignment] # put_nowait is all that is used
        adapter._thread = NoThread()  # type: ignore[assignment] # start is all that is used
        return adapter

    # What a commit meets

    def delay(self) -> float:
        """Seconds that a commit takes before it happens, or before its program is told."""
        draw = self._random()
        return 0.0 if draw < 0.5 else 2.0 * self._random() if draw > 0.99 else 0.02 * self._random()

    def later(self, seconds: float, callback: Callable[[], None]) -> None:
        """The disk goes on, unless its process dies."""
        self._loop.call_later(seconds, callback)

    def commit(self, opened: Opened, function: Callable[[], Any]) -> Any:
        """Commit, or fail in one of the ways a disk has."""
        raw = opened.raw
        assert raw is not None
        if raw.total_changes == opened.changes:
            return function()
        kept, error = (True, None) if self.healthy else self._fate(opened, raw)
        if kept:
            function()
            opened.changes = raw.total_changes
            self._committed(opened.path, raw)
        if error is not None:
            raise error
        return None

    def _fate(self, opened: Opened, raw: sqlite3.Connection) -> tuple[bool, Exception | None]:
        """Whether it gets to the disk, and what SQLite says."""
        draw, kind = self._random(), _kind(raw)
        if kind is None:
            return True, None
        if draw < 0.006:
            self._note("error of commit")
            return draw < 0.003, _failed(sqlite3.SQLITE_IOERR, "disk I/O error")
        if draw < 0.02:
            self._full.setdefault(opened.host, draw < 0.009)
        if opened.host not in self._full:
            return True, None
        if kind in _INTENTS:
            self._note("disk full at intent")
        elif os.path.exists(f"{opened.path}.ballast") or self._full[opened.host]:
            self._note("disk full at outcome")
        else:
            self._note("the ballast made room")
            return True, None
        return False, _failed(sqlite3.SQLITE_FULL, "database or disk is full")


def _kind(raw: sqlite3.Connection) -> str | None:
    """What the transaction about to be committed is for; None before there is a ledger."""
    try:
        found = raw.execute("SELECT kind FROM entries ORDER BY wall DESC, chunk DESC LIMIT 1").fetchone()
    except sqlite3.OperationalError:
        return None
    return None if found is None else str(found[0])


def _failed(code: int, text: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _restore(path: str, content: bytes | None) -> None:
    if content is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    else:
        with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(content)
