"""What stops a command, in an operator's words: the reason and the way out. Pure."""

from __future__ import annotations

from typing import Final

from ...bulk.errors import BulkError, SourceErrors
from ...bulk.ledger_errors import (
    InputPaidElsewhere,
    LedgerError,
    LedgerLocked,
    LedgerOfAnotherInput,
)

_WAYS_OUT: Final[dict[type[LedgerError], str]] = {
    LedgerOfAnotherInput: (
        "give the file as it was, or take the edits of rows that were not paid yet with --accept-edits, "
        "or give new rows a file and a ledger of their own"
    ),
    InputPaidElsewhere: (
        "go on with that ledger (--ledger) or its batch (--batch-id), or, to pay the same rows a second "
        "time on purpose, pass --pay-again"
    ),
    LedgerLocked: "wait for it to end, or stop it (it can be resumed); `payments payouts status` looks on",
}
"""Where the library names its own arguments, or the command knows more."""


def told(error: BulkError) -> str:
    """The message for an operator."""
    if isinstance(error, LedgerError) and type(error) in _WAYS_OUT:
        return f"{error.path}: {error.problem}; {_WAYS_OUT[type(error)]}"
    if isinstance(error, SourceErrors):
        return f"{error}\nMend them, or pay the other rows: --skip-invalid --rejects rejects.csv"
    return str(error)
