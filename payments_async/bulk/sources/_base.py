"""The base of every source of rows: its rows, their hash, and signs that it has changed.

Also reads the lines of a text file in bounded memory.
"""

from __future__ import annotations

import codecs
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final, TextIO

import attrs

from ..errors import SourceUnreadable
from ._requests import RowMaker, SourceItem

SAMPLE: Final = 65_536
"""Bytes of each end of a file that are hashed by `stat`."""


@attrs.frozen
class FileStat:
    """Facts of a file that need no full reading. A file whose facts are equal is not parsed again."""

    size: int
    """Bytes."""
    mtime_ns: int
    """When it was last written, nanoseconds since 1970."""
    head: str
    """SHA-256 of its first 64 KiB, hexadecimal."""
    tail: str
    """SHA-256 of its last 64 KiB, hexadecimal."""
    form: str = ""
    """How it is read: the digest of its columns' mapping, a workbook's sheet; "" without either."""


class Source(ABC):
    """Rows to be paid, from anywhere. Reading is lazy: a million rows take the memory of a few."""

    name: str
    """The file's path, or what to call the rows in messages."""
    columns: tuple[str, ...] = ()
    """The names under which `RowFault.original` shows a row; known once reading has begun."""

    def __init__(self) -> None:
        self._fingerprint: str | None = None

    @abstractmethod
    def rows(self) -> AsyncIterator[SourceItem]:
        """Every row in order: a `Row`, or one or more `RowFault`s.

        Raises SourceUnreadable when the input cannot be read or not any further, and SourceErrors when
        its header is at fault. It does not wait between rows of a file: its reader lets others run.
        """

    @abstractmethod
    def stat(self) -> FileStat | None:
        """Facts that show a change without a full reading; None for rows that do not come from a file."""

    def fingerprint(self) -> str:
        """SHA-256 of the canonical input, hexadecimal, once `rows` was read to its end.

        It covers the rows' content: column order, line endings, a byte order mark and empty cells do not
        matter. Raises ValueError before that.
        """
        if self._fingerprint is None:
            raise ValueError("a source's fingerprint is known once its rows were read to the end")
        return self._fingerprint

    def _begin(self) -> RowMaker:
        self._fingerprint = None
        return RowMaker()


class FileSource(Source):
    """Rows of a regular file, which must not change while it is read."""

    def __init__(self, path: str | os.PathLike[str], *, form: str = "") -> None:
        """`form`: what `FileStat.form` says."""
        super().__init__()
        self.path: Path = Path(path)
        self.name: str = str(path)
        self._form = form

    def read(self) -> Iterator[SourceItem]:
        """Every row, for code that is not async. Gives and raises the same as `rows`."""
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
        """Facts that need no full reading of the file. Raises SourceUnreadable."""
        try:
            size, mtime_ns = self._seen()
            with self.path.open("rb") as file:
                head = file.read(SAMPLE)
                file.seek(max(0, size - SAMPLE))
                tail = file.read(SAMPLE)
        except OSError as error:
            raise self._unreadable(error) from error
        head_hash, tail_hash = (hashlib.sha256(end).hexdigest() for end in (head, tail))
        return FileStat(size, mtime_ns, head_hash, tail_hash, self._form)

    @abstractmethod
    def _items(self, maker: RowMaker) -> Iterator[SourceItem]:
        """The file's rows."""

    def _seen(self) -> tuple[int, int]:
        if self.path.exists() and not self.path.is_file():
            raise SourceUnreadable(self.name, "is not a regular file")
        seen = self.path.stat()
        return seen.st_size, seen.st_mtime_ns

    def _unreadable(self, error: OSError) -> SourceUnreadable:
        return SourceUnreadable(
            self.name,
            f"cannot be read ({error.strerror or type(error).__name__}); check its path and its rights",
        )


MAX_ROW: Final = 1_048_576
"""Characters of one row, its line breaks included: far above any payout, far below any memory."""

SAVE_AS: Final = "save it as Excel Workbook (.xlsx), or as CSV in UTF-8"
WORKBOOK: Final = f"is a spreadsheet's workbook, not a text file: {SAVE_AS}"

_UTF16: Final = "is UTF-16: save it as UTF-8"
_OTHERS: Final = {
    b"PK\x03\x04": WORKBOOK,
    b"\xd0\xcf\x11\xe0": WORKBOOK,  # .xls
    codecs.BOM_UTF16_LE: _UTF16,
    codecs.BOM_UTF16_BE: _UTF16,
    b"\x1f\x8b": "is packed with gzip: unpack it",
    b"<": f"is HTML or XML: open it in a spreadsheet, and {SAVE_AS}",
}
"""{how a file begins that is no UTF-8 text: what it is}."""


def open_text(path: Path, name: str) -> TextIO:
    """Open a file as UTF-8 text, behind its byte order marks; line endings are kept.

    Bytes that are not UTF-8 become lone surrogates, so that their rows can be named. Raises
    SourceUnreadable for what is no such text.
    """
    with path.open("rb") as file:
        start = file.read(512)
    text = start
    while text.startswith(codecs.BOM_UTF8):  # two, if a program adds its own to another's
        text = text[len(codecs.BOM_UTF8) :]
    others = (what for sign, what in _OTHERS.items() if text.lstrip().startswith(sign))
    if problem := next(others, _UTF16 if b"\0" in text[:4] else None):
        raise SourceUnreadable(name, problem, line=1)
    opened = path.open(encoding="utf-8", errors="surrogateescape", newline="")
    opened.seek(len(start) - len(text))
    return opened


class SourceLines:
    """The lines of a file. Raises SourceUnreadable for a row of more than `MAX_ROW` characters."""

    __slots__ = ("_name", "_next", "_row", "_size", "last", "number")

    def __init__(self, file: TextIO, name: str) -> None:
        self._next = file.readline
        self._name = name
        self._row = 1
        self._size = 0
        self.number = 0
        """Lines read so far."""
        self.last = ""
        """The last of them."""

    def begin_row(self) -> int:
        """Begin a row with the next line. Returns that line's number, from 1."""
        self._size = 0
        self._row = self.number + 1
        return self._row

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._next(MAX_ROW + 1)
        if not line:
            raise StopIteration
        self._size += len(line)
        if self._size > MAX_ROW:
            problem = (
                f"the row that begins here has more than {MAX_ROW} characters; is a quotation mark missing?"
            )
            raise SourceUnreadable(self._name, problem, line=self._row)
        self.number += 1
        self.last = line
        return line
