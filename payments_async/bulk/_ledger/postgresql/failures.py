"""What PostgreSQL's error codes mean for a ledger. Messages are ours: the server's may show rows."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

import attrs
from psycopg import DataError, Error, OperationalError

from ...._postgresql import WEAK_AUTH, asks_weakly, is_refusal
from ...ledger_errors import (
    DatabaseUnfit,
    LedgerBroken,
    LedgerDamaged,
    LedgerError,
    LedgerFull,
    LedgerRefused,
    LedgerUnavailable,
    RightsMissing,
)


class FailureKind(Enum):
    """The kinds of failures."""

    LOST = auto()
    """The connection ended, or the server takes no changes now: connect again."""
    REPEAT = auto()
    """The transaction was rolled back for another's sake, or took too long: repeat it."""
    REFUSED = auto()
    """The server answered, and lets nobody in who comes like this."""
    FULL = auto()
    FORBIDDEN = auto()
    TAKEN = auto()
    UNSTORABLE = auto()
    DAMAGED = auto()
    BROKEN = auto()


@attrs.frozen
class DatabaseFailure:
    """A failed transaction, or attempt to connect."""

    kind: FailureKind
    code: str
    """The SQLSTATE, or words where there is none."""

    @property
    def may_pass(self) -> bool:
        """True if the same work may succeed later."""
        return self.kind in (FailureKind.LOST, FailureKind.REPEAT)


_CODES: Final = {
    "25006": FailureKind.LOST,  # read-only
    "25P03": FailureKind.LOST,  # idle in transaction for too long
    "26000": FailureKind.LOST,  # psycopg takes a statement for prepared whose transaction failed before that
    "40001": FailureKind.REPEAT,
    "40P01": FailureKind.REPEAT,  # deadlock
    "55P03": FailureKind.REPEAT,  # a lock was not to be had in time
    "57014": FailureKind.REPEAT,  # statement_timeout
    "53100": FailureKind.FULL,
    "42501": FailureKind.FORBIDDEN,
    "23505": FailureKind.TAKEN,
    "58030": FailureKind.BROKEN,  # the server's disk failed
}
_CLASSES: Final = {
    "08": FailureKind.LOST,
    "53": FailureKind.LOST,  # too many connections, no memory
    "57": FailureKind.LOST,  # shutdown, crash, starting up
    "22": FailureKind.UNSTORABLE,
    "42": FailureKind.DAMAGED,  # a table or column is missing
    "3F": FailureKind.DAMAGED,
    "XX": FailureKind.DAMAGED,
}


def diagnosed(error: Error, *, is_closed: bool) -> DatabaseFailure:
    """Classify an error of psycopg; `is_closed`: the connection ended with it."""
    code = error.sqlstate
    if code is None and (is_closed or isinstance(error, OperationalError)):  # another one's, perhaps
        return DatabaseFailure(FailureKind.LOST, "no answer")
    if code is None:
        return DatabaseFailure(
            FailureKind.UNSTORABLE if isinstance(error, DataError) else FailureKind.BROKEN,
            type(error).__name__,
        )
    return DatabaseFailure(_CODES.get(code) or _CLASSES.get(code[:2]) or FailureKind.BROKEN, code)


def refusal(error: Error) -> DatabaseFailure:
    """Say why a connection could not be made. The library's message may show a part of a password."""
    connection = error.pgconn
    if connection is not None and connection.needs_password:
        return DatabaseFailure(FailureKind.REFUSED, "it asks for a password: see PGPASSFILE")
    if asks_weakly(error):
        return DatabaseFailure(FailureKind.REFUSED, WEAK_AUTH)
    if is_refusal(error):
        return DatabaseFailure(
            FailureKind.REFUSED, "it refused the user, the password or the database's name"
        )
    return DatabaseFailure(FailureKind.LOST, "no answer, or none that lets it in now")


def error_of(path: str, failure: DatabaseFailure) -> LedgerError:
    """Make the error to raise for a failure."""
    code = failure.code
    match failure.kind:
        case FailureKind.LOST:
            return LedgerUnavailable(path, f"cannot be reached, or takes no changes ({code})")
        case FailureKind.REPEAT:
            return LedgerUnavailable(path, f"takes too long, or its work was broken off ({code})")
        case FailureKind.REFUSED:
            return DatabaseUnfit(path, code)
        case FailureKind.FULL:
            return LedgerFull(path, "the database's disk is full")
        case FailureKind.FORBIDDEN:
            return RightsMissing(path, ())
        case FailureKind.TAKEN:
            return LedgerRefused(path, None, "a reference that should be new belongs to another row")
        case FailureKind.UNSTORABLE:
            return LedgerRefused(path, None, f"the database cannot hold one of the values ({code})")
        case FailureKind.DAMAGED:
            return LedgerDamaged(path, [f"its tables are not as they were made ({code})"])
        case _:
            return LedgerBroken(path, f"the database failed ({code})")
