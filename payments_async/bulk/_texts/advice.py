"""Advice on what to do next with a batch, for the command line and the page. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..report import BatchFigures, BatchReport
from .figures import missing, shortfall_text
from .ledger_address import LedgerAddress
from .quantities import counted

PAUSED: Final = "the batch is paused"
"""How the reason begins for which a paused batch stops."""
_AGAIN: Final = "The same `run` command resumes the batch; nothing is paid twice."
_ADVICE: Final[Mapping[str, str]] = {
    "in_doubt": (
        "{rows} in doubt: the same `run` command posts them once more and pays none twice; `{reconcile}` "
        "only reads. Do not pay these rows in any other way."
    ),
    "in_excess": (
        "{payouts} in excess of what the rows ask for: the certificate names the first. Ask the service's "
        "support to return them."
    ),
    "rejected": (
        "{rows} rejected: see why with `{export}`. Correct them in the file and run it with "
        "`--accept-edits`; where the service would take them as they are now, make them new with "
        "`{retry} --rejected`."
    ),
    "conflict": (
        "{rows} in conflict with payouts that exist already: see which with `{export}`. Examine that payout "
        "before you pay the row by other means: it may have been paid already."
    ),
    "cancelled": "{rows} cancelled: nothing was paid for them, and nothing will be.",
    "failed": (
        "{payouts} failed for good: `{export}` lists them. `{retry}` makes their rows new, and the next run "
        "pays them under new references."
    ),
    "returned": (
        "{payouts} returned after arriving: `{export}` lists them. `{retry} --row N` makes the row of one "
        "new, and the next run pays it under a new reference."
    ),
    "not_final": (
        "{payouts} whose status and times contradict each other: ask the service's support what became of "
        "them, and pay none again. `{reconcile}` records what the list says then."
    ),
}
"""{outcome, or payouts that stand for no row: what to do about them}, in the order in which it is said."""


def after_run(report: BatchReport, ledger: LedgerAddress, *, clean: bool | None = None) -> list[str]:
    """Advice on a batch as its report shows it; empty when there is nothing to do.

    `clean`: whether the service's list agrees, where the report has no certificate of its own.
    """
    ahead, about_rows = (
        going_on(report, ledger, clean=clean),
        [advice_on(word, report, ledger) for word in _ADVICE],
    )
    parts = [ahead, *about_rows] if report.exit_code in (2, 75) else [*about_rows, ahead]
    return [part for part in parts if part]


def going_on(report: BatchReport, ledger: LedgerAddress, *, clean: bool | None = None) -> str:
    """Advice on the batch as a whole, for `after_run`."""
    if report.exit_code in (2, 75):
        return f"{_stopped(report.stopped)} {_resumed_by(report, ledger)}"
    if report.is_complete and report.stopped is not None:
        return f"{_stopped(report.stopped)} `{ledger.command('reconcile')}` certifies it once that is over."
    is_clean = clean if report.certificate is None else report.certificate.is_clean
    if is_clean is False:
        return (
            "The service's list does not confirm the ledger: read the findings. "
            f"`{ledger.command('reconcile')}` records what it shows now. A list may show a payout up to "
            "15 minutes late: run it after that time."
        )
    return _awaited(report, ledger) if report.is_complete else ""


def advice_on(word: str, figures: BatchFigures, ledger: LedgerAddress) -> str:
    """Advice on the rows of one outcome, or on payouts that stand for no row; empty when none is needed."""
    number = figures.contradicting if word == "not_final" else figures.counts[word]
    if not number or word not in _ADVICE:
        return ""
    return _ADVICE[word].format(
        rows=counted(number, "row"),
        payouts=counted(number, "payout"),
        export=ledger.command("export", f"{word}.csv", "--state", word),
        reconcile=ledger.command("reconcile"),
        retry=ledger.command("retry-failed"),
    )


def shortfall(figures: BatchFigures, ledger: LedgerAddress) -> str:
    """What did not arrive, in one sentence, and the command that lists it; empty while all may arrive."""
    if not (text := shortfall_text(figures)):
        return ""
    states = [option for word in missing(figures) for option in ("--state", word)]
    export = ledger.command("export", "not-arrived.csv", *states)
    return f"{text}. What to do: `{export}` lists them with their reasons; the advice on each is below."


def _stopped(reason: str | None) -> str:
    return f"Stopped: {reason.rstrip('.')}." if reason else "Not finished."


def _resumed_by(report: BatchReport, ledger: LedgerAddress) -> str:
    """What lets a batch go on that ended early."""
    if (report.stopped or "").startswith(PAUSED):
        return f"`{ledger.command('resume')}` first. {_AGAIN}"
    return _AGAIN if report.resumable == "now" else f"Change that first. {_AGAIN}"


def _awaited(figures: BatchFigures, ledger: LedgerAddress) -> str:
    """Created payouts have not arrived yet."""
    number = figures.counts["not_final"] - figures.contradicting
    if not number:
        return ""
    created = f"{counted(number, 'payout')} {'is' if number == 1 else 'are'} created, and not final yet"
    return (
        f"{created}: each may still fail. The same `run` command with `--wait-final 2h` follows them to "
        f"their end; `{ledger.command('reconcile')}` reads their status once."
    )
