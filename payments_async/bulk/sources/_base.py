"""The base of every source of rows: its rows, their hash, and signs that it has changed."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..errors import RowFault, SourceErrors, SourceUnreadable
from ._columns import ROW_KEY
from ._requests import RowMaker, SourceItem

_SAMPLE: Final = 65_536  # bytes of each end of a file that are hashed by `stat`


class Source(ABC):
    """Rows to be paid, from anywhere. Reading is lazy: a million rows take the memory of a few."""

    name: str
    """The file's path, or what to call the rows in messages."""
    columns: tuple[str, ...] = ()
    """The names under which `RowFault.original` shows a row; known once reading has begun."""
    _fingerprint: str | None = None

    @abstractmethod
    def rows(self) -> AsyncIterator[SourceItem]:
        """Every row in order: a `Row`, or one or more `RowFault`s.

        Raises SourceUnreadable when the input cannot be read or not any further, and SourceErrors when
        its header is at fault. It does not wait between rows of a file: its reader lets others run.
        """

    def stat(self) -> Mapping[str, Any]:
        """Facts that show a change without a full reading; none for rows that do not come from a file."""
        return {}

    def fingerprint(self) -> str:
        """SHA-256 of the canonical input, hexadecimal, once `rows` was read to its end.

        It covers the rows' content: column order, line endings, a byte order mark and empty cells do not
        matter. Raises ValueError before that.
        """
        if self._fingerprint is None:
            raise ValueError("a source's fingerprint is known once its rows were read to the end")
        return self._fingerprint

    def _begin(self, maker: RowMaker, columns: Sequence[str], faults: Sequence[RowFault]) -> None:
        """Take the columns of a header. Raises SourceErrors with its faults."""
        if faults:
            raise SourceErrors(self.name, faults, total=len(faults), rows=0)
        self.columns = tuple(columns)
        if ROW_KEY not in columns:
            maker.expect_no_keys()


class FileSource(Source):
    """Rows of a regular file, which must not change while it is read."""

    def __init__(self, path: str | os.PathLike[str], *, form: str = "") -> None:
        """`form`: how it is read; another form is another input, though the file is the same."""
        self.path: Path = Path(path)
        self.name: str = str(path)
        self._form = form

    def read(self) -> Iterator[SourceItem]:
        """Every row, for code that is not async. Gives and raises the same as `rows`."""
        self._fingerprint, maker = None, RowMaker()
        try:
            before = self._seen()
            yield from self._items(maker)
            changed = self._seen() != before
        except OSError as error:
            raise self._unreadable(error) from error
        if changed:
            raise SourceUnreadable(self.name, "changed while it was read: read it again")
        self._fingerprint = maker.fingerprint

    async def rows(self) -> AsyncIterator[SourceItem]:
        """Every row in order: a `Row`, or one or more `RowFault`s. Raises as `Source.rows` does."""
        for item in self.read():
            yield item

    def stat(self) -> dict[str, Any]:
        """Its size in bytes, when it was written, SHA-256 of both its ends, and how it is read.

        A file whose facts are equal is not parsed again. Raises SourceUnreadable.
        """
        try:
            size, mtime_ns = self._seen()
            with self.path.open("rb") as file:
                head = hashlib.sha256(file.read(_SAMPLE)).hexdigest()
                file.seek(max(0, size - _SAMPLE))
                tail = hashlib.sha256(file.read(_SAMPLE)).hexdigest()
        except OSError as error:
            raise self._unreadable(error) from error
        return {"size": size, "mtime_ns": mtime_ns, "head": head, "tail": tail, "form": self._form}

    @abstractmethod
    def _items(self, maker: RowMaker) -> Iterator[SourceItem]:
        """Every row of the file in order. Raises OSError where it cannot be read."""

    def _seen(self) -> tuple[int, int]:
        if self.path.exists() and not self.path.is_file():
            raise SourceUnreadable(self.name, "is not a regular file")
        seen = self.path.stat()
        return seen.st_size, seen.st_mtime_ns

    def _unreadable(self, error: OSError) -> SourceUnreadable:
        problem = f"cannot be read ({error.strerror or type(error).__name__}); check its path and its rights"
        return SourceUnreadable(self.name, problem)
