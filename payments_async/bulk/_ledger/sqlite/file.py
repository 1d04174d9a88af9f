"""The ledger's file in the operating system: owner, place, replacement, and the disk reserve.

When a ledger is opened, SQLite checks the structure of a small file. A large file is read once for blank
pages and compared with the length in its header; SQLite checks it only when one of these is wrong, because
its log may hold what the file lacks.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from typing import Final

import attrs

from ...._files import network_file_system
from ..._files import PARQUET_START, SQLITE_START
from ...ledger_errors import LedgerExposed, LedgerForeign, LedgerOnNetwork, LedgerReadOnly

APPLICATION_ID: Final = 0x70617964
"""Marks an SQLite file as a ledger of this package: `payd`."""

_MARK_AT: Final = 68  # where SQLite keeps a file's application id
_PAGE_SIZE_AT, _PAGES_AT = 16, 28  # big-endian, of 2 and of 4 bytes
_HEADER: Final = 100
_PAGE: Final = 4096  # SQLite's default, and ours
_BLOCK: Final = 1 << 20
CHECKED_WHOLE: Final = 32 << 20
"""Bytes: SQLite checks the structure of a file of this size in less than 0.1 s."""
_OF_ARCHIVE: Final = "choose another path; `payments payouts check` and DuckDB read an archive"
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def refuse_remote(path: str) -> None:
    """Raise LedgerOnNetwork when `path` is known to lie on a network file system."""
    if (kind := network_file_system(path)) is not None:
        raise LedgerOnNetwork(path, f"lies on a file system of type {kind}")


def prepare(path: str) -> bool:
    """Create the file, readable by its owner alone, or check an existing one. Returns True if it was created.

    Raises LedgerReadOnly, LedgerExposed or LedgerForeign; an existing file is only read.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        _make(path)
        return True
    _refuse_odd(path, found)
    return False


def remove(path: str) -> None:
    """Remove the file and those that SQLite keeps beside it. One that cannot be removed stays."""
    for ending in ("", "-wal", "-shm"):
        with contextlib.suppress(OSError):
            os.unlink(path + ending)


def _make(path: str) -> None:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise LedgerReadOnly(path, f"cannot be created ({error.strerror})") from None


def _refuse_odd(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise LedgerForeign(path, "is no regular file")
    if found.st_nlink > 1:
        raise LedgerForeign(path, "has a second name (a hard link), and a ledger must have one")
    try:
        with open(path, "rb") as file:
            start = file.read(_HEADER)
    except OSError as error:
        raise LedgerReadOnly(path, f"cannot be read ({error.strerror})") from None
    if start.startswith(PARQUET_START):
        raise LedgerForeign(path, "is a Parquet file, as an archive is, and no ledger", remedy=_OF_ARCHIVE)
    if start and not _is_ours(start):
        raise LedgerForeign(path, "is no ledger of this package")
    if found.st_mode & 0o077:
        raise LedgerExposed(path, f"others than its owner may use it (mode {found.st_mode & 0o777:03o})")


def _is_ours(start: bytes) -> bool:
    mark = int.from_bytes(start[_MARK_AT : _MARK_AT + 4])
    return start.startswith(SQLITE_START) and mark == APPLICATION_ID


def needs_check(path: str) -> bool:
    """True if SQLite has to check the file's structure before the ledger is used.

    Always, for a small file. For a large one, when pages of it are cut off or blank; it is read once for
    that, a gigabyte in about 0.3 s. Not to be called while SQLite has the file open: closing a handle to it
    ends the locks of the whole process. Raises LedgerReadOnly.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            return size <= CHECKED_WHOLE or _is_cut(file.read(_HEADER), size) or _has_blank_page(file)
    except OSError as error:
        raise LedgerReadOnly(path, f"cannot be read ({error.strerror})") from None


def _is_cut(header: bytes, size: int) -> bool:
    """True if the file is shorter than its own header says. Pages that only the log has do not count."""
    page = int.from_bytes(header[_PAGE_SIZE_AT : _PAGE_SIZE_AT + 2])
    return size < page * int.from_bytes(header[_PAGES_AT : _PAGES_AT + 4])


def _has_blank_page(file: io.FileIO) -> bool:
    """True if a run of zeros fills a page, which no page in use does."""
    block, blank = bytearray(_BLOCK), bytes(_PAGE)
    file.seek(0)
    while length := file.readinto(block):
        if block.find(blank, 0, length) >= 0:
            return True
    return False


@attrs.define
class FileWatch:
    """Detects that files in use were deleted or replaced, so that what is written to them is lost."""

    paths: tuple[str, ...]
    _seen: dict[str, tuple[int, int]] = attrs.field(factory=dict)

    def gone(self) -> str | None:
        """Find the first file that was deleted or replaced; None when all are the same."""
        for path in self.paths:
            try:
                found = os.stat(path)
            except OSError:
                if path in self._seen:
                    return path
                continue
            if self._seen.setdefault(path, (found.st_dev, found.st_ino)) != (found.st_dev, found.st_ino):
                return path
        return None


@attrs.frozen
class DiskReserve:
    """Room kept on the disk, so that outcomes of sent payouts can be recorded when it is full."""

    path: str
    size: int
    """Bytes."""

    def ready(self) -> bool:
        """Create the reserve if it is missing. Returns False when there is no room for it.

        Raises LedgerForeign for a link, and LedgerReadOnly for a file that cannot be written.
        """
        with contextlib.suppress(OSError):
            found = os.lstat(self.path)
            if stat.S_ISLNK(found.st_mode):
                problem = "is a link, which keeps no room on the disk (remove it to use this ledger)"
                raise LedgerForeign(self.path, problem)
            if found.st_size == self.size:
                return True
        try:
            self._fill()
        except OSError as error:
            self.drop()
            if error.errno in _NO_ROOM:
                return False
            raise LedgerReadOnly(self.path, f"cannot be written ({error.strerror})") from None
        return True

    def drop(self) -> bool:
        """Free the reserve. Returns False when there was none."""
        try:
            os.unlink(self.path)
        except OSError:
            return False
        return True

    def _fill(self) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb") as file:
            file.write(b"\xa5" * self.size)  # written out, because a sparse file would take no room
            file.flush()
            os.fsync(descriptor)
