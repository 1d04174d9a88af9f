"""`payments payouts status`, `check`, `export`, `batches` and `workers`: the ledger alone, without a key."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Final

import attrs
from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..._runtime import SYSTEM
from ...bulk import (
    BatchFigures,
    BatchReport,
    BatchState,
    Cause,
    ListedBatch,
    ListedWorker,
    SharedBatch,
)
from ...bulk._texts.advice import after_run, recovering
from ...bulk._texts.figures import activity_text, answers_text, figures_in, with_causes
from ...bulk._texts.ledger_address import LedgerAddress, open_batch
from ...bulk._texts.outcomes import failures_text, title_of
from ...bulk._texts.quantities import counted, duration_text, moment, money_text, plain_sums
from ...bulk.ledger_errors import ArchiveDamaged, LedgerDamaged, LedgerError, LedgerLocked
from ...bulk.sources import write_template
from ...models._masking import clean
from .._exit_codes import CommandEnded, Exit
from .._output import FirstThatFits
from .command_context import CommandContext, causes_of, open_database, read_status
from .machines import batch_facts, chunks_of, listed, no_worker, run_command, speed_text, worker_facts
from .messages import message_of
from .summary import result, show_causes, state_table

_WATCH_EVERY: Final = 1.0
"""Seconds between two looks of `--watch`."""
_SHORT: Final = 8
"""Signs of a worker's id in a table: enough for `drain`."""
_SHOWN = 20
_FOLDED: Final = 12
"""Signs of a name in a line of a narrow table."""
_GONE: Final = "gone"


async def status(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """Show a batch's status: from the ledger, or from the status file of the run that holds it."""
    if ledger.is_database:
        return await _status_in_database(ledger, context)
    try:
        async with open_batch(ledger) as batch:
            report, causes = batch.status(), await causes_of(batch)
    except LedgerLocked as locked:
        return _running(ledger, locked, context)
    report = with_causes(report, causes)
    failures = failures_text(report)
    steps = after_run(report, report.exit_code, None, ledger)
    context.show.heading(ledger.shown, title_of(report.batch_id))
    context.show.step(
        "Batch",
        f"{_progress_text(report)}{failures and ', '}{failures}; no run is under way",
        good=False if failures else report.complete or None,
        running=False,
        **result(report, Exit.DONE, steps, causes),
    )
    context.show.render(state_table(report))
    if not context.as_json:
        show_causes(causes, context.show)
    for sentence in () if report.is_untouched else steps:
        context.show.paragraph(sentence)
    return Exit.DONE


def _progress_text(report: BatchReport) -> str:
    """How far a batch is, in a word or two."""
    if report.complete:
        return "complete"
    return "nothing was sent yet" if report.is_untouched else "not complete"


def _running(ledger: LedgerAddress, locked: LedgerLocked, context: CommandContext) -> Exit:
    latest = read_status(ledger)
    holder = "another process" if locked.pid is None else f"process {locked.pid}"
    if not latest:
        problem = f"{ledger.shown} is in use by {holder}, which has not written its figures yet"
        raise CommandEnded(f"{problem}; ask again", Exit.RESUMABLE)
    figures = figures_in(latest)
    age = max((SYSTEM.now() - datetime.fromtimestamp(latest["at"], UTC)).total_seconds(), 0.0)
    context.show.heading(ledger.shown, title_of(str(latest["batch_id"])))
    text = f"{holder} works on it; figures of {duration_text(age)} ago"
    if is_old := locked.since is not None and latest["at"] < locked.since.timestamp():
        text += ", from before it began"
    elif activity := activity_text(figures.activity, age):
        text += f"; {activity}"
    facts: dict[str, Any] = {"pid": locked.pid, "age": round(age, 1), "before_this_run": is_old}
    facts |= figures.facts()
    context.show.step("Running", text, good=None, batch_id=latest["batch_id"], running=True, **facts)
    if figures.speed is not None and not context.as_json:
        context.show.step("Answers", answers_text(figures.speed), good=None)
    context.show.render(state_table(figures))
    return Exit.DONE


async def watch_status(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """Show the figures every second, and at the end what `status` shows. Raises what it raises."""
    stopped = asyncio.Event()
    with context.interrupts.draining(lambda _: stopped.set()), context.progress("Paying") as view:
        ending = asyncio.ensure_future(stopped.wait())
        try:
            async with aclosing(_in_database(ledger) if ledger.is_database else _in_file(ledger)) as moments:
                async for figures in moments:
                    if figures is not None:
                        view.show(figures, SYSTEM.monotonic())
                    await asyncio.wait([ending], timeout=_WATCH_EVERY)
                    if ending.done():
                        break
        finally:
            ending.cancel()
    return await status(ledger, context)


async def _in_file(ledger: LedgerAddress) -> AsyncGenerator[BatchFigures | None, None]:
    """The figures of the run that holds the ledger, until there is none; None without any yet."""
    while True:
        try:
            async with open_batch(ledger):
                return
        except LedgerLocked:
            latest = read_status(ledger)
        if not latest:  # it is still reading the input
            yield None
            continue
        yield figures_in(latest)


async def _in_database(ledger: LedgerAddress) -> AsyncGenerator[BatchFigures | None, None]:
    """The figures of the batch, until no worker can do more. Raises LedgerError."""
    async with open_batch(ledger) as batch:
        while True:
            now = await batch.snapshot()
            if now.report.complete or (now.rule is not None and not now.report.counts["under_way"]):
                return
            yield attrs.evolve(now.report, speed=now.speed)


async def check(ledger: LedgerAddress, chunks: str | None, context: CommandContext) -> Exit:
    """Read all of a ledger, or an archive. Raises BulkError, and CommandEnded for one that was changed."""
    damage: type[LedgerDamaged] = LedgerDamaged
    try:
        if ledger.is_archive():
            damage = ArchiveDamaged
            with context.spinner("Reading the whole archive"):
                from ...bulk import check_archive  # pyarrow is an extra's

                report = await asyncio.to_thread(check_archive, ledger.text)
        else:
            async with open_batch(ledger) as batch:
                with context.spinner("Reading the whole ledger"):
                    work = batch.check(chunks=chunks) if isinstance(batch, SharedBatch) else batch.check()
                    report = await work
    except LedgerDamaged as damaged:
        raise CommandEnded(str(damaged), Exit.REFUSED) from None
    context.show.heading(ledger.shown)
    size, good = f"{counted(report.rows, 'row')}, {report.entries:,} entries", not report.findings
    context.show.step(
        "Check",
        f"{size}: {'as' if good else 'NOT as'} it was written",
        good=good,
        findings=list(report.findings),
        rows=report.rows,
        entries=report.entries,
        head=report.head,
        unreadable=list(report.unreadable),
    )
    if not context.as_json:
        for figures in report.unreadable:
            context.show.step("Figures", f"{figures} cannot be read; nothing depends on them", good=None)
        for finding in report.findings[:_SHOWN]:
            context.show.step("Finding", finding, good=False)
        if good:
            context.show.step("Head", report.head, wrap=False)
    if not good:
        raise CommandEnded(str(damage(ledger.shown, ["not as it was written"])), Exit.REFUSED)
    return Exit.DONE


async def export(
    ledger: LedgerAddress,
    path: str,
    states: Sequence[str] | None,
    certificate: str | None,
    context: CommandContext,
    *,
    accounts: bool,
    overwrite: bool,
) -> Exit:
    """Write the rows and what became of each. Raises CommandEnded or BulkError; then no file appears."""
    wanted = None if states is None else {state.replace("-", "_") for state in states}
    options = {"accounts": accounts, "overwrite": overwrite}
    async with open_batch(ledger) as batch:
        try:
            with context.spinner("Writing the rows"):
                report = await batch.export(path, states=wanted, certificate=certificate, **options)
        except OSError as error:
            problem = f"{path} cannot be written ({error.strerror}); make room or name another place"
            raise CommandEnded(problem, Exit.USAGE) from None
    context.show.heading(ledger.shown)
    money = f", {money_text(report.totals)}" if report.totals else ""
    hidden = "with account data" if accounts else "account data masked"
    context.show.step(
        "Exported",
        f"{counted(report.rows, 'row')}{money}; {hidden}",
        path=report.path,
        rows=report.rows,
        totals=plain_sums(report.totals),
        accounts=accounts,
    )
    if not context.as_json:
        context.show.step("Written", report.path, wrap=False)
    return Exit.DONE


async def template(path: str, context: CommandContext) -> Exit:
    """Write an empty workbook. Raises CommandEnded or BulkError; then no file appears."""
    try:
        write_template(path)
    except OSError as error:
        problem = f"{path} cannot be written ({error.strerror}); make room or name another place"
        raise CommandEnded(problem, Exit.USAGE) from None
    context.show.step("Written", path, wrap=False, path=path)
    if not context.as_json:
        context.show.paragraph(
            f"Fill it in, then check it: `payments payouts run {shlex.quote(path)} --dry-run`."
        )
    return Exit.DONE


async def archive(
    ledger: LedgerAddress,
    path: str,
    certificate: str | None,
    context: CommandContext,
    *,
    accounts: bool,
    overwrite: bool,
) -> Exit:
    """Write all of a closed batch to a file. Raises CommandEnded or BulkError; then no file appears.

    `certificate`: the file of one; None for that which the database keeps.
    """
    options: dict[str, Any] = {"accounts": accounts, "certificate": certificate, "overwrite": overwrite}
    async with open_batch(ledger) as batch:
        try:
            with context.spinner("Writing and checking the archive"):
                report = await batch.archive(path, **options)
        except OSError as error:
            problem = f"{path} cannot be written ({error.strerror}); make room or name another place"
            raise CommandEnded(problem, Exit.USAGE) from None
    context.show.heading(ledger.shown)
    hidden = "with account data" if accounts else "keyed hashes for account data"
    context.show.step(
        "Archived",
        f"{counted(report.rows, 'row')}, {report.entries:,} entries; {hidden}",
        **attrs.asdict(report),
    )
    if not context.as_json:
        held = certificate or "by the certificate in the database"
        if not report.has_certificate:
            held = f"none of the batch as it is: `{ledger.command('reconcile')}` writes one"
        context.show.step("Certified", held, good=report.has_certificate or None)
        context.show.step("Head", report.head, wrap=False)
        context.show.step("Written", report.path, wrap=False)
    return Exit.DONE


# Of a database


async def batches(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """Show the batches of a database. Raises CommandEnded, which names those that cannot be read."""
    unreadable: list[LedgerError] = []
    async with open_database(ledger) as database:
        found = await database.batches(on_unreadable=unreadable.append)
    context.show.heading(ledger.shown, counted(len(found) + len(unreadable), "batch"))
    if context.as_json:
        for batch in found:
            facts = {**batch.report.facts(), **batch_facts(batch), "complete": batch.report.complete}
            context.show.step("Batch", "", batch_id=batch.batch_id, **facts)
    elif found:
        context.show.render(_batches_table(found))
    if unreadable:
        problem = "; ".join(message_of(error) for error in unreadable)
        raise CommandEnded(problem, Exit.REFUSED) from unreadable[0]
    return Exit.DONE


def _batches_table(found: Sequence[ListedBatch]) -> FirstThatFits:
    rows = []
    for batch in found:
        figures, left = batch.report, batch.seconds_left
        rows.append(
            {
                "Batch": clean(batch.batch_id),
                "State": str(batch.state),
                "Rows": f"{figures.rows:,}",
                "Done": f"{figures.done:,}",
                "In doubt": f"{figures.counts['in_doubt']:,}" if figures.counts["in_doubt"] else "",
                "Chunks": f"{chunks_of(batch)['done']:,}/{batch.chunks:,}",
                "A minute": f"{batch.per_minute:,.0f}" if batch.workers else "",
                "Left": "" if left is None else duration_text(left),
            }
        )
    return _fitting(rows, without=("Chunks", "A minute"))


def _fitting(rows: Sequence[Mapping[str, str]], *, without: Sequence[str]) -> FirstThatFits:
    """A table: if need be without the first of these columns, or all, with names folded; else a list."""
    folded = [{name: _folded(cell) for name, cell in row.items()} for row in rows]
    return FirstThatFits([_table(rows), _table(rows, without[:1]), _table(folded, without), _list(rows)])


def _folded(name: str) -> str:
    return "\n".join(name[start : start + _FOLDED] for start in range(0, len(name), _FOLDED))


def _table(rows: Sequence[Mapping[str, str]], without: Collection[str] = ()) -> Padding:
    """A table whose first two columns are text, and the others figures. What is gone is dim."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    names = [name for name in rows[0] if name not in without]
    for number, name in enumerate(names):
        table.add_column(name, justify="left" if number < 2 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(row[name]) for name in names), style="dim" if row.get("Note") == _GONE else "")
    return Padding(table, (1, 0, 1, 2), expand=False)


def _list(rows: Sequence[Mapping[str, str]]) -> Text:
    """The same, a line for each figure."""
    lines = []
    for row in rows:
        title, *rest = row.items()
        lines += ["", f"  {title[1]}", *(f"    {name:<9} {value}" for name, value in rest if value)]
    return Text("\n".join([*lines, ""]))


async def _status_in_database(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """Show a batch of a database."""
    batch = await listed(ledger)
    causes: tuple[Cause, ...] = ()
    if batch.forgotten is None:
        async with open_batch(ledger) as opened:
            causes = await causes_of(opened)
    report = with_causes(batch.report, causes)
    steps = _next_steps(batch, report, ledger)
    context.show.heading(ledger.shown, title_of(batch.batch_id))
    facts = {**result(report, Exit.DONE, steps, causes), **batch_facts(batch), "running": bool(batch.workers)}
    good = False if failures_text(report) else report.complete or None
    context.show.step("Batch", _state_text(batch, report), good=good, **facts)
    if not context.as_json:
        chunks = chunks_of(batch)
        leased = f", {chunks['leased']:,} leased" if chunks["leased"] else ""
        text = f"{chunks['done']:,} of {batch.chunks:,} done{leased}"
        context.show.step("Chunks", text, good=None)
        if not report.complete:
            context.show.step("Workers", speed_text(batch), good=None)
    context.show.render(state_table(report))
    if not context.as_json:
        show_causes(causes, context.show)
    for sentence in steps:
        context.show.paragraph(sentence)
    return Exit.DONE


def _state_text(batch: ListedBatch, report: BatchReport) -> str:
    state, failures = _progress_text(report), failures_text(report)
    if batch.state in (BatchState.PAUSED, BatchState.SUSPECT):
        state += f"; {batch.state}" + (f": {batch.reason}" if batch.reason else "")
    elif batch.forgotten is not None:
        state += f"; forgotten on {moment(batch.forgotten.at)} UTC"
    elif batch.state is BatchState.IMPORTED:
        state += "; not planned"
    elif batch.is_unclosed:
        state += "; not closed yet"
    elif batch.rule and not report.complete:
        state += f"; stopped: {batch.rule}"
    recovery = "; a recovery is under way" if batch.is_unproven else ""
    return f"{state}{recovery}{failures and ', '}{failures}"


def _next_steps(batch: ListedBatch, report: BatchReport, ledger: LedgerAddress) -> list[str]:
    """Advice on a batch in a database."""
    if batch.forgotten is not None:
        return [f"Its rows are gone. Its root is {batch.forgotten.root}."]
    if batch.is_unproven and batch.state is not BatchState.SUSPECT:
        return [recovering(ledger)]
    if batch.state is BatchState.SUSPECT:
        return [f"Commits may be lost: no more rows are sent until `{ledger.command('recover')}`."]
    if batch.state is BatchState.PAUSED and not report.complete:
        return [f"`{ledger.command('resume')}` lets workers go on."]
    if batch.state is BatchState.IMPORTED:
        return [f"No worker takes a row yet: `{run_command(ledger)}` asks for the total and lets them begin."]
    if (batch.workers or batch.idle_workers) and not report.complete and not batch.is_over:
        return []
    steps = after_run(report, report.exit_code, batch.rule, ledger)
    if not report.complete:
        steps.append(f"Or start workers: `{ledger.option_command('worker')}`.")
    elif batch.is_unclosed and batch.is_alone:
        steps.append(f"It is not closed, and {no_worker(ledger)}, and closes it.")
    return steps


async def workers(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """Show the workers of a database."""
    async with open_database(ledger) as database:
        found = await database.workers()
    context.show.heading(ledger.shown, counted(len(found), "worker"))
    if context.as_json:
        for worker in found:
            context.show.step(
                "Worker", "", good=not (worker.is_gone or worker.trouble), **worker_facts(worker)
            )
    elif found:
        context.show.render(_workers_table(found))
        for worker in (each for each in found if each.trouble and not each.is_gone):
            context.show.step("Rests", f"{worker.id[:_SHORT]}: {worker.trouble}", good=False)
    return Exit.DONE


def _note(worker: ListedWorker) -> str:
    if worker.trouble:
        return "rests: see below"
    return "draining" if worker.is_draining else ""


def _workers_table(found: Sequence[ListedWorker]) -> FirstThatFits:
    rows = [
        {
            "Worker": worker.id[:_SHORT],
            "Host": clean(worker.host),
            "Process": str(worker.pid),
            "Version": clean(worker.version),
            "Chunks": f"{len(worker.leased_chunks)}{f' of {worker.slots}' if worker.slots else ''}",
            "Rows": f"{worker.rows:,}",
            "A minute": "" if worker.is_gone else f"{worker.per_minute:,.0f}",
            "Seen": f"{duration_text(worker.silent)} ago",
            "Note": _GONE if worker.is_gone else _note(worker),
        }
        for worker in found
    ]
    return _fitting(rows, without=("Version", "Process", "Chunks"))
