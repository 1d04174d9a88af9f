"""The files of a ledger, which no output may replace."""

from __future__ import annotations

import os
from typing import Final

from .errors import BulkError

_LEDGER_SUFFIXES: Final = ("", "-wal", "-shm", "-journal")


def refuse_ledger_files(target: str | os.PathLike[str], ledger: str) -> None:
    """Raise BulkError when `target` is the ledger at this path, or a file that belongs to it."""
    if os.path.realpath(target) in {os.path.realpath(ledger + suffix) for suffix in _LEDGER_SUFFIXES}:
        raise BulkError(f"{os.fspath(target)}: is the ledger's own file; choose another path")


def refuse_existing(target: str | os.PathLike[str], way_out: str = "name another file") -> None:
    """Raise BulkError for an existing file: it may be an earlier result."""
    if os.path.lexists(target):
        raise BulkError(f"{os.fspath(target)}: exists already; {way_out}")
