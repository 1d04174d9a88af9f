"""What SQLite's failures mean for a ledger."""

from __future__ import annotations

from typing import Final

import attrs

from .ledger import sqlite
from .ledger_errors import (
    LedgerBroken,
    LedgerDamaged,
    LedgerError,
    LedgerFull,
    LedgerLocked,
    LedgerReadOnly,
    LedgerRefused,
)


@attrs.frozen
class Failure:
    """Why a transaction did not succeed."""

    kind: str
    """One of `_sqlite`'s."""
    finding: str = ""
    """What is wrong, where the ledger is damaged."""


def error_of(path: str, failure: Failure) -> LedgerError:
    """The error to raise."""
    if failure.kind == sqlite.DAMAGED:
        return LedgerDamaged(path, [failure.finding])
    if failure.kind == sqlite.BUSY:
        return LedgerLocked(path, pid=None, since=None)
    if failure.kind == sqlite.TAKEN:
        return LedgerRefused(path, None, "a reference that should be new belongs to another row")
    kind, problem = _ERRORS[failure.kind]
    return kind(path, problem)


_ERRORS: Final[dict[str, tuple[type[LedgerError], str]]] = {
    sqlite.FULL: (LedgerFull, "the disk is full"),
    sqlite.READ_ONLY: (LedgerReadOnly, "cannot be written"),
    sqlite.BROKEN: (LedgerBroken, "the disk failed, or a commit was broken off"),
}
