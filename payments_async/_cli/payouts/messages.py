"""Messages of the payouts commands: the reason of a stop, and the next step. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...bulk import InputDifference
from ...bulk.errors import (
    BatchIdRequired,
    BulkError,
    InputPaidElsewhere,
    LedgerOfAnotherInput,
    SourceErrors,
    access_problem,
)
from ...errors import PaymentsError
from .._exit_codes import Exit, exit_of

RESUME: Final = "run the same command again to resume"
_ELSEWHERE: Final = (
    "resume with that ledger (--ledger) or its batch (--batch-id), or, to pay the same rows a second time on "
    "purpose, pass --pay-again"
)
_SHOWN: Final = 10
_PLACE: Final = ("line", "number", "column", "reason")
_EDITED: Final = (
    "the file has changed since it was read into the ledger, or is read in another way (--map, --map-file, "
    "--sheet); nothing was sent"
)
_TAKE: Final = (
    "Give the file as it was, with the same mapping and sheet, or take the edits of rows that were not paid "
    "yet with --accept-edits, or give new rows a file and a batch of their own."
)
_CANNOT: Final = (
    "Such edits cannot be taken over: what was sent stays as it was sent. A row whose payout failed can be "
    "edited after `payments payouts retry-failed`. Else give the file as it was, with the same mapping and "
    "sheet, and give new rows a file and a batch of their own."
)
_SKIP: Final = (
    "The same command with `--dry-run --skip-invalid --rejects rejects.csv` writes all of them to a file, "
    "and sends nothing. Correct them, or leave them out (--skip-invalid)."
)
_UNIQUE: Final = (
    "Correct them. --skip-invalid does not choose between rows that share a name, and leaves out no row "
    "whose row_key cannot be read."
)
_NAME: Final = (
    "Give the batch a name of its own and keep it, such as --batch-id salaries-june, or give every row a "
    "reference."
)
_HEADER: Final = "Correct the header first: without it no row can be read."


def message_of(error: BulkError) -> str:
    """The error's message for an operator, with options instead of arguments."""
    match error:
        case LedgerOfAnotherInput():
            return _edited(error)
        case InputPaidElsewhere():
            return f"{error.ledger}: {error.problem}; {_ELSEWHERE}"
        case SourceErrors():
            return f"{error}\n{_SKIP if error.can_skip else _UNIQUE if error.rows else _HEADER}"
        case BatchIdRequired():
            return f"{error.problem}. {_NAME}"
    return str(error)


def code_of(error: PaymentsError) -> Exit:
    """The exit code after an error of the service or the connection: 75 when it may pass by itself."""
    if access_problem(error) is not None:
        return Exit.USAGE
    return Exit.RESUMABLE if error.is_temporary else exit_of(error)


def error_facts(error: BaseException) -> dict[str, Any]:
    """The error for programs: its kind and the faults of the input, without any value."""
    facts: dict[str, Any] = {"kind": type(error).__name__, "faults": [], "differences": []}
    if isinstance(error, SourceErrors):
        facts["faults"] = [{name: getattr(fault, name) for name in _PLACE} for fault in error.faults]
        facts["total"] = error.total
    if isinstance(error, LedgerOfAnotherInput):
        facts |= {"differences": [str(each) for each in error.differences], "total": error.total}
    return facts


def _edited(error: LedgerOfAnotherInput) -> str:
    """The rows that differ from the ledger, a line for each, and what to do about them."""
    shown = [f"  {difference}" for difference in error.differences[:_SHOWN]]
    rest = error.total - len(shown)
    more = [f"  and {rest:,} more"] if rest else []
    return "\n".join([f"{error.ledger}: {_EDITED}", *shown, *more, after_edits(error.differences)])


def after_edits(differences: Sequence[InputDifference]) -> str:
    """Advice on a file that was edited, given the first differences."""
    can_be_taken = not differences or any(difference.is_acceptable for difference in differences)
    return _TAKE if can_be_taken else _CANNOT
