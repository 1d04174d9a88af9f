"""Files of a batch that nothing else may be written over: its ledger, those beside it, its input."""

from __future__ import annotations

import os
from typing import Final

from ..errors import BulkError
from ..sources import Source

_COMPANIONS: Final = ("", ".lock", ".status.json", ".ballast", "-wal", "-shm", "-journal")


def refuse_ledger_files(target: str | os.PathLike[str], ledger: str) -> None:
    """Raise BulkError when `target` is the ledger at this path, or a file that belongs to it."""
    if os.path.realpath(target) in {os.path.realpath(ledger + ending) for ending in _COMPANIONS}:
        raise BulkError(f"{os.fspath(target)}: is the ledger's own file; choose another path")


def refuse_rejects(target: str | os.PathLike[str] | None, ledger: str, source: Source) -> None:
    """Raise BulkError when rejects written to `target` would replace the ledger or the source's file."""
    if target is None:
        return
    refuse_ledger_files(target, ledger)
    is_file = source.stat() is not None
    if is_file and os.path.realpath(target) == os.path.realpath(source.name):
        raise BulkError(f"{os.fspath(target)}: is the input itself; choose another path for the rejects")
