"""Private files, put in their place whole, so that a reader never sees half of one; and file systems."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

from ._runtime import SYSTEM

MOUNTS: Final = "/proc/self/mountinfo"
"""Where Linux lists the file systems that are mounted."""
_ESCAPES: Final = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))

NETWORK_FILE_SYSTEMS: Final = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs"}
    | {"nfs4", "ocfs2", "orangefs", "panfs", "smb2", "smb3", "smbfs", "virtiofs", "vboxsf", "fuse"}
)
"""File systems with unreliable locks or synced writes. `fuse.*` counts too, as its backend is unknown."""


class AtomicFile:
    """Replaces a file when the context ends without an exception; only its owner may read it (mode 0600)."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Path = Path(path)
        self.part: Path = self.path.with_name(f"{self.path.name}.{SYSTEM.token(4).hex()}.part")
        """What is written until then. It has a name of its own: another process may write the same file."""
        self.file: BinaryIO  # the file to write to, within the context

    def __enter__(self) -> Self:
        """Begin the file. Raises OSError where it cannot be written."""
        descriptor = os.open(self.part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self.file = os.fdopen(descriptor, "wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Move the file into place; after an exception, remove it. Raises OSError, and leaves no part."""
        try:
            with self.file:
                if kind is None:
                    self.file.flush()
                    os.fsync(self.file.fileno())
            if kind is None:
                self.part.replace(self.path)
        finally:
            with suppress(FileNotFoundError):
                self.part.unlink()


def network_file_system(path: str) -> str | None:
    """The type of the network file system that an absolute path lies on; None for a local or unknown one."""
    try:
        with open(MOUNTS, encoding="utf-8", errors="replace") as file:
            kind = file_system(path, file.read())
    except OSError:
        return None  # not Linux
    is_remote = kind is not None and kind.split(".", 1)[0] in NETWORK_FILE_SYSTEMS  # an unknown one may do
    return kind if is_remote else None


def file_system(path: str, mountinfo: str) -> str | None:
    """Find the type of file system of an absolute path in Linux's mountinfo; None when it is not listed."""
    best, found = -1, None
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = fields[4]
        for escape, meant in _ESCAPES:
            point = point.replace(escape, meant)
        if len(point) >= best and f"{path}/".startswith(point.rstrip("/") + "/"):
            best, found = len(point), right.split(" ", 1)[0]
    return found
