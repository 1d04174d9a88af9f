"""`payments payouts run`: from the file, through the ledger, to the certificate."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Final

import attrs

from ..._request.auth import read_key
from ..._runtime import SYSTEM
from ...bulk import (
    AnyBatch,
    BatchFigures,
    BatchReport,
    Cause,
    ImportReport,
    RunSeries,
    RunTime,
    SharedBatch,
    SpeedFigures,
)
from ...bulk._texts.advice import after_run, refused
from ...bulk._texts.figures import answers_text, length_and_pace, with_causes
from ...bulk._texts.ledger_address import open_batch
from ...bulk._texts.quantities import counted, duration_text, money_text, plain_sums, rate_text
from ...bulk.sources import Source
from ...errors import PaymentsError
from ...guard import Guard
from .._exit_codes import CommandEnded, Exit
from .command_context import CommandContext, causes_of, ledger_work, open_client, print_next_steps
from .confirm import Confirmation, ConfirmOptions, confirm, flags, is_live, terminal
from .messages import after_edits, guard_text
from .options import RunOptions
from .page import serving, show_page
from .progress import CountedSource, ProgressView, readable
from .reconcile import Certified, certify
from .summary import result, show_causes, state_table
from .worker_processes import pay_with_workers

_SPEED_EVERY: Final = 1.0
"""Seconds between two readings of what came back."""

_SHOWN = 20


async def pay(order: RunOptions, context: CommandContext) -> Exit:
    """Load, confirm, pay, certify. Raises CommandEnded or PaymentsError before anything is sent."""
    _check_paths(order)
    if order.dry_run:
        return await preview(order, context)
    async with (
        serving(order.address, order.file, context, stays=order.open) as (page, context),
        open_client(
            order.base_url,
            concurrency=order.concurrency,
            insecure_database=order.insecure_database,
        ) as client,
        open_batch(order.address, client) as batch,
        page.of(batch),
    ):
        context.show.heading(order.file, f"ledger {order.address.shown}")
        loaded = await load(batch, order, context)
        order = attrs.evolve(order, address=order.address.of_batch(loaded.batch_id))
        guard, digest, before = client._internal.guard, client._internal.guard_digest, batch.header().guard
        if digest != before:
            _show_guard(() if guard is None else guard.guards, digest, before, context)
        try:
            _confirm(batch, digest, order, context)
        except CommandEnded:
            if loaded.is_new:  # nothing was sent from this ledger: it would only block the next attempt
                await batch.discard()
            raise
        if isinstance(batch, SharedBatch):
            await batch.plan(**order.rules, lossy_standby=order.lossy_standby)
        if order.detach:
            return _show_planned(order, context)
        if order.open:
            await show_page(page.server, context.show)
        return await _pay(batch, order, context)


def _check_paths(order: RunOptions) -> None:
    """Raise SourceUnreadable or CommandEnded before anything is opened."""
    _source(order)
    ledger = order.address
    if not ledger.is_database and (order.detach or order.workers != 1):
        problem = "--workers and --detach are for a ledger in a database (postgresql://…)"
        raise CommandEnded(f"{ledger.shown}: a file has one process; {problem}", Exit.USAGE)
    if not ledger.is_database and os.path.realpath(ledger.text) == os.path.realpath(order.file):
        problem = "the ledger is the file itself; choose another path"
        raise CommandEnded(f"{ledger.shown}: {problem}", Exit.USAGE)


def _source(order: RunOptions) -> Source:
    """The file, to be read. Raises SourceUnreadable when it cannot be."""
    return readable(order.file, **order.form)


async def load(batch: AnyBatch, order: RunOptions, context: CommandContext) -> ImportReport:
    """Import the file, or check that the ledger has it. Raises BulkError."""
    with _reading(order, context) as source:
        report = await batch.load(
            source, **order.reading, accept_edits=order.accept_edits, pay_again=order.pay_again
        )
    _show_import("Loaded", report, order, context)
    return report


async def preview(order: RunOptions, context: CommandContext) -> Exit:
    """Check every row; change nothing, send nothing. The key is used when it and an address are given."""
    context.show.heading(order.file, "a dry run: each row's form is checked; nothing is sent or recorded")
    key = os.environ.get("PAYMENTS_API_KEY", "")
    has_address = order.base_url or os.environ.get("PAYMENTS_BASE_URL")
    async with AsyncExitStack() as stack:
        client = None
        if key and has_address:
            client = await stack.enter_async_context(
                open_client(order.base_url, insecure_database=order.insecure_database)
            )
        batch = open_batch(order.address, client)
        with _reading(order, context) as source:
            report = await batch.preview(source, **order.reading)
    _show_import("Checked", report, order, context)
    if not context.as_json:
        _show_differences(report, context)
        if not key or is_live(key):
            context.show.step("Confirm", f"a live key wants {flags(report.payable)}")
    return Exit.REFUSED if report.differing else Exit.DONE


@contextmanager
def _reading(order: RunOptions, context: CommandContext) -> Iterator[Source]:
    """The file, whose reading is shown. Raises CommandEnded when the rejects cannot be written."""
    with context.progress("Reading") as view:
        try:
            yield CountedSource(_source(order), view.read)
        except OSError as error:
            if order.rejects is None:
                raise
            problem = f"the rejects cannot be written to {order.rejects} ({error.strerror})"
            raise CommandEnded(f"{problem}; nothing was sent", Exit.USAGE) from None


def _show_import(name: str, report: ImportReport, order: RunOptions, context: CommandContext) -> None:
    facts = attrs.asdict(report, recurse=False)
    facts |= {total: plain_sums(facts[total]) for total in ("totals", "payable", "input_totals")}
    facts["differences"] = [str(difference) for difference in report.differences]
    facts |= {"warnings": list(report.warnings), "rejects": order.rejects if report.skipped else None}
    context.show.step(name, _import_text(report), ledger=order.address.shown, **facts)
    if order.mapping:
        mapping = str(order.mapping)
        context.show.step("Columns", mapping, good=None, mapping=mapping, digest=order.mapping.digest)
    if facts["rejects"] and not context.as_json:
        context.show.step("Written", facts["rejects"], wrap=False)
    for warning in () if context.as_json else report.warnings:
        context.show.step("Warning", warning, good=False)


def _import_text(report: ImportReport) -> str:
    """`2,000 payouts, GHS 1,200.50; 3 rows with faults left out`."""
    loaded = f"{counted(report.rows, 'payout')}, {money_text(report.totals)}"
    parts = [loaded]
    if report.differing:
        now = f"the file as it is now comes to {money_text(report.input_totals)}"
        parts = [f"the ledger has {loaded}; {now}"]
    elif not report.is_new:
        parts += ["the ledger has them already"]
    parts += [f"{counted(report.skipped, 'row')} with faults left out"] if report.skipped else []
    parts += [f"{counted(report.corrected, 'row')} corrected"] if report.corrected else []
    parts += [f"{counted(report.cancelled, 'row')} cancelled"] if report.cancelled else []
    if report.payable != report.totals:
        parts += [f"{money_text(report.payable)} to pay, without cancelled rows"]
    return "; ".join(parts)


def _show_differences(report: ImportReport, context: CommandContext) -> None:
    """Rows that are not as the ledger has them."""
    shown = report.differences[:_SHOWN]
    for difference in shown:
        context.show.step("Edited", str(difference), good=difference.is_acceptable)
    if report.differing > len(shown):
        context.show.step("Edited", f"and {report.differing - len(shown):,} more rows", good=False)
    if report.differing:
        context.show.step("Edits", after_edits(report.differences), good=False)


def _confirm(batch: AnyBatch, guard: str, order: RunOptions, context: CommandContext) -> None:
    """Ask for the confirmation of a live batch's total. Raises CommandEnded without it."""
    report, input_hash = batch.status(), batch.header().binding.input_hash
    key = os.environ["PAYMENTS_API_KEY"]
    account = f"{order.base_url or os.environ['PAYMENTS_BASE_URL']} {read_key(key).fingerprint}"
    wanted = Confirmation(report.batch_id, input_hash, account, report.payable, guard)
    asking = ConfirmOptions(order.confirm_total or (), is_live(key), context.interrupts.asking, terminal())
    how = confirm(wanted, report.rows - report.counts["cancelled"], order.address, asking)
    if how:
        context.show.step("Confirmed", f"{money_text(wanted.totals)}, {how}", how=how)


def _show_planned(order: RunOptions, context: CommandContext) -> Exit:
    """Show how the planned batch is paid."""
    worker, status = order.address.option_command("worker"), order.address.command("status")
    text = "workers that run, on any machine, pay it now"
    context.show.step("Planned", text, batch_id=order.address.batch_id, worker=worker, status=status)
    print_next_steps([f"`{worker}` starts a worker; `{status}` shows how far it is."])
    return Exit.DONE


async def _pay(batch: AnyBatch, order: RunOptions, context: CommandContext) -> Exit:
    began, before = batch.now(), batch.status()
    progress = RunProgress(order.wait_final)
    try:
        report = await ledger_work(order.address, _run(batch, order, context, progress))
    except asyncio.CancelledError:
        if not context.interrupts.caught():
            raise
        report = await batch.refresh() if order.address.is_database else batch.status()
        report = attrs.evolve(report, stopped=f"{context.interrupts.reason}, twice")
        return _show_end(report, None, Exit.RESUMABLE, order, context, await causes_of(batch))
    await progress.note_speed(batch)
    after = attrs.evolve(report, speed=progress.speed)
    runs = [series for run, series in progress.series.by_run([RunTime(began, began)]) if run is not None]
    _show_speed(before, after, runs, context)
    certified = await certify(batch, order.address, context) if report.complete else None
    report = certified.applied_to(report) if certified else report
    return _show_end(report, certified, Exit(report.exit_code), order, context, await causes_of(batch))


async def _run(
    batch: AnyBatch, order: RunOptions, context: CommandContext, progress: RunProgress
) -> BatchReport:
    with context.progress("Paying") as view:
        view.show(batch.status(), SYSTEM.monotonic())
        async with progress.with_speed(view, batch):
            return await _paid(batch, order, context, progress, view)


async def _paid(
    batch: AnyBatch,
    order: RunOptions,
    context: CommandContext,
    progress: RunProgress,
    view: ProgressView,
) -> BatchReport:
    def show(figures: BatchFigures) -> None:
        progress.update(figures, view)

    def drain(reason: str) -> None:
        seconds = duration_text(order.drain)
        view.note(f"{reason}: finishing what is under way, {seconds} at most; a second signal cuts it off")
        batch.stop(reason)

    if order.workers != 1:
        paid = await pay_with_workers(order, context, view, show)
        await batch.refresh()  # what others have recorded
        if paid.stopped is not None or (order.workers == 0 and order.wait_final is None):
            return paid
    with context.interrupts.draining(drain):
        if order.workers == 0 and order.wait_final is not None:
            return await batch.follow(order.wait_final, show)
        return await batch.run(show, **order.pace)  # also what the workers left, and the closing


@attrs.define
class RunProgress:
    """The progress of a run: rows until all are decided, then payouts until all are final."""

    wait_final: float | None
    is_decided: bool = False
    """True once every row is decided."""
    speed: SpeedFigures | None = None
    """What came back, as read last."""
    series: RunSeries = attrs.field(factory=RunSeries)
    """The same second by second, of all runs."""
    _latest: BatchFigures | None = None

    @asynccontextmanager
    async def with_speed(self, view: ProgressView, batch: AnyBatch) -> AsyncIterator[None]:
        """Context in which the view shows what came back, read anew every second."""
        reading = asyncio.ensure_future(self._read_speed(view, batch))
        try:
            yield
        finally:
            reading.cancel()
            await asyncio.wait([reading])

    async def _read_speed(self, view: ProgressView, batch: AnyBatch) -> None:
        while True:
            await self.note_speed(batch)
            if self._latest is not None and not self.is_decided:
                view.show(attrs.evolve(self._latest, speed=self.speed), SYSTEM.monotonic())
            await SYSTEM.sleep(_SPEED_EVERY)

    async def note_speed(self, batch: AnyBatch) -> None:
        """Read what came back."""
        with suppress(PaymentsError):  # the run itself finds out what is wrong
            self.series = await batch.series()
            self.speed = SpeedFigures.of(self.series, SYSTEM.now().timestamp())

    def update(self, figures: BatchFigures, view: ProgressView) -> None:
        """Show what the latest commit changed."""
        self._latest = attrs.evolve(figures, speed=self.speed)
        view.show(self._latest, SYSTEM.monotonic())
        if figures.done == figures.rows and not self.is_decided:
            self.is_decided = True
            if self.wait_final is not None:
                view.note(f"all sent; followed until final, {duration_text(self.wait_final)} at most")


def _show_speed(
    before: BatchFigures, after: BatchFigures, runs: Sequence[RunSeries], context: CommandContext
) -> None:
    """Show what this run sent, and its length and pace if it was no short one."""
    rows = after.done - before.done
    if rows and not context.as_json:
        text, pace = counted(rows, "row"), length_and_pace(runs[-1]) if runs else None
        context.show.step(
            "Sent", f"{text} in {duration_text(pace[0])}, {rate_text(pace[1])}" if pace else text
        )
        if after.speed is not None:
            context.show.step("Answers", answers_text(after.speed), good=None)


def _show_end(
    report: BatchReport,
    certified: Certified | None,
    code: Exit,
    order: RunOptions,
    context: CommandContext,
    causes: Sequence[Cause],
) -> Exit:
    report, ledger = with_causes(report, causes), order.address
    is_refused = bool(refused(report.counts, ledger))
    clean = None if certified is None or is_refused else certified.code is not Exit.REFUSED
    unproven = certified is not None and certified.unproven
    stopped = report.stopped or (None if certified is None else certified.reason)
    steps = after_run(report, code, stopped, ledger, clean=clean, unproven=unproven)
    context.show.render(state_table(report))
    if context.as_json:
        facts = {**result(report, code, steps, causes), "certificate": certified and certified.path}
        context.show.step("Finished", "", good=code is Exit.DONE, **facts)
    else:
        show_causes(causes, context.show)
    print_next_steps(steps)
    return code


def _show_guard(guards: Sequence[Guard], digest: str, before: str, context: CommandContext) -> None:
    """Show the rules under which the batch is run from now on."""
    text = f"{guard_text(guards)}; until now {f'guard {before}' if before else 'none'}"
    rules = [guard.rules() for guard in guards]
    context.show.step("Guard", text, good=None, digest=digest or None, before=before or None, rules=rules)
