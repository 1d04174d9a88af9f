"""One run per ledger: a locked file beside it, `LEDGER.lock`, which also records its last commit.

The lock belongs to the open file (`flock`), so it ends with its process, however that ended.
It is not put on the ledger itself: SQLite's own locks on a file end when the process closes any handle to it.

Its record of the last commit is a second one. It is written after each commit, without waiting for the
disk: once a process has died it is never ahead of the ledger, unless the ledger lost commits.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, Self

import attrs

from ...ledger_errors import LedgerLocked, LedgerReadOnly

_SIZE: Final = 4096
"""One block, more than any record: written over in place, it needs no room on a full disk."""


@attrs.frozen
class HighWater:
    """The ledger's last commit, as recorded in its lock file."""

    batch_id: str
    ends: Sequence[tuple[int, int, str]]
    """(chunk, number of its last entry, that entry's hash, hexadecimal)."""


def emptied(mark: HighWater) -> str:
    """The finding for a ledger that holds no batch although its lock file records one."""
    *_, (_, entry, _) = mark.ends
    return f"holds nothing, while its .lock says that entry {entry} of batch {mark.batch_id} was committed"


@attrs.define
class LedgerLock:
    """A held lock. `release()` gives it back, and so does the end of the process."""

    path: str
    _descriptor: int
    _pid: int
    _since: float
    mark: HighWater | None
    """The record of the ledger's last use; None when there is none, or it cannot be read."""
    _read_only: bool = False

    @classmethod
    def acquire(cls, ledger: str, *, pid: int, since: float, read_only: bool = False) -> Self:
        """Take the lock of the ledger at this path; `read_only`: for a moment, to read the ledger.

        Raises LedgerLocked, LedgerReadOnly.
        """
        path = f"{ledger}.lock"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise LedgerReadOnly(ledger, f"its lock cannot be written ({error.strerror})") from None
        record = _read(descriptor)
        if not _locked(descriptor):
            os.close(descriptor)
            read_only = record.get("read_only") is True
            raise LedgerLocked(ledger, pid=_pid_of(record), since=_since_of(record), read_only=read_only)
        lock = cls(path, descriptor, pid, since, _mark_of(_read(descriptor)), read_only)
        lock._write(lock.mark)
        return lock

    def note(self, mark: HighWater | None) -> None:
        """Record the ledger's last commit; None when there is no ledger."""
        self._write(mark)
        if self.mark is None and mark is not None:  # synced: that a batch exists must survive a power cut
            with contextlib.suppress(OSError):
                os.fsync(self._descriptor)
        self.mark = mark

    def release(self) -> None:
        """Release the lock. The file stays: to remove it would let two runs lock two files."""
        if os.getpid() == self._pid:  # a forked child holds the lock too, and would keep it after a close
            _unlock(self._descriptor)
        os.close(self._descriptor)

    def _write(self, mark: HighWater | None) -> None:
        seen = attrs.asdict(mark) if mark else None
        record = {"pid": self._pid, "since": self._since, "read_only": self._read_only, "mark": seen}
        text = json.dumps(record)
        with contextlib.suppress(OSError):  # a second record only: the ledger itself is what counts
            os.pwrite(self._descriptor, text.ljust(_SIZE - 1).encode() + b"\n", 0)


def _locked(descriptor: int) -> bool:
    import fcntl  # POSIX only, and the package is imported elsewhere too

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unlock(descriptor: int) -> None:
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_UN)


def _read(descriptor: int) -> dict[str, Any]:
    try:
        record = json.loads(os.pread(descriptor, _SIZE, 0))
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _pid_of(record: dict[str, Any]) -> int | None:
    pid = record.get("pid")
    return pid if isinstance(pid, int) else None


def _since_of(record: dict[str, Any]) -> datetime | None:
    since = record.get("since")
    with contextlib.suppress(ArithmeticError, OSError, ValueError):
        return datetime.fromtimestamp(since, UTC) if isinstance(since, float) else None
    return None


def _mark_of(record: dict[str, Any]) -> HighWater | None:
    try:
        mark = HighWater(**record["mark"])
        ends = [(int(chunk), int(entry), head) for chunk, entry, head in mark.ends]
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return None
    return HighWater(mark.batch_id, ends) if ends else None
