"""What every source can do: give its rows, their hash, and what shows whether it changed."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import attrs

from ..errors import SourceUnreadable
from ._requests import RowMaker
from ._rows import SourceItem

SAMPLE: Final = 65_536
"""Bytes of each end of a file that are hashed by `stat`."""


@attrs.frozen
class FileStat:
    """What can be seen of a file without reading it all; equal means: no need to parse it again."""

    size: int
    """Bytes."""
    mtime_ns: int
    """When it was last written, nanoseconds since 1970."""
    head: str
    """SHA-256 of its first 64 KiB, hexadecimal."""
    tail: str
    """SHA-256 of its last 64 KiB, hexadecimal."""


class Source(ABC):
    """Rows to be paid, from anywhere. Reading is lazy: a million rows take the memory of a few."""

    name: str
    """The file's path, or what to call the rows in messages."""
    columns: tuple[str, ...] = ()
    """The names under which `RowFault.original` shows a row; known once reading has begun."""

    def __init__(self, *, strict_amounts: bool = False) -> None:
        self._strict_amounts = strict_amounts
        self._fingerprint: str | None = None

    @abstractmethod
    def rows(self) -> AsyncIterator[SourceItem]:
        """Every row in order: a `Row`, or one or more `RowFault`s.

        Raises SourceUnreadable when the input cannot be read or not any further, and SourceErrors when
        its header is at fault. It does not wait between rows of a file: the reader's own awaits, such as
        committing a chunk of rows, let others run.
        """

    @abstractmethod
    def stat(self) -> FileStat | None:
        """What shows a change without reading it all; None for rows that do not come from a file."""

    def fingerprint(self) -> str:
        """SHA-256 of the canonical input, hexadecimal, once `rows` was read to its end.

        It is of what the rows say: column order, line endings, a byte order mark and empty cells do not
        matter. Raises ValueError before that.
        """
        if self._fingerprint is None:
            raise ValueError("a source's fingerprint is known once its rows were read to the end")
        return self._fingerprint

    def _begin(self) -> RowMaker:
        self._fingerprint = None
        return RowMaker(strict_amounts=self._strict_amounts)


class FileSource(Source):
    """Rows of a regular file, which must not change while it is read."""

    def __init__(self, path: str | os.PathLike[str], *, strict_amounts: bool = False) -> None:
        super().__init__(strict_amounts=strict_amounts)
        self.path: Path = Path(path)
        self.name: str = str(path)

    def read(self) -> Iterator[SourceItem]:
        """What `rows` gives, for code that is not async; it raises the same."""
        maker = self._begin()
        try:
            before = self._seen()
            yield from self._items(maker)
            changed = self._seen() != before
        except OSError as error:
            raise self._unreadable(error) from error
        if changed:
            raise SourceUnreadable(self.name, "changed while it was read: read it again")
        self._fingerprint = maker.fingerprint.hexdigest()

    async def rows(self) -> AsyncIterator[SourceItem]:
        """Every row in order: a `Row`, or one or more `RowFault`s. Raises as `Source.rows` does."""
        for item in self.read():
            yield item

    def stat(self) -> FileStat:
        """What can be seen without reading it all. Raises SourceUnreadable."""
        try:
            size, mtime_ns = self._seen()
            with self.path.open("rb") as file:
                head = file.read(SAMPLE)
                file.seek(max(0, size - SAMPLE))
                tail = file.read(SAMPLE)
        except OSError as error:
            raise self._unreadable(error) from error
        return FileStat(size, mtime_ns, hashlib.sha256(head).hexdigest(), hashlib.sha256(tail).hexdigest())

    @abstractmethod
    def _items(self, maker: RowMaker) -> Iterator[SourceItem]:
        """The file's rows."""

    def _seen(self) -> tuple[int, int]:
        if self.path.exists() and not self.path.is_file():
            raise SourceUnreadable(self.name, "is not a regular file")
        seen = self.path.stat()
        return seen.st_size, seen.st_mtime_ns

    def _unreadable(self, error: OSError) -> SourceUnreadable:
        return SourceUnreadable(self.name, f"cannot be read ({error.strerror or type(error).__name__})")
