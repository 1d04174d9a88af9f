"""`payments payouts run`: from the file to the certificate."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import attrs

from ..._auth import read_key
from ..._runtime import SYSTEM
from ...bulk import BatchReport, PayoutBatch, Progress
from .._exit import Ended, Exit
from . import advice, beside
from .board import Board, board_on
from .certifying import Certified, certify
from .confirming import Asking, confirm, is_live, terminal
from .figures import Figures, told_duration
from .loading import Order, load, preview
from .table import standing
from .totals import Confirmation, grouped
from .working import Stage, figures_of, paying, recorded, result, tell_next


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
    said = beside.status_said(order.ledger).get("input_hash")
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
    try:
        report = await recorded(order.ledger, _run(batch, order, stage))
    except asyncio.CancelledError:
        if not stage.interrupts.caught():
            raise
        report = attrs.evolve(batch.status(), stopped=f"{stage.interrupts.reason}, twice")
        return _tell_end(report, Certified(None, None), Exit.RESUMABLE, order, stage)
    _tell_paid(before, figures_of(report), SYSTEM.monotonic() - began, stage)
    code = Exit(report.exit_code)
    if not report.complete:
        return _tell_end(report, Certified(None, None), code, order, stage)
    certified = await certify(batch, order.ledger, stage)
    return _tell_end(report, certified, certified.code_for(code), order, stage)


async def _run(batch: PayoutBatch, order: Order, stage: Stage) -> BatchReport:
    with board_on(stage.console, stage.show, "Paying", as_json=stage.as_json) as board:
        board.show(figures_of(batch.status()), SYSTEM.monotonic())

        def drain(reason: str) -> None:
            seconds = told_duration(order.pace["drain"])
            board.note(f"{reason}: finishing what is under way, {seconds} at most; once more cuts it off")
            batch.stop(f"{reason}")

        with stage.interrupts.draining(drain):
            return await batch.run(_noting_the_end(board, order), **order.pace)


def _noting_the_end(board: Board, order: Order) -> Callable[[Progress], None]:
    """Shows progress, and says what is waited for once every row is decided."""
    noted = order.pace["wait_final"] is None

    def show(progress: Progress) -> None:
        nonlocal noted
        figures = figures_of(progress)
        board.show(figures, SYSTEM.monotonic())
        if not noted and figures.done == figures.rows:
            noted = True
            seconds = told_duration(order.pace["wait_final"])
            board.note(f"all sent; following the payouts until they are final, {seconds} at most")

    return show


def _tell_paid(before: Figures, after: Figures, seconds: float, stage: Stage) -> None:
    rows = after.done - before.done
    if rows and not stage.as_json:
        rate = rows / seconds if seconds else 0.0
        stage.show.step(
            "Sent", f"{advice.counted(rows, 'row')} in {told_duration(seconds)}, {rate:,.0f} a second"
        )


def _tell_end(report: BatchReport, certified: Certified, code: Exit, order: Order, stage: Stage) -> Exit:
    figures = figures_of(report)
    clean = None if advice.refused(figures.counts, order.ledger) else certified.is_clean
    todo = advice.after_run(figures, code, report.stopped, order.ledger, failed=report.failed, clean=clean)
    _tell_finals(report, stage)
    stage.show.picture(standing(figures))
    if stage.as_json:
        facts = {**result(report, code, todo), "certificate": certified.path}
        stage.show.step("Finished", "", good=code is Exit.DONE, **facts)
    tell_next(todo)
    return code


def _tell_finals(report: BatchReport, stage: Stage) -> None:
    """How the created payouts ended, when that was asked about."""
    if report.finals and not stage.as_json:
        told = [f"{number:,} {status}" for status, number in sorted(report.finals.items())]
        told += [f"{report.awaited:,} not final yet"] if report.awaited else []
        stage.show.step("Final", " · ".join(told), good=not report.failed)
