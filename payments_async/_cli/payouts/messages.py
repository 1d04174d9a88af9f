"""Messages of the payouts commands: the reason of a stop, and the next step. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from ...bulk import InputDifference
from ...bulk.errors import BatchIdRequired, BulkError, SourceErrors, access_problem
from ...bulk.ledger_errors import (
    InputPaidElsewhere,
    LedgerError,
    LedgerLocked,
    LedgerOfAnotherBatch,
    LedgerOfAnotherInput,
)
from ...errors import APIConnectionError, APIStatusError, DeadlineExceeded, PaymentsError
from .._exit_codes import Exit, exit_of
from .ledger_address import LedgerAddress
from .summary import BatchFigures

RESUME: Final = "run the same command again to resume"
_RESUME: Final = "The same `run` command resumes the batch; nothing is paid twice."
_RAISE: Final = "Raise that limit and run the same command again to resume; nothing is paid twice."
_FIX: Final = "Fix that and run the same command again to resume; nothing is paid twice."
_CORRECT: Final = (
    "Correct the rejected rows in the file and run it with `--accept-edits`; where the service would take "
    "them as they are now, make them new with"
)
_EXAMINE: Final = (
    "If a row in conflict names the payout that has its reference, examine that payout before you pay the "
    "row by other means: it may have been paid already."
)


def after_run(
    figures: BatchFigures,
    code: int,
    stopped: str | None,
    ledger: LedgerAddress,
    *,
    clean: bool | None = None,
    unproven: bool = False,
) -> list[str]:
    """Advice at the end of work with this exit code; empty when none is needed.

    `clean`: whether the service's list agrees with the ledger, where they were compared. `unproven`: commits
    were lost, and no recovery has proven yet which.
    """
    ahead = going_on(figures, code, stopped, ledger, clean=clean, unproven=unproven)
    counts, is_certified = figures.counts, code in (0, 1)
    look_at = (
        doubtful(counts["in_doubt"], ledger),
        _in_excess(counts, "the certificate" if is_certified else f"`{ledger.command('reconcile')}`"),
        (refused if is_certified else not_taken)(counts, ledger),
        _failed(counts, ledger),
        _contradicting(figures, ledger),
    )
    parts = (ahead, *look_at) if code in (2, 75) else (*look_at, ahead)
    return [part for part in parts if part]


def going_on(
    figures: BatchFigures,
    code: int,
    stopped: str | None,
    ledger: LedgerAddress,
    *,
    clean: bool | None = None,
    unproven: bool = False,
) -> str:
    """Advice on the batch as a whole, for `after_run`."""
    if code in (2, 75):
        again = _FIX if code == 2 else _resumed_by(stopped or "", ledger)
        return f"{_stopped(stopped)} {_unsure(figures.counts['under_way'])}{again}"
    unconfirmed = recovering(ledger) if unproven else _disagreeing(clean, stopped, ledger)
    return (unconfirmed if code == 1 else "") or _open(figures, ledger)


def advice_on(word: str, figures: BatchFigures, ledger: LedgerAddress) -> str:
    """Advice on the rows of one cause's outcome, or on payouts that stand for no row."""
    if word == "in_doubt":
        return doubtful(figures.counts[word], ledger)
    if word == "not_final":
        return _contradicting(figures, ledger)
    only = defaultdict(int, {word: figures.counts[word]})
    return _in_excess(only, "the certificate") or not_taken(only, ledger) or _failed(only, ledger)


def _resumed_by(stopped: str, ledger: LedgerAddress) -> str:
    """What lets a batch go on that stopped for this reason."""
    if "--max-" in stopped:
        return _RAISE
    for state, command in (("paused", "resume"), ("suspect", "recover")):
        if stopped.startswith(f"the batch is {state}"):
            return f"`{ledger.command(command)}` first. {_RESUME}"
    return _RESUME


def doubtful(rows: int, ledger: LedgerAddress) -> str:
    """Rows whose outcome is unknown."""
    if not rows:
        return ""
    return (
        f"{counted(rows, 'row')} in doubt: the same `run` command posts them once more and pays none twice; "
        f"`{ledger.command('reconcile')}` only reads. When the service says that a row is paid and does not "
        "list it, wait 15 minutes from its last request. Do not pay these rows in any other way."
    )


def refused(counts: Mapping[str, int], ledger: LedgerAddress) -> str:
    """Rows that were not paid: the service did not take them, or they were cancelled."""
    gone = counts["cancelled"]
    cancelled = f"{counted(gone, 'row')} cancelled; every other row was created." if gone else ""
    return not_taken(counts, ledger) or cancelled


def not_taken(counts: Mapping[str, int], ledger: LedgerAddress) -> str:
    """Rows that the service did not take."""
    parts = []
    if counts["rejected"]:
        parts.append(f"{counted(counts['rejected'], 'row')} rejected")
    if counts["conflict"]:
        parts.append(f"{counted(counts['conflict'], 'row')} in conflict with payouts that exist already")
    if not parts:
        return ""
    states = " ".join(f"--state {state}" for state in ("rejected", "conflict") if counts[state])
    examine = f" {_EXAMINE}" if counts["conflict"] else ""
    correct = f" {_CORRECT} `{ledger.command('retry-failed')} --rejected`." if counts["rejected"] else ""
    why = f"see why with `{ledger.command('export', 'to-check.csv')} {states}`"
    return f"{' and '.join(parts)}: {why}.{examine}{correct}"


def counted(number: int, noun: str) -> str:
    """`1 row`, `2,000 rows`, `2 batches`, `2 retries`."""
    if number != 1:
        noun = (
            f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}es" if noun.endswith("ch") else f"{noun}s"
        )
    return f"{number:,} {noun}"


def _stopped(reason: str | None) -> str:
    return f"Stopped: {reason.rstrip('.')}." if reason else "Not finished."


def _failed(counts: Mapping[str, int], ledger: LedgerAddress) -> str:
    """Payouts that are final, and of which the recipients do not have the money."""
    words = {"failed": "failed for good", "returned": "returned after arriving"}
    there = {
        state: f"{counted(counts[state], 'payout')} {told}" for state, told in words.items() if counts[state]
    }
    if not there:
        return ""
    states, again = " ".join(f"--state {word}" for word in there), ledger.command("retry-failed")
    export = ledger.command("export", f"{'-and-'.join(there)}.csv")
    parts = [f"{' and '.join(there.values())}: `{export} {states}` lists them."]
    if counts["failed"]:
        parts.append(f"`{again}` makes the rows of those that failed new again.")
    if counts["returned"]:
        parts.append(f"`{again} --row N` makes the row of one that was returned new again.")
    return " ".join([*parts, "The next run pays these rows under a new reference."])


def _in_excess(counts: Mapping[str, int], by: str) -> str:
    """Payouts that stand for no row, which are named by the certificate or a command."""
    payouts = counts["in_excess"]
    if not payouts:
        return ""
    return (
        f"{counted(payouts, 'payout')} in excess of what the rows ask for: {by} names the first. "
        "Ask the service's support to return them."
    )


def _contradicting(figures: BatchFigures, ledger: LedgerAddress) -> str:
    """Payouts that contradict themselves."""
    if not figures.contradicting:
        return ""
    return (
        f"{counted(figures.contradicting, 'payout')} whose status and times contradict each other: ask the "
        f"service's support what became of them, and pay none again. `{ledger.command('reconcile')}` records "
        "what the list says then."
    )


def _open(figures: BatchFigures, ledger: LedgerAddress) -> str:
    """Created payouts have not arrived yet."""
    awaited = figures.counts["not_final"] - figures.contradicting
    if not awaited:
        return ""
    created = "1 payout is created, and" if awaited == 1 else f"{awaited:,} payouts are created, and"
    return (
        f"{created} not final yet: each may still fail. The same `run` command with `--wait-final 2h` "
        f"follows them to their end; `{ledger.command('reconcile')}` reads their status once."
    )


def _disagreeing(clean: bool | None, stopped: str | None, ledger: LedgerAddress) -> str:
    if clean is not False:
        return ""
    if stopped is not None:
        return f"{_stopped(stopped)} `{ledger.command('reconcile')}` makes it: it pays nothing."
    return (
        f"The service's list does not confirm the ledger: read the findings. `{ledger.command('reconcile')}` "
        "records what it shows now. A list may show a payout up to 15 minutes late: run it after that time."
    )


def recovering(ledger: LedgerAddress) -> str:
    """Commits were lost, and it is not known for certain yet which."""
    again = ledger.command("recover")
    return (
        f"Commits were lost: run `{again}`, which says when that is over; until then it cannot be certified."
    )


def _unsure(rows: int) -> str:
    return f"{counted(rows, 'row')} under way will be posted again first, unchanged. " if rows else ""


_WAYS_OUT: Final[dict[type[LedgerError], str]] = {
    InputPaidElsewhere: (
        "resume with that ledger (--ledger) or its batch (--batch-id), or, to pay the same rows a second "
        "time on purpose, pass --pay-again"
    ),
    LedgerOfAnotherBatch: (
        "give the ledger's batch as --batch-id (or leave it out) to resume it; only rows that no batch "
        "has paid get a ledger of their own, as under another batch id the same rows are paid again"
    ),
    LedgerLocked: ("wait for it to end, or stop it (it can be resumed); `{status}` shows where it is"),
}
"""Advice on errors whose own message names arguments instead of options."""

_SHOWN: Final = 10
_PLACE: Final = ("line", "number", "column", "reason")
_TAKE: Final = (
    "Give the file as it was, or take the edits of rows that were not paid yet with --accept-edits, "
    "or give new rows a file and a ledger of their own."
)
_CANNOT: Final = (
    "Such edits cannot be taken over: what was sent stays as it was sent. Give the file as it was, "
    "and give new rows a file and a ledger of their own."
)
_LIST: Final = "--dry-run --skip-invalid --rejects rejects.csv"
_SKIP: Final = (
    "writes all of them to a file, and sends nothing. Correct them, or leave them out (--skip-invalid)."
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
    """The error's message for an operator."""
    if isinstance(error, LedgerOfAnotherInput):
        return _edited(error)
    if isinstance(error, LedgerError) and type(error) in _WAYS_OUT:
        way_out = _WAYS_OUT[type(error)].format(status=LedgerAddress(error.path).command("status"))
        return f"{error.path}: {error.problem}; {way_out}"
    if isinstance(error, SourceErrors):
        return f"{error}\n{_way_out(error)}"
    return f"{error.problem}. {_NAME}" if isinstance(error, BatchIdRequired) else str(error)


def code_of(error: PaymentsError) -> Exit:
    """The exit code after an error of the service or the connection: 75 when it may pass by itself."""
    if access_problem(error) is not None:
        return Exit.USAGE
    return Exit.RESUMABLE if _passes(error) else exit_of(error)


def _passes(error: PaymentsError) -> bool:
    if isinstance(error, APIStatusError):
        return error.status in (408, 429) or error.status >= 500
    return isinstance(error, APIConnectionError | DeadlineExceeded)


def error_facts(error: BaseException) -> dict[str, Any]:
    """The error for programs: its kind and the faults of the input, without any value."""
    facts: dict[str, Any] = {"kind": type(error).__name__, "faults": [], "differences": []}
    if isinstance(error, SourceErrors):
        shown = [attrs.asdict(fault) for fault in error.faults]
        facts["faults"] = [{name: fault[name] for name in _PLACE} for fault in shown]
        facts["total"] = error.total
    if isinstance(error, LedgerOfAnotherInput):
        facts |= {"differences": [str(each) for each in error.differences], "total": error.total}
    return facts


def _way_out(error: SourceErrors) -> str:
    if error.can_skip:
        return f"The same command with `{_LIST}` {_SKIP}"
    return _UNIQUE if error.rows else _HEADER


def _edited(error: LedgerOfAnotherInput) -> str:
    """The rows that differ from the ledger, a line for each, and what to do about them."""
    shown = [f"  {difference}" for difference in error.differences[:_SHOWN]]
    rest = error.total - len(shown)
    head = f"{error.path}: the file has changed since it was read into the ledger; nothing was sent"
    more = [f"  and {rest:,} more"] if rest else []
    return "\n".join([head, *shown, *more, after_edits(error.differences)])


def after_edits(differences: Sequence[InputDifference]) -> str:
    """Advice on a file that was edited, given the first differences."""
    can_be_taken = not differences or any(difference.is_acceptable for difference in differences)
    return _TAKE if can_be_taken else _CANNOT
