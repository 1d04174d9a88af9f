"""What to do next, for each way a command ends. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from .summary import Figures

_GOES_ON = "The same `run` command goes on where it stopped; nothing is paid twice."
_LIMITED = "With that limit raised, the same command goes on where it stopped; nothing is paid twice."
_MENDED = "With that mended, the same command goes on where it stopped; nothing is paid twice."
_MEND = (
    "Mend the rejected rows in the file and run it with --accept-edits; where the service would take them as "
    "they are now, make them new with"
)

_LOOK = (
    "For a row in conflict that names the payout which has its reference: look at it before you pay the row "
    "by other means, it may have been paid already."
)


def after_run(
    figures: Figures,
    code: int,
    stopped: str | None,
    ledger: str,
    *,
    failed: int = 0,
    clean: bool | None = None,
) -> list[str]:
    """What to know and do at the end of work that ended with this exit code; empty when all is well.

    `clean`: whether the service's list agrees with the ledger, where they were compared.
    """
    if code in (2, 75):
        goes_on = _MENDED if code == 2 else _LIMITED if stopped and "--max-" in stopped else _GOES_ON
        ended = f"{_stopped(stopped)} {_unsure(figures.counts['in_flight'])}{goes_on}"
        parts = [ended, _failed(failed, ledger)]
    elif code == 3:
        parts = [doubtful(figures.counts["in_doubt"], ledger), _failed(failed, ledger)]
    elif code == 1:
        parts = [refused(figures.counts, ledger), _failed(failed, ledger), _disagreeing(clean, ledger)]
    else:
        parts = [_failed(failed, ledger), _open(figures, ledger)]
    return [part for part in parts if part]


def doubtful(rows: int, ledger: str) -> str:
    """Rows of which the service has not said what became of them."""
    return (
        f"{counted(rows, 'row')} in doubt: the same `run` command posts them once more and pays none twice; "
        f"`{command('reconcile', ledger)}` only looks. A row that the service takes for paid and does not "
        "show needs 15 minutes from its last request. Pay them by no other means."
    )


def refused(counts: Mapping[str, int], ledger: str) -> str:
    """Rows that the service did not take."""
    told = []
    if counts["rejected"]:
        told.append(f"{counted(counts['rejected'], 'row')} rejected")
    if counts["conflict"]:
        told.append(f"{counted(counts['conflict'], 'row')} in conflict with payouts that exist already")
    if not told:
        gone = counts["cancelled"]
        return f"{counted(gone, 'row')} cancelled; every other row was created." if gone else ""
    states = " ".join(f"--state {state}" for state in ("rejected", "conflict") if counts[state])
    look = f" {_LOOK}" if counts["conflict"] else ""
    mend = f" {_MEND} `{command('retry-failed', ledger)} --rejected`." if counts["rejected"] else ""
    why = f"see why with `{command('export', ledger, 'refused.csv')} {states}`"
    return f"{' and '.join(told)}: {why}.{look}{mend}"


def command(name: str, *paths: str) -> str:
    """A command line of this family, ready for a shell."""
    return f"payments payouts {name} {shlex.join(paths)}"


def counted(number: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _stopped(reason: str | None) -> str:
    return f"Stopped: {reason.rstrip('.')}." if reason else "Not finished."


def _failed(rows: int, ledger: str) -> str:
    if not rows:
        return ""
    again = command("retry-failed", ledger)
    told = f"{counted(rows, 'payout')} failed for good"
    which = f"`{command('export', ledger, 'failed.csv')} --state failed` lists them"
    return f"{told}: {which}, `{again}` makes their rows new, and the next run pays them."


def _open(figures: Figures, ledger: str) -> str:
    """Created is not arrived: whoever stops here may believe it is."""
    awaited = figures.ended.awaited if figures.ended else 0
    if not awaited:
        return ""
    told = "1 payout is created, and" if awaited == 1 else f"{awaited:,} payouts are created, and"
    return (
        f"{told} not final yet: each may still fail. The same `run` command with `--wait-final 2h` follows "
        f"them to their end; `{command('reconcile', ledger)}` looks once."
    )


def _disagreeing(clean: bool | None, ledger: str) -> str:
    if clean is not False:
        return ""
    return (
        "The service's list does not confirm the ledger: read what was found. A list may show "
        f"a payout up to 15 minutes late: run `{command('reconcile', ledger)}` then."
    )


def _unsure(rows: int) -> str:
    return f"{counted(rows, 'row')} under way will be asked about first. " if rows else ""
