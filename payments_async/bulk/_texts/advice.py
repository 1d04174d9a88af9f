"""Advice on what to do next with a batch, for the command line and the page. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from .._report import BatchFigures
from .ledger_address import LedgerAddress
from .quantities import counted

_RESUME: Final = "The same `run` command resumes the batch; nothing is paid twice."
_RAISE: Final = "Raise that limit and run the same command again to resume; nothing is paid twice."
_CHANGE: Final = (
    "Change that row or the guard and run the same command again to resume; nothing is paid twice."
)
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
    if "the guard refused it" in stopped and "there may be room" not in stopped:
        return _CHANGE
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
