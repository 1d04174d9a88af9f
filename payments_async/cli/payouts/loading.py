"""The input into the ledger, or looked at only, and what is told of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import attrs

from ...bulk import ImportReport, LoadOptions, PayoutBatch
from ...bulk.sources import Source
from .._exit_codes import Ended, Exit
from .amounts import Money, flags, grouped, plain
from .confirm import is_live
from .failures import after_edits
from .messages import counted
from .progress import board_on
from .reading import Watched, readable
from .session import Stage, paying

_SHOWN = 20


@attrs.frozen(kw_only=True)
class Order:
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
            raise Ended(f"{self.ledger}: the ledger is the file itself; choose another path", Exit.USAGE)

    def source(self) -> Source:
        """The file, to be read. Raises SourceUnreadable when it cannot be."""
        return readable(self.file, strict_amounts=self.strict_amounts, delimiter=self.delimiter)


async def load(batch: PayoutBatch, order: Order, stage: Stage) -> ImportReport:
    """Import the file, or see that the ledger has it. Raises BulkError."""
    options: LoadOptions = {"accept_edits": order.accept_edits, "pay_again": order.pay_again}
    with board_on(stage.console, stage.show, "Reading", as_json=stage.as_json) as board:
        source = Watched(order.source(), board.read)
        with _rejects_told(order.reading["rejects"]):
            report = await batch.load(source, **order.reading, **options)
    _tell("Loaded", _came_to(report), report, order, stage)
    return report


async def preview(order: Order, stage: Stage) -> Exit:
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
        raise Ended(told, Exit.USAGE) from None


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


def _tell(name: str, text: str, report: ImportReport, order: Order, stage: Stage) -> None:
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
