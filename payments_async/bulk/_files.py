"""A file that appears whole or not at all, and that only its owner may read."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self


class WholeFile:
    """Written beside its place, and put there when the context ends without an exception (mode 0600)."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Path = Path(path)
        self._part = self.path.with_name(f"{self.path.name}.part")
        self.file: BinaryIO
        """What is written to, within the context."""

    def __enter__(self) -> Self:
        """Begin the file. Raises OSError where it cannot be written."""
        with suppress(FileNotFoundError):
            self._part.unlink()
        descriptor = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self.file = os.fdopen(descriptor, "wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put the file in its place, or nothing after an exception. Raises OSError, and leaves no part."""
        try:
            with self.file:
                if kind is None:
                    self.file.flush()
                    os.fsync(self.file.fileno())
            if kind is None:
                self._part.replace(self.path)
        finally:
            with suppress(FileNotFoundError):
                self._part.unlink()
