"""`payments payouts pause`, `resume`, `cancel-rest`, `confirm`, `forget`: a person's decisions. No key."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...bulk import Batch
from ...bulk._texts.ledger_address import LedgerAddress, open_batch
from ...bulk._texts.outcomes import title_of
from ...bulk._texts.quantities import counted, money_text, plain_sums
from .._exit_codes import CommandEnded, Exit
from .command_context import CommandContext
from .confirm import confirm_batch, require_word
from .inspect import batch_facts


async def pause(ledger: LedgerAddress, reason: str, context: CommandContext) -> Exit:
    async with open_batch(ledger) as batch:
        await batch.pause(reason)
        return _show(
            "Paused", "no process begins another row within 5 s", await batch.facts(), ledger, context
        )


async def resume(ledger: LedgerAddress, context: CommandContext) -> Exit:
    async with open_batch(ledger) as batch:
        was_paused = (await batch.facts()).paused is not None
        await batch.resume()
        text = "it was not paused"
        if was_paused:
            text = "processes that follow it go on; others go on with the same `run` command"
        return _show("Resumed", text, await batch.facts(), ledger, context, resumed=was_paused)


async def cancel_rest(ledger: LedgerAddress, context: CommandContext, *, sure: bool) -> Exit:
    """Cancel the rows that were not sent, once a person has confirmed it. Raises CommandEnded."""
    async with open_batch(ledger) as batch:
        report, rows = await batch.status(), 0
        if report.counts["not_started"]:
            sums = {code: each["not_started"] for code, each in report.sums.items() if each["not_started"]}
            what = f"{counted(report.counts['not_started'], 'row')}, {money_text(sums)},"
            if not sure:
                again = ledger.command("cancel-rest", "--yes")
                require_word(report.batch_id, what, "cancelled", again, context)
            rows = await batch.cancel_rest()
        text = f"{counted(rows, 'row')} cancelled" if rows else "no row is left; nothing was changed"
        return _show("Cancelled", text, await batch.facts(), ledger, context, rows=rows)


async def confirm(ledger: LedgerAddress, given: list[str] | None, context: CommandContext) -> Exit:
    """Say yes to the total of what was loaded. Raises CommandEnded."""
    async with open_batch(ledger) as batch:
        facts = await batch.facts()
        if facts.is_outbox:
            problem = "is an outbox, which has no total to confirm: a guard bounds it"
            raise CommandEnded(f"{ledger.shown}: {title_of(facts.binding.batch_id)} {problem}", Exit.USAGE)
        if facts.is_confirmed:
            return _show("Confirmed", "earlier, and nothing has changed since", facts, ledger, context)
        report, live = await batch.status(), facts.binding.environment == "live"
        how = await confirm_batch(batch, report, given or (), live=live, context=context)
        text = f"{money_text(report.payable)}, {how or 'not real money'}; the next `run` pays it"
        totals = plain_sums(report.payable)
        return _show("Confirmed", text, await batch.facts(), ledger, context, totals=totals)


async def forget(
    ledger: LedgerAddress, before: datetime, context: CommandContext, *, dry_run: bool, sure: bool
) -> Exit:
    """Delete the rows of a settled batch, once a person has confirmed it. Raises CommandEnded, BulkError."""
    async with open_batch(ledger) as batch:
        rows = await batch.forget(before, dry_run=True)
        if rows and not dry_run:
            if not sure:
                again = ledger.command("forget", "--before", _text(before), "--yes")
                what = f"{counted(rows, 'row')} of {title_of(batch.batch_id)}"
                require_word("forget", what, "deleted", again, context)
            with context.spinner("Deleting"):
                rows = await batch.forget(before)
        text = f"{counted(rows, 'row')} {'would be deleted' if dry_run else 'deleted'}"
        if not rows:
            text = f"no row: some were decided, or are open, since {_text(before)}"
        facts = await batch.facts()
        return _show("Forgotten", text, facts, ledger, context, good=rows > 0, rows=rows, dry_run=dry_run)


def _text(moment: datetime) -> str:
    """A moment as it is given: a day's beginning in UTC by the day alone."""
    return moment.isoformat().removesuffix("T00:00:00+00:00")


def _show(
    name: str, text: str, facts: Batch, ledger: LedgerAddress, context: CommandContext, **more: Any
) -> Exit:
    context.show.heading(ledger.shown, title_of(facts.binding.batch_id))
    context.show.step(name, text, batch_id=facts.binding.batch_id, **batch_facts(facts), **more)
    return Exit.DONE
