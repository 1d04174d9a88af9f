"""`payments payouts run`: from the file, through the ledger, to the certificate."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import attrs

from ..._request.auth import read_key
from ..._runtime import SYSTEM
from ...bulk import BatchReport, ImportReport, LoadOptions, PayoutBatch, Progress
from ...bulk.sources import Source
from .._exit_codes import CommandEnded, Exit
from . import files, messages
from .amounts import Confirmation, Money, flags, grouped, plain
from .confirm import ConfirmOptions, confirm, is_live, terminal
from .messages import after_edits, counted
from .progress import ProgressView, Watched, board_on, readable
from .reconcile import Certified, certify
from .session import CommandContext, figures_of, paying, recorded, result, tell_next
from .summary import BatchFigures, standing, told_duration, told_rate

_SHOWN = 20


@attrs.frozen(kw_only=True)
class RunOptions:
    """What `payments payouts run` was asked for."""

    file: str
    ledger: str
    base_url: str | None
    confirm_total: Sequence[str]
    strict_amounts: bool
    delimiter: str | None
    dry_run: bool
    accept_edits: bool
    pay_again: bool
    reading: dict[str, Any]
    """Options of `PayoutBatch.load` and `preview`."""
    pace: dict[str, Any]
    """Options of `PayoutBatch.run`."""

    def check(self) -> None:
        """See that the file can be read, before anything else is opened. Raises SourceUnreadable or Ended."""
        self.source()
        if os.path.realpath(self.ledger) == os.path.realpath(self.file):
            raise CommandEnded(
                f"{self.ledger}: the ledger is the file itself; choose another path", Exit.USAGE
            )

    def source(self) -> Source:
        """The file, to be read. Raises SourceUnreadable when it cannot be."""
        return readable(self.file, strict_amounts=self.strict_amounts, delimiter=self.delimiter)


async def load(batch: PayoutBatch, order: RunOptions, stage: CommandContext) -> ImportReport:
    """Import the file, or see that the ledger has it. Raises BulkError."""
    options: LoadOptions = {"accept_edits": order.accept_edits, "pay_again": order.pay_again}
    with board_on(stage.console, stage.show, "Reading", as_json=stage.as_json) as board:
        source = Watched(order.source(), board.read)
        with _rejects_told(order.reading["rejects"]):
            report = await batch.load(source, **order.reading, **options)
    _tell("Loaded", _came_to(report), report, order, stage)
    return report


async def preview(order: RunOptions, stage: CommandContext) -> Exit:
    """Check every row, change nothing, send nothing. A key is used when there is one."""
    async with AsyncExitStack() as stack:
        has_key = bool(os.environ.get("PAYMENTS_API_KEY"))
        client = await stack.enter_async_context(paying(order.base_url)) if has_key else None
        stage.show.heading(order.file, "a dry run: each row's form is checked; nothing is sent or recorded")
        with board_on(stage.console, stage.show, "Reading", as_json=stage.as_json) as board:
            source = Watched(order.source(), board.read)
            with _rejects_told(order.reading["rejects"]):
                report = await PayoutBatch.open(order.ledger, client).preview(source, **order.reading)
    _tell("Checked", _came_to(report), report, order, stage)
    if not stage.as_json:
        for difference in report.differences[:_SHOWN]:
            stage.show.step("Edited", str(difference), good=difference.is_acceptable)
        if report.differing > len(report.differences[:_SHOWN]):
            stage.show.step("Edited", f"and {report.differing - _SHOWN:,} more rows", good=False)
        if report.differing:
            stage.show.step("Edits", after_edits(report.differences), good=False)
        if not has_key or is_live(os.environ["PAYMENTS_API_KEY"]):
            stage.show.step("Confirm", f"a live key wants {flags(report.payable)}")
    return Exit.REFUSED if report.differing else Exit.DONE


@contextmanager
def _rejects_told(path: str | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if path is None:
            raise
        told = f"the rejects cannot be written to {path} ({error.strerror}); nothing was sent"
        raise CommandEnded(told, Exit.USAGE) from None


def _came_to(report: ImportReport) -> str:
    told = [f"{counted(report.rows, 'payout')}, {_money(report.totals)}"]
    if report.differing:
        told = [f"the ledger has {told[0]}; the file as it is now comes to {_money(report.input_totals)}"]
    told += [] if report.is_new or report.differing else ["the ledger has them already"]
    told += [f"{counted(report.skipped, 'row')} with faults left out"] if report.skipped else []
    told += [f"{counted(report.corrected, 'row')} corrected"] if report.corrected else []
    told += [f"{counted(report.cancelled, 'row')} called off"] if report.cancelled else []
    told += [f"{_money(report.payable)} to pay, without rows called off"] * (report.payable != report.totals)
    return "; ".join(told)


def _money(totals: Money) -> str:
    return (
        ", ".join(f"{currency} {grouped(total)}" for currency, total in sorted(totals.items())) or "nothing"
    )


def _tell(name: str, text: str, report: ImportReport, order: RunOptions, stage: CommandContext) -> None:
    stage.show.step(
        name,
        text,
        ledger=order.ledger,
        batch_id=report.batch_id,
        rows=report.rows,
        totals={currency: plain(total) for currency, total in sorted(report.totals.items())},
        payable={currency: plain(total) for currency, total in sorted(report.payable.items())},
        input_totals={currency: plain(total) for currency, total in sorted(report.input_totals.items())},
        is_new=report.is_new,
        skipped=report.skipped,
        corrected=report.corrected,
        cancelled=report.cancelled,
        differing=report.differing,
        differences=[str(difference) for difference in report.differences],
        warnings=list(report.warnings),
    )
    for warning in () if stage.as_json else report.warnings:
        stage.show.step("Warning", warning, good=False)


async def pay(order: RunOptions, stage: CommandContext) -> Exit:
    """Load, confirm, pay, certify. Raises Ended or PaymentsError before anything is sent."""
    order.check()
    if order.dry_run:
        return await preview(order, stage)
    concurrency = order.pace["concurrency"]
    async with (
        paying(order.base_url, concurrency=concurrency) as client,
        PayoutBatch.open(order.ledger, client) as batch,
    ):
        stage.show.heading(order.file, f"ledger {order.ledger}")
        loaded = await load(batch, order, stage)
        try:
            _confirm(batch, order, stage)
        except CommandEnded:
            if (
                loaded.is_new
            ):  # nothing was ever sent under it: it would only stand in the way of the next try
                await batch.discard()
            raise
        return await _pay(batch, order, stage)


def _confirm(batch: PayoutBatch, order: RunOptions, stage: CommandContext) -> None:
    figures = figures_of(batch.status())
    said = files.status_said(order.ledger).get("input_hash")
    key = os.environ["PAYMENTS_API_KEY"]
    place = f"{order.base_url or os.environ['PAYMENTS_BASE_URL']} {read_key(key).fingerprint}"
    wanted = Confirmation(batch.status().batch_id, str(said or ""), place, figures.payable())
    live = is_live(key)
    asking = ConfirmOptions(order.confirm_total, live, stage.interrupts.asking, terminal())
    how = confirm(wanted, figures.rows - figures.counts["cancelled"], order.ledger, asking)
    if how:
        money = ", ".join(f"{currency} {grouped(total)}" for currency, total in sorted(wanted.totals.items()))
        stage.show.step("Confirmed", f"{money}, {how}", how=how)


async def _pay(batch: PayoutBatch, order: RunOptions, stage: CommandContext) -> Exit:
    began, before = SYSTEM.monotonic(), figures_of(batch.status())
    end = End(order.pace["wait_final"])
    try:
        report = await recorded(order.ledger, _run(batch, order, stage, end))
    except asyncio.CancelledError:
        if not stage.interrupts.caught():
            raise
        report = attrs.evolve(batch.status(), stopped=f"{stage.interrupts.reason}, twice")
        return _tell_end(report, None, Exit.RESUMABLE, order, stage)
    _tell_paid(before, figures_of(report), (end.decided or SYSTEM.monotonic()) - began, stage)
    certified = await certify(batch, order.ledger, stage) if report.complete else None
    report = certified.ended(report) if certified else report
    return _tell_end(report, certified, Exit(report.exit_code), order, stage)


async def _run(batch: PayoutBatch, order: RunOptions, stage: CommandContext, end: End) -> BatchReport:
    with board_on(stage.console, stage.show, "Paying", as_json=stage.as_json) as board:
        board.show(figures_of(batch.status()), SYSTEM.monotonic())

        def drain(reason: str) -> None:
            seconds = told_duration(order.pace["drain"])
            board.note(f"{reason}: finishing what is under way, {seconds} at most; once more cuts it off")
            batch.stop(f"{reason}")

        with stage.interrupts.draining(drain):
            return await batch.run(lambda progress: end.saw(progress, board, batch), **order.pace)


@attrs.define
class End:
    """Shows progress; once every row is decided, what is waited for, and how the payouts end."""

    wait_final: float | None
    decided: float | None = None
    """When every row was decided, by the monotonic clock; None before that."""

    def saw(self, progress: Progress, board: ProgressView, batch: PayoutBatch) -> None:
        """A commit."""
        figures, at = figures_of(progress), SYSTEM.monotonic()
        if figures.done < figures.rows:
            board.show(figures, at)
            return
        is_first = self.decided is None
        self.decided = self.decided or at
        ended = None if self.wait_final is None else figures_of(batch.status()).ended
        board.show(attrs.evolve(figures, ended=ended), at)
        if is_first and self.wait_final is not None:
            board.note(f"all sent; followed until final, {told_duration(self.wait_final)} at most")


def _tell_paid(before: BatchFigures, after: BatchFigures, seconds: float, stage: CommandContext) -> None:
    rows = after.done - before.done
    if rows and not stage.as_json:
        told = f"{messages.counted(rows, 'row')} in {told_duration(seconds)}"
        stage.show.step("Sent", f"{told}, {told_rate(rows / seconds)}" if seconds else told)


def _tell_end(
    report: BatchReport, certified: Certified | None, code: Exit, order: RunOptions, stage: CommandContext
) -> Exit:
    figures = figures_of(report)
    is_refused = bool(messages.refused(figures.counts, order.ledger))
    clean = None if certified is None or is_refused else certified.code is not Exit.REFUSED
    todo = messages.after_run(figures, code, report.stopped, order.ledger, failed=report.failed, clean=clean)
    _tell_finals(report, stage)
    stage.show.picture(standing(figures))
    if stage.as_json:
        facts = {**result(report, code, todo), "certificate": certified and certified.path}
        stage.show.step("Finished", "", good=code is Exit.DONE, **facts)
    tell_next(todo)
    return code


def _tell_finals(report: BatchReport, stage: CommandContext) -> None:
    """How the created payouts ended, when that was asked about."""
    if report.finals and not stage.as_json:
        told = [f"{number:,} {status}" for status, number in sorted(report.finals.items())]
        told += [f"{report.awaited:,} not final yet"] if report.awaited else []
        stage.show.step("Final", " · ".join(told), good=not report.failed)
