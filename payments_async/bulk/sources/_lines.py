"""Lines of a text file, in bounded memory, whatever is in it."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

from ..errors import SourceUnreadable

MAX_ROW: Final = 1_048_576
"""Characters of one row, its line breaks included: far above any payout, far below any memory."""

_OTHER_ENCODINGS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def open_text(path: Path, name: str) -> TextIO:
    """A file as UTF-8 text with or without a byte order mark, its line endings kept.

    Bytes that are not UTF-8 become lone surrogates, so that their rows can be named. Raises
    SourceUnreadable for UTF-16.
    """
    with path.open("rb") as file:
        if file.read(2) in _OTHER_ENCODINGS:
            raise SourceUnreadable(name, "is UTF-16: save it as UTF-8", line=1)
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")


class Lines:
    """The lines of a file. Raises SourceUnreadable for a row of more than `MAX_ROW` characters."""

    __slots__ = ("_name", "_next", "_row", "_size", "number")

    def __init__(self, file: TextIO, name: str) -> None:
        self._next = file.readline
        self._name = name
        self._row = 1
        self._size = 0
        self.number = 0
        """Lines read so far."""

    def begin_row(self) -> int:
        """Say that a row begins with the next line. Gives that line's number, from 1."""
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
        return line
