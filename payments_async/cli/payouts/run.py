"""`payments payouts run`: from the file to the certificate."""

from __future__ import annotations

import asyncio
import os

import attrs

from ..._request.auth import read_key
from ..._runtime import SYSTEM
from ...bulk import BatchReport, PayoutBatch, Progress
from .._exit_codes import Ended, Exit
from . import files, messages
from .amounts import Confirmation, grouped
from .certifying import Certified, certify
from .confirm import Asking, confirm, is_live, terminal
from .loading import Order, load, preview
from .progress import Board, board_on
from .session import Stage, figures_of, paying, recorded, result, tell_next
from .summary import Figures, told_duration, told_rate
from .table import standing


async def pay(order: Order, stage: Stage) -> Exit:
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
        except Ended:
            if (
                loaded.is_new
            ):  # nothing was ever sent under it: it would only stand in the way of the next try
                await batch.discard()
            raise
        return await _pay(batch, order, stage)


def _confirm(batch: PayoutBatch, order: Order, stage: Stage) -> None:
    figures = figures_of(batch.status())
    said = files.status_said(order.ledger).get("input_hash")
    key = os.environ["PAYMENTS_API_KEY"]
    place = f"{order.base_url or os.environ['PAYMENTS_BASE_URL']} {read_key(key).fingerprint}"
    wanted = Confirmation(batch.status().batch_id, str(said or ""), place, figures.payable())
    live = is_live(key)
    asking = Asking(order.confirm_total, live, stage.interrupts.asking, terminal())
    how = confirm(wanted, figures.rows - figures.counts["cancelled"], order.ledger, asking)
    if how:
        money = ", ".join(f"{currency} {grouped(total)}" for currency, total in sorted(wanted.totals.items()))
        stage.show.step("Confirmed", f"{money}, {how}", how=how)


async def _pay(batch: PayoutBatch, order: Order, stage: Stage) -> Exit:
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


async def _run(batch: PayoutBatch, order: Order, stage: Stage, end: End) -> BatchReport:
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

    def saw(self, progress: Progress, board: Board, batch: PayoutBatch) -> None:
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


def _tell_paid(before: Figures, after: Figures, seconds: float, stage: Stage) -> None:
    rows = after.done - before.done
    if rows and not stage.as_json:
        told = f"{messages.counted(rows, 'row')} in {told_duration(seconds)}"
        stage.show.step("Sent", f"{told}, {told_rate(rows / seconds)}" if seconds else told)


def _tell_end(
    report: BatchReport, certified: Certified | None, code: Exit, order: Order, stage: Stage
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


def _tell_finals(report: BatchReport, stage: Stage) -> None:
    """How the created payouts ended, when that was asked about."""
    if report.finals and not stage.as_json:
        told = [f"{number:,} {status}" for status, number in sorted(report.finals.items())]
        told += [f"{report.awaited:,} not final yet"] if report.awaited else []
        stage.show.step("Final", " · ".join(told), good=not report.failed)
