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
from . import messages
from .amounts import money_text, plain_sums
from .session import CommandContext, figures_of, read_status, result, title_of
from .summary import BatchFigures, activity_text, duration_text, state_table

_SHOWN = 20


async def status(ledger: str, context: CommandContext) -> Exit:
    """Show a batch's status: from the ledger, or from the status file of the run that holds it."""
    try:
        async with PayoutBatch.open(ledger) as batch:
            report = batch.status()
    except LedgerLocked as locked:
        return _running(ledger, locked, context)
    figures = figures_of(report)
    state = (
        "complete" if report.complete else "nothing was sent yet" if figures.is_untouched else "not complete"
    )
    failed = f", {messages.counted(report.failed, 'payout')} failed" if report.failed else ""
    steps = messages.after_run(figures, report.exit_code, None, ledger, failed=report.failed)
    context.show.heading(ledger, title_of(report.batch_id))
    context.show.step(
        "Batch",
        f"{state}{failed}; no run is under way",
        good=False if report.failed else True if report.complete else None,
        running=False,
        **result(report, report.exit_code, steps),
    )
    context.show.render(state_table(figures))
    for sentence in () if figures.is_untouched else steps:
        context.show.render(Padding(Text(clean(sentence)), (0, 0, 0, 2)))
    return Exit.DONE


def _running(ledger: str, locked: LedgerLocked, context: CommandContext) -> Exit:
    latest = read_status(ledger)
    holder = "another process" if locked.pid is None else f"process {locked.pid}"
    if not latest:
        problem = f"{ledger} is in use by {holder}, which has not written its figures yet"
        raise CommandEnded(f"{problem}; ask again", Exit.RESUMABLE)
    figures = BatchFigures.of(latest["rows"], latest["amounts"], activity=latest.get("activity"))
    age = max((SYSTEM.now() - datetime.fromtimestamp(latest["at"], UTC)).total_seconds(), 0.0)
    context.show.heading(ledger, title_of(str(latest["batch_id"])))
    text = f"{holder} works on it; figures of {duration_text(age)} ago"
    if is_old := locked.since is not None and latest["at"] < locked.since.timestamp():
        text += ", from before it began"
    elif activity := activity_text(figures.activity, age):
        text += f"; {activity}"
    facts: dict[str, Any] = {"pid": locked.pid, "age": round(age, 1), "before_this_run": is_old}
    facts |= figures.facts()
    context.show.step("Running", text, good=None, batch_id=latest["batch_id"], running=True, **facts)
    context.show.render(state_table(figures))
    return Exit.DONE


async def check(ledger: str, context: CommandContext) -> Exit:
    """Read all of the ledger. Raises CommandEnded when it is not as it was written."""
    try:
        async with PayoutBatch.open(ledger) as batch:
            with context.spinner("Reading the whole ledger"):
                report = await batch.check()
    except LedgerDamaged as damaged:
        raise CommandEnded(str(damaged), Exit.REFUSED) from None
    context.show.heading(ledger)
    size, good = f"{messages.counted(report.rows, 'row')}, {report.entries:,} entries", not report.findings
    context.show.step(
        "Check",
        f"{size}: {'as' if good else 'NOT as'} it was written",
        good=good,
        findings=list(report.findings),
        rows=report.rows,
        entries=report.entries,
        head=report.head,
    )
    if not context.as_json:
        for finding in report.findings[:_SHOWN]:
            context.show.step("Finding", finding, good=False)
        if good:
            context.show.step("Head", report.head)
    if not good:
        raise CommandEnded(f"{ledger}: not as it was written; {LedgerDamaged.way_out}", Exit.REFUSED)
    return Exit.DONE


async def export(
    ledger: str,
    path: str,
    states: Sequence[str] | None,
    context: CommandContext,
    *,
    accounts: bool,
    overwrite: bool,
) -> Exit:
    """Write the rows and what became of each. Raises CommandEnded or BulkError; then no file appears."""
    wanted = None if states is None else {_row_state(state) for state in states}
    async with PayoutBatch.open(ledger) as batch:
        try:
            with context.spinner("Writing the rows"):
                report = await batch.export(path, states=wanted, accounts=accounts, overwrite=overwrite)
        except OSError as error:
            problem = f"{path} cannot be written ({error.strerror}); make room or name another place"
            raise CommandEnded(problem, Exit.USAGE) from None
    context.show.heading(ledger)
    money = f", {money_text(report.totals)}" if report.totals else ""
    hidden = "with account data" if accounts else "account data masked"
    context.show.step(
        "Exported",
        f"{messages.counted(report.rows, 'row')}{money}; {hidden}",
        path=report.path,
        rows=report.rows,
        totals=plain_sums(report.totals),
        accounts=accounts,
    )
    if not context.as_json:
        context.show.step("Written", report.path)
    return Exit.DONE


def _row_state(name: str) -> RowState | RowFate:
    """The state or fate that an option names."""
    word = name.upper().replace("-", "_")
    return RowFate(word) if word in [*RowFate] else RowState(word)
