"""`payments payouts status`, `check` and `export`: the ledger alone, without the service or its key."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.padding import Padding
from rich.text import Text

from ..._runtime import SYSTEM
from ...bulk import PayoutBatch, RowFate, RowState
from ...bulk.ledger_errors import LedgerDamaged, LedgerLocked
from ...models._masking import clean
from .._exit_codes import CommandEnded, Exit
from . import files, messages
from .amounts import grouped, plain
from .reconcile import waiting
from .session import CommandContext, figures_of, result, title_of
from .summary import BatchFigures, standing, told_activity, told_duration

_SHOWN = 20


async def status(ledger: str, stage: CommandContext) -> Exit:
    """Where the batch stands: from the ledger, or from what a run that holds it says every second."""
    try:
        async with PayoutBatch.open(ledger) as batch:
            report = batch.status()
    except LedgerLocked as locked:
        return _running(ledger, locked, stage)
    figures = figures_of(report)
    state = (
        "complete" if report.complete else "nothing was sent yet" if figures.is_untouched else "not complete"
    )
    failed = f", {messages.counted(report.failed, 'payout')} failed" if report.failed else ""
    todo = messages.after_run(figures, report.exit_code, None, ledger, failed=report.failed)
    stage.show.heading(ledger, title_of(report.batch_id))
    stage.show.step(
        "Batch",
        f"{state}{failed}; no run is under way",
        good=not report.failed,
        running=False,
        **result(report, report.exit_code, todo),
    )
    stage.show.picture(standing(figures))
    for sentence in () if figures.is_untouched else todo:
        stage.show.picture(Padding(Text(clean(sentence)), (0, 0, 0, 2)))
    return Exit.DONE


def _running(ledger: str, locked: LedgerLocked, stage: CommandContext) -> Exit:
    said = files.status_said(ledger)
    holder = "another process" if locked.pid is None else f"process {locked.pid}"
    if not said:
        raise CommandEnded(
            f"{ledger} is in use by {holder}, which has told no figures yet; ask again", Exit.RESUMABLE
        )
    figures, age = BatchFigures.of(said["rows"], said["amounts"], activity=said.get("activity")), _age(said)
    stage.show.heading(ledger, title_of(str(said["batch_id"])))
    told = f"{holder} works on it; figures of {told_duration(age)} ago"
    if is_old := locked.since is not None and said["at"] < locked.since.timestamp():
        told += ", from before it began"
    elif waits := told_activity(figures.activity, age):
        told += f"; {waits}"
    facts: dict[str, Any] = {
        "running": True,
        "pid": locked.pid,
        "age": round(age, 1),
        "before_this_run": is_old,
    }
    stage.show.step("Running", told, batch_id=said["batch_id"], **facts, **figures.facts())
    stage.show.picture(standing(figures))
    return Exit.DONE


def _age(said: dict[str, Any]) -> float:
    return max((SYSTEM.now() - datetime.fromtimestamp(said["at"], UTC)).total_seconds(), 0.0)


async def check(ledger: str, stage: CommandContext) -> Exit:
    """Read all of the ledger, and see whether it is as it was written."""
    try:
        async with PayoutBatch.open(ledger) as batch:
            with waiting("Reading the whole ledger", stage):
                report = await batch.check()
    except LedgerDamaged as damaged:
        raise CommandEnded(str(damaged), Exit.REFUSED) from None
    stage.show.heading(ledger)
    told = f"{messages.counted(report.rows, 'row')}, {report.entries:,} entries"
    facts: dict[str, Any] = {"rows": report.rows, "entries": report.entries, "head": report.head}
    if not report.findings:
        stage.show.step("Check", f"{told}: as it was written", findings=[], **facts)
        stage.show.step("Head", report.head) if not stage.as_json else None
        return Exit.DONE
    stage.show.step(
        "Check", f"{told}: NOT as it was written", good=False, findings=list(report.findings), **facts
    )
    for finding in () if stage.as_json else report.findings[:_SHOWN]:
        stage.show.step("Finding", finding, good=False)
    raise CommandEnded(f"{ledger}: not as it was written; {LedgerDamaged.way_out}", Exit.REFUSED)


def _stored(name: str) -> RowState | RowFate:
    word = name.upper().replace("-", "_")
    return RowFate(word) if word in [*RowFate] else RowState(word)


async def export(
    ledger: str,
    path: str,
    states: Sequence[str] | None,
    stage: CommandContext,
    *,
    accounts: bool,
    overwrite: bool,
) -> Exit:
    """Write the rows and what became of each. Raises Ended or BulkError; then no file appears."""
    wanted = None if states is None else {_stored(state) for state in states}
    async with PayoutBatch.open(ledger) as batch:
        try:
            with waiting("Writing the rows", stage):
                report = await batch.export(path, states=wanted, accounts=accounts, overwrite=overwrite)
        except OSError as error:
            told = f"{path} cannot be written ({error.strerror}); make room or name another place"
            raise CommandEnded(told, Exit.USAGE) from None
    stage.show.heading(ledger)
    money = "".join(f", {currency} {grouped(total)}" for currency, total in sorted(report.totals.items()))
    totals = {currency: plain(total) for currency, total in sorted(report.totals.items())}
    hidden = "with account data" if accounts else "account data masked"
    told = f"{messages.counted(report.rows, 'row')}{money}; {hidden}"
    stage.show.step("Exported", told, path=report.path, rows=report.rows, totals=totals, accounts=accounts)
    if not stage.as_json:
        stage.show.step("Written", report.path)
    return Exit.DONE
