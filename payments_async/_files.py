"""Private files: written beside their place and put there whole, so that a reader never sees half of one."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

from ._runtime import SYSTEM

PAGE_SUFFIX: Final = ".page.json"
"""The end of the name of the file, beside a ledger, that says where the page of its run is."""
_ODD: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME: Final = 60


class AtomicFile:
    """Replaces a file when the context ends without an exception; only its owner may read it (mode 0600)."""

    def __init__(self, path: str | os.PathLike[str], *, durable: bool = True) -> None:
        self.path: Path = Path(path)
        self.part: Path = self.path.with_name(f"{self.path.name}.{SYSTEM.token(4).hex()}.part")
        """What is written until then. It has a name of its own: another process may write the same file."""
        self._durable = durable
        self.file: BinaryIO
        """The file to write to, within the context."""

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
                if kind is None and self._durable:
                    self.file.flush()
                    os.fsync(self.file.fileno())
            if kind is None:
                self.part.replace(self.path)
        finally:
            with suppress(FileNotFoundError):
                self.part.unlink()


def write_text(path: str | os.PathLike[str], text: str, *, durable: bool = True) -> None:
    """Replace a file's content by this text. `durable`: wait until it is on the disk. Raises OSError."""
    with AtomicFile(path, durable=durable) as whole:
        whole.file.write(text.encode())


def file_name(batch_id: str) -> str:
    """Make a batch's name the name of a file; one with other signs than letters and digits gets a hash."""
    plain = _ODD.sub("-", batch_id).strip(".-")[:_LONGEST_NAME] or "batch"
    return plain if plain == batch_id else f"{plain}-{hashlib.sha256(batch_id.encode()).hexdigest()[:8]}"
