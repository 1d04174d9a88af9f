"""`payments payouts status`, `watch`, `show`, `export`, `template`, `batches`: the ledger alone, no key."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote, urlsplit

import attrs

from ..._runtime import SYSTEM
from ...bulk import Batch, BatchReport, Outcome, RowView
from ...bulk._page import write_page
from ...bulk._texts.advice import PAUSED, after_run
from ...bulk._texts.figures import seconds_left, with_causes
from ...bulk._texts.ledger_address import LedgerAddress, open_batch
from ...bulk._texts.outcomes import NAMES, failures_text, status_text, title_of
from ...bulk._texts.quantities import counted, duration_text, moment, money_text, plain_sums, rate_text
from ...bulk.sources import write_template
from ...models._masking import clean
from ...models.common import amount_text
from .._exit_codes import CommandEnded, Exit
from .command_context import CommandContext
from .reconcile import certificate_text
from .summary import result, show_causes, show_money, show_unreadable

_EVERY: Final = 1.0  # seconds between two looks of `watch`, at least
_SHARE: Final = 10  # they are so many times as long as a look takes, at least
_GOOD: Final = (Outcome.NOT_FINAL, Outcome.ARRIVED)
_BAD: Final = (Outcome.IN_DOUBT, Outcome.REJECTED, Outcome.CONFLICT, Outcome.FAILED, Outcome.RETURNED)


async def status(ledger: LedgerAddress, context: CommandContext) -> Exit:
    async with open_batch(ledger) as batch:
        facts, report, causes = await batch.facts(), await batch.status(), await batch.causes(0)
        holders = await batch.holders()
        pace = await batch.pace() if holders else 0.0
    report = with_causes(report, causes)
    steps, failures = _steps(report, facts, holders, ledger), failures_text(report)
    context.show.heading(ledger.shown, title_of(report.batch_id))
    context.show.step(
        "Batch",
        _state_text(report, facts, failures),
        good=False if failures else report.is_complete or None,
        running=bool(holders),
        holders=holders,
        per_second=round(pace, 1),
        **batch_facts(facts),
        others=report.others,
        **result(report, steps, causes),
    )
    context.show.line("Running", _running_text(report, holders, pace))
    if report.others:
        told = f"{counted(report.others, 'row')} for keys of the other environment, which it never sends"
        context.show.line("Others", told)
    show_money(report, context.show)
    show_causes(causes, context.show)
    show_unreadable(report.unreadable, context.show)
    for sentence in steps:
        context.show.paragraph(sentence)
    return Exit.DONE


def needs_confirmation(facts: Batch) -> bool:
    """Whether nothing is paid before a person has confirmed the total."""
    return facts.binding.environment == "live" and not facts.is_outbox and not facts.is_confirmed


def batch_facts(facts: Batch) -> dict[str, Any]:
    """What is known of a batch beside its figures, for programs."""
    return {
        "environment": facts.binding.environment,
        "outbox": facts.is_outbox,
        "created_at": facts.created_at,
        "paused": facts.paused,
        "limit": facts.limit_reason,
        "confirmed": facts.is_confirmed,
        "certificate": facts.certificate,
        "forgotten_at": facts.forgotten_at,
    }


def _state_text(report: BatchReport, facts: Batch, failures: str) -> str:
    """How far a batch is, in a word or two."""
    if facts.forgotten_at is not None:
        return f"its rows were deleted on {moment(facts.forgotten_at)} UTC"
    state = "complete" if report.is_complete else "not complete"
    if report.is_untouched and not report.is_complete:
        state = "nothing was sent yet"
    state += failures and f", {failures}"
    if facts.paused is not None:
        state += f"; paused: {facts.paused}"
    if facts.limit_reason is not None and not report.is_complete:
        state += f"; limited to {facts.limit_reason}"
    if needs_confirmation(facts):
        state += "; its total is not confirmed"
    if report.is_complete and facts.certificate is not None:
        state += f"; {certificate_text(facts.certificate)}"
    return state


def _running_text(report: BatchReport, holders: Sequence[str], pace: float) -> str:
    """`2 processes: host-1 4711, host-2 4711; 120 a second, 56 s left`."""
    if not holders:
        return "no process has rows in hand"
    names = ", ".join(clean(" ".join(holder.split(":")[:2])) for holder in sorted(holders))
    left = seconds_left(report, pace)
    parts = [rate_text(pace)] * bool(pace) + ([] if left is None else [f"{duration_text(left)} left"])
    processes = f"{len(holders)} process{'es' * (len(holders) > 1)}"
    return "; ".join([f"{processes}: {names}", *filter(None, [", ".join(parts)])])


def _steps(report: BatchReport, facts: Batch, holders: Sequence[str], ledger: LedgerAddress) -> list[str]:
    if facts.forgotten_at is not None or (holders and not report.is_complete and facts.paused is None):
        return []
    if needs_confirmation(facts):
        return [f"Nothing is paid before `{ledger.command('confirm')}` has said yes to its total."]
    if facts.paused is not None and not report.is_complete:
        report = attrs.evolve(report, stopped=f"{PAUSED}: {facts.paused}", resumable="after_change")
    elif report.is_untouched:
        return []
    return after_run(report, ledger, clean=(facts.certificate or {}).get("clean"))


async def watch(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """Show the figures until the batch is complete, and at the end what `status` shows."""
    stopped = asyncio.Event()
    with context.interrupts.draining(lambda _: stopped.set()), context.progress("Paying") as view:
        async with open_batch(ledger) as batch:
            is_outbox = (await batch.facts()).is_outbox  # more may come
            while not stopped.is_set():
                began = SYSTEM.monotonic()
                report = await batch.status()
                now = SYSTEM.monotonic()
                view.show(report, now)
                if report.is_complete and not is_outbox:
                    break
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(_EVERY, _SHARE * (now - began))):
                        await stopped.wait()
    return await status(ledger, context)


async def show_row(ledger: LedgerAddress, name: str, context: CommandContext) -> Exit:
    """Show the row with this key, reference or number. Raises CommandEnded and LedgerError."""
    async with open_batch(ledger) as batch:
        known = await batch.facts()  # says so if there is none
        row = await batch.row(name)
    if row is None:
        problem = f"{ledger.shown}: no row has this key, reference or number: {name}"
        raise CommandEnded(problem, Exit.USAGE)
    line = "" if row.line is None else f", line {row.line} of the file"
    text = f"{row.row_key}, number {row.number}{line}"
    context.show.heading(ledger.shown, f"row {row.number}")
    inspector = _inspector_page(known.binding.base_url, row.payout_id)
    context.show.step("Row", text, good=None, **row.facts(), inspector=inspector)
    _show_facts(row, context.show.line)
    if inspector is not None:
        context.show.line("Inspector", inspector, wrap=False)
    return Exit.DONE


def _inspector_page(base_url: str, payout_id: str | None) -> str | None:
    """The address of a payout's page, if a sandbox made it: only there is plain http used."""
    parts = urlsplit(base_url)
    if parts.scheme != "http" or payout_id is None:
        return None
    return f"{parts.scheme}://{parts.netloc}/_sandbox/payouts/{quote(payout_id, safe='')}"


def _show_facts(row: RowView, show: Callable[..., None]) -> None:
    show("Reference", row.reference, wrap=False)
    show("Amount", f"{amount_text(row.currency, row.amount)} by {row.method}")
    account = ", ".join(f"{key} {value}" for part in row.account.values() for key, value in part.items())
    show("Account", account or "none")
    is_good = row.outcome in _GOOD and not row.reason  # with a reason it contradicts itself
    is_bad = row.outcome in _BAD or (row.outcome in _GOOD and row.reason)
    text = "; ".join(filter(None, (NAMES[row.outcome].strip().lower(), row.reason)))
    show("Outcome", text, good=True if is_good else False if is_bad else None)
    if row.payout_id or row.payout_money:
        money = f"of {row.payout_money}" if row.payout_money else None
        text = ", ".join(filter(None, (row.payout_id, row.payout_status, money)))
        show("Payout", text, good=False if money else None, wrap=False)
    if row.first_sent is not None:
        times = "once" if row.sends == 1 else f"{row.sends:,} times"
        show("Sent", f"{times}, first on {moment(row.first_sent)} UTC")
    if row.decided_at is not None:
        show("Recorded", f"{moment(row.decided_at)} UTC")
    for each in row.statuses:
        at = "" if each.service_at is None else f", ended {moment(each.service_at)} UTC"
        show("Status", f"{status_text(each)}{at}, read {moment(each.at)} UTC, of {each.payout_id}")


async def export(
    ledger: LedgerAddress,
    path: str,
    states: Sequence[str] | None,
    context: CommandContext,
    *,
    accounts: bool,
    overwrite: bool,
) -> Exit:
    """Write the rows and what became of each. Raises CommandEnded or BulkError; then no file appears."""
    async with open_batch(ledger) as batch:
        await batch.facts()  # says so if there is none
        try:
            if path.endswith(".html"):
                await write_page(ledger, path, overwrite=overwrite)
                context.show.heading(ledger.shown)
                context.show.step("Exported", "the batch's page; account data masked", path=path)
                context.show.line("Written", path, good=True, wrap=False)
                return Exit.DONE
            with context.spinner("Writing the rows"):
                report = await batch.export(path, states=states, accounts=accounts, overwrite=overwrite)
        except OSError as error:
            raise _unwritten(path, error) from None
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
        unreadable=list(report.unreadable),
    )
    show_unreadable(report.unreadable, context.show)
    context.show.line("Written", report.path, good=True, wrap=False)
    return Exit.REFUSED if report.unreadable else Exit.DONE


def _unwritten(path: str, error: OSError) -> CommandEnded:
    problem = f"{path} cannot be written ({error.strerror}); make room or name another place"
    return CommandEnded(problem, Exit.USAGE)


async def template(path: str, context: CommandContext) -> Exit:
    """Write an empty workbook. Raises CommandEnded or BulkError; then no file appears."""
    try:
        write_template(path)
    except OSError as error:
        raise _unwritten(path, error) from None
    context.show.step("Written", path, wrap=False, path=path)
    context.show.paragraph(
        f"Fill it in, then check it: `payments payouts run {shlex.quote(path)} --dry-run`."
    )
    return Exit.DONE


async def batches(ledger: LedgerAddress, context: CommandContext) -> Exit:
    async with open_batch(ledger) as opened:
        found = await opened.batches()
    context.show.heading(ledger.shown, counted(len(found), "batch"))
    for batch in found:
        name, word = batch.binding.batch_id, _word(batch)
        size = "" if batch.is_outbox else f"; {counted(batch.rows, 'row')}, {money_text(batch.totals)}"
        facts = {"state": word, "rows": batch.rows, "totals": plain_sums(batch.totals), **batch_facts(batch)}
        text = f"{name}: {word}{size}; of {moment(batch.created_at)} UTC"
        if (why := batch.unreadable) is not None:
            text = f"{name} cannot be read: {why}"
        context.show.step("Batch", text, good=None if why is None else False, batch_id=name, **facts)
    return Exit.REFUSED if any(batch.unreadable for batch in found) else Exit.DONE


def _word(batch: Batch) -> str:
    """The state of a batch, as far as its own line says."""
    if batch.unreadable is not None:
        return "unreadable"
    if batch.forgotten_at is not None:
        return "forgotten"
    if batch.paused is not None:
        return "paused"
    if batch.is_outbox:
        return "outbox"
    if needs_confirmation(batch):
        return "not confirmed"
    if batch.certificate is None:
        return "open"
    is_settled, is_clean = batch.certificate["settled"], batch.certificate["clean"]
    return "settled" if is_settled else "certified" if is_clean else "not clean"
