"""`payments payouts run`: from the file, through the ledger, to the certificate."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import Final

import attrs

from ..._runtime import SYSTEM
from ...bulk import Batch, BatchFigures, ImportReport, PayoutBatch
from ...bulk._page import BatchPage
from ...bulk._texts.ledger_address import open_batch
from ...bulk._texts.outcomes import title_of
from ...bulk._texts.quantities import counted, duration_text, money_text, plain_sums
from ...bulk.errors import LedgerMissing
from ...bulk.sources import Source, open_source
from .._exit_codes import CommandEnded, Exit
from .command_context import CommandContext, open_client
from .confirm import confirm_batch, doubts_text, flags, is_live, terminal
from .messages import after_edits
from .options import RunOptions
from .page import run_page
from .progress import LinesView
from .reconcile import certificate_text, show_certificate
from .summary import show_end

_FORM: Final = ("delimiter", "sheet", "header_row", "mapping")
_READING: Final = ("batch_id", "skip_invalid", "rejects")
_LIMITS: Final = ("max_amount", "max_rows", "max_failure_rate")
_PACE: Final = ("concurrency", "patience", "drain", "for_seconds", "wait_final", "follow")
_SHOWN: Final = 20


async def pay(order: RunOptions, context: CommandContext) -> Exit:
    """Load, confirm, pay. Raises CommandEnded or PaymentsError before anything is sent."""
    file = order.file
    if file is not None:
        _source(file, order)  # before anything is opened
    if order.dry_run:
        return await preview(file, order, context)
    async with (
        open_client(
            order.base_url, concurrency=order.concurrency, insecure_database=order.insecure_database
        ) as client,
        open_batch(order.address, client, create=file is not None) as batch,
    ):
        about = title_of(batch.batch_id) if file is None else f"ledger {order.address.shown}"
        context.show.heading(file or order.address.shown, about)
        loaded = None if file is None else await load(file, batch, order, context)
        if order.address.is_database:  # which has other batches, too, sooner or later
            order = attrs.evolve(order, address=attrs.evolve(order.address, batch_id=batch.batch_id or None))
        if (guard := client._internal.guard) is not None:
            rules, digest = [each.rules() for each in guard.guards], client._internal.guard_digest
            context.show.step("Guard", json.dumps(rules), good=None, digest=digest, rules=rules)
        facts = await _facts(batch)
        if facts is not None and not facts.is_outbox:
            try:
                await _confirm(batch, facts, order, context)
            except CommandEnded as refused:
                if loaded is not None and loaded.is_new and refused.code is not Exit.RESUMABLE:
                    await batch.discard()  # it would only block the next attempt
                raise
        await _limit(batch, facts, order)
        async with AsyncExitStack() as stack:
            page = await stack.enter_async_context(run_page(order.address, context)) if order.page else None
            return await _pay(batch, page, order, context)


def _source(file: str, order: RunOptions) -> Source:
    """The file, to be read. Raises SourceUnreadable when it cannot be."""
    source = open_source(file, **order.only(*_FORM))
    source.stat()
    return source


async def _facts(batch: PayoutBatch) -> Batch | None:
    """What is known of the batch; None where it is not there: an outbox begins with its first run."""
    with suppress(LedgerMissing):
        return await batch.facts()
    return None


async def _limit(batch: PayoutBatch, facts: Batch | None, order: RunOptions) -> None:
    """Set the limits that were given. Raises CommandEnded for an outbox."""
    given = order.only(*_LIMITS)
    if not any(limit is not None for limit in given.values()):
        return
    if facts is None or facts.is_outbox:
        options = "--max-rows, --max-amount and --max-failure-rate are for files"
        raise CommandEnded(f"{order.address.shown}: {options}; a guard bounds an outbox", Exit.USAGE)
    await batch.limit(**given)


# Loading


async def load(file: str, batch: PayoutBatch, order: RunOptions, context: CommandContext) -> ImportReport:
    """Import the file, or check that the ledger has it. Raises BulkError."""
    with _reading(file, order, context) as source:
        report = await batch.load(
            source,
            **order.only(*_READING),
            doubts=not order.no_doubts,
            accept_edits=order.accept_edits,
            pay_again=order.pay_again,
        )
    _show_import("Loaded", report, order, context)
    return report


async def preview(file: str | None, order: RunOptions, context: CommandContext) -> Exit:
    """Check every row; change nothing, send nothing. The key is used when it and an address are given."""
    if file is None:
        raise CommandEnded("--dry-run checks a file: FILE is missing", Exit.USAGE)
    context.show.heading(file, "a dry run: each row's form is checked; nothing is sent or recorded")
    key = os.environ.get("PAYMENTS_API_KEY", "")
    has_address = order.base_url or os.environ.get("PAYMENTS_BASE_URL")
    async with AsyncExitStack() as stack:
        client = None
        if key and has_address:
            given = open_client(order.base_url, insecure_database=order.insecure_database)
            client = await stack.enter_async_context(given)
        batch = open_batch(order.address, client)
        with _reading(file, order, context) as source:
            report = await batch.preview(source, **order.only(*_READING), doubts=not order.no_doubts)
    _show_import("Checked", report, order, context)
    for difference in report.differences[:_SHOWN]:
        context.show.line("Edited", str(difference), good=difference.is_acceptable)
    if report.differing:
        text = f"{counted(report.differing, 'row')} in all. {after_edits(report.differences)}"
        context.show.line("Edits", text, good=False)
    if not key or is_live(key):
        context.show.line("Confirm", f"a live key wants {flags(report.payable)}{doubts_text(report.doubts)}")
    return Exit.REFUSED if report.differing else Exit.DONE


@contextmanager
def _reading(file: str, order: RunOptions, context: CommandContext) -> Iterator[Source]:
    """The file, to be read. Raises CommandEnded when the rejects cannot be written."""
    with context.spinner(f"Reading {file}"):
        try:
            yield _source(file, order)
        except OSError as error:
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
    if report.skipped and order.rejects is not None:
        context.show.line("Written", order.rejects, good=True, wrap=False)
    for warning in report.warnings:
        context.show.line("Warning", warning, good=False)


def _import_text(report: ImportReport) -> str:
    """`2,000 payouts, GHS 1,200.50; 3 rows with faults left out`."""
    loaded = f"{counted(report.rows, 'payout')}, {money_text(report.totals)}"
    parts = [loaded]
    if report.differing:
        now = f"the file as it is now comes to {money_text(report.input_totals)}"
        parts = [f"the ledger has {loaded}; {now}"]
    elif not report.is_new:
        parts += ["the ledger has them already"]
    parts += [f"{counted(report.doubts, 'row')} with a doubt"] if report.doubts else []
    parts += [f"{counted(report.skipped, 'row')} with faults left out"] if report.skipped else []
    parts += [f"{counted(report.corrected, 'row')} corrected"] if report.corrected else []
    parts += [f"{counted(report.cancelled, 'row')} cancelled"] if report.cancelled else []
    if report.payable != report.totals:
        parts += [f"{money_text(report.payable)} to pay, without cancelled rows"]
    return "; ".join(parts)


async def _confirm(batch: PayoutBatch, facts: Batch, order: RunOptions, context: CommandContext) -> None:
    """Ask for the confirmation of a live batch's total. Raises CommandEnded without it."""
    live, given = is_live(os.environ["PAYMENTS_API_KEY"]), order.confirm_total or ()
    if facts.is_confirmed and not given:
        context.show.step("Confirmed", "earlier, and nothing has changed since", how="earlier")
        return
    report = await batch.status()
    if live and not given and terminal() is None:
        raise CommandEnded(
            "a live key pays real money, its total is not confirmed, and there is no terminal to type it on; "
            f"nothing was sent. Run it again with {flags(report.payable)}, or once another person has said "
            f"yes with `{order.address.command('confirm')}`",
            Exit.RESUMABLE,
        )
    how = await confirm_batch(batch, report, given, live=live, context=context)
    if how is not None:
        context.show.step("Confirmed", f"{money_text(report.payable)}, {how}", how=how)


# Paying


async def _pay(
    batch: PayoutBatch, page: BatchPage | None, order: RunOptions, context: CommandContext
) -> Exit:
    try:
        with context.progress("Paying") as view:

            def on_progress(figures: BatchFigures) -> None:
                view.show(figures, SYSTEM.monotonic())
                if page is not None:
                    page.show(figures)

            def drain(reason: str) -> None:
                longest = f"{duration_text(order.drain)} at most; a second signal cuts it off"
                view.note(f"{reason}: finishing what is under way, {longest}")
                batch.stop(reason)

            with context.interrupts.draining(drain):
                report = await batch.run(on_progress, **order.only(*_PACE))
            if isinstance(view, LinesView):  # a bar disappears
                view.end(report)
    except asyncio.CancelledError:
        if not context.interrupts.caught():
            raise
        reason = f"{context.interrupts.reason}, twice"
        report = attrs.evolve(await batch.status(), stopped=reason, exit_code=int(Exit.RESUMABLE))
    causes, kept = await batch.causes(0), (await batch.facts()).certificate
    if report.certificate is not None:
        show_certificate(report.certificate, context)
    elif report.is_complete and report.stopped is None and kept is not None:
        context.show.line("Certified", f"nothing has changed since: {certificate_text(kept)}", good=True)
    return show_end(report, causes, order.address, context)
