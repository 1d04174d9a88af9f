"""`payments payouts show`: one row, from its ledger or from the run that holds it. Needs no key."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...bulk import RowAttempts
from ...bulk._texts.ledger_address import LedgerAddress, open_batch
from ...bulk._texts.outcomes import inspector_page, outcomes_text, status_text
from ...bulk._texts.quantities import moment, took_text
from ...bulk.ledger_errors import LedgerForgotten, LedgerLocked
from ...models._masking import clean
from ...models.common import amount_text
from .._exit_codes import CommandEnded, Exit
from .command_context import CommandContext, open_database
from .options import require_batch

_OUTCOMES: Final[Mapping[str, tuple[str, bool | None]]] = {
    "not_started": ("not started", None),
    "under_way": ("under way", None),
    "in_doubt": ("in doubt: what became of it is not known yet", False),
    "rejected": ("rejected", False),
    "conflict": ("in conflict: its reference belongs to another payout", False),
    "cancelled": ("cancelled", None),
    "not_final": ("created, not final yet", True),
    "arrived": ("arrived", True),
    "failed": ("failed", False),
    "returned": ("returned: it had arrived", False),
}
"""{outcome: its words, and whether that is good}."""


async def show_row(ledger: LedgerAddress, name: str, context: CommandContext) -> Exit:
    """Show the row with this key, reference or number. Raises CommandEnded and LedgerError."""
    if ledger.is_database and not ledger.batch_id:
        await _refuse_forgotten(ledger, name)
        require_batch(ledger)
    try:
        facts = await _facts(ledger, name)
    except LedgerForgotten:
        await _refuse_forgotten(ledger, name)
        raise
    if facts is None or "error" in facts:
        if ledger.is_database:
            await _refuse_forgotten(ledger, name)
        problem = f"{ledger.label}: no row has this key, reference or number: {name}"
        raise CommandEnded(problem, Exit.USAGE)
    inspector = inspector_page(facts)
    if context.as_json:
        context.show.step("Row", "", **{"page": None, **facts}, inspector=inspector)
        return Exit.DONE
    context.show.heading(ledger.label, f"row {facts['number']}")
    _show_facts(facts, context)
    _show_statuses(facts, context)
    _show_attempts(facts, context)
    context.show.step("Page", ledger.command("watch"), good=None, wrap=False)
    if inspector:
        context.show.step("Inspector", inspector, good=None, wrap=False)
    return Exit.DONE


async def _facts(ledger: LedgerAddress, name: str) -> Mapping[str, Any] | None:
    """The facts of the row: read from the ledger, or as the run tells that holds it."""
    try:
        async with open_batch(ledger) as batch:
            row = await batch.row(name)
            return None if row is None else row.facts()
    except LedgerLocked as locked:
        from ...bulk._page import ask_running

        found = await ask_running(ledger.text, locked.pid, "/api/row", name=name)
        if found is None:
            problem = f"{locked}, which does not answer questions about rows (or has just ended)"
            raise CommandEnded(f"{problem}; ask again", Exit.RESUMABLE) from None
        return found


async def _refuse_forgotten(ledger: LedgerAddress, reference: str) -> None:
    """Say of which forgotten batch a reference was. Raises CommandEnded if it was of one."""
    async with open_database(ledger) as database:
        batch = await database.forgotten(reference)
    if batch is not None and batch.forgotten is not None:
        was = f"this reference was of batch {clean(batch.batch_id)}"
        at = f"forgotten on {moment(batch.forgotten.at)} UTC: its rows are gone"
        became = f"of all its rows: {outcomes_text(batch.report.counts)}; an archive of it has this one"
        raise CommandEnded(f"{ledger.shown}: {was}, {at}. What became {became}", Exit.USAGE)


def _show_facts(facts: Mapping[str, Any], context: CommandContext) -> None:
    show = context.show.step
    line = "" if facts["line"] is None else f", line {facts['line']} of the file"
    show("Row", f"{facts['row_key']}, number {facts['number']}{line}", good=None)
    show("Reference", str(facts["reference"]), good=None, wrap=False)
    amount = amount_text(str(facts["currency"]), Decimal(facts["amount"]))
    show("Amount", f"{amount} by {facts['method']}", good=None)
    account = ", ".join(f"{key} {value}" for part in facts["account"].values() for key, value in part.items())
    show("Account", account or "none", good=None)
    text, good = _OUTCOMES[str(facts["outcome"])]
    reason = f"; {facts['reason']}" if facts["reason"] else ""
    show(
        "Outcome", text + reason, good=False if good and reason else good
    )  # a payout that contradicts itself
    if facts["payout_id"] or facts["payout_money"]:
        money = f"of {facts['payout_money']}" if facts["payout_money"] else None
        text = ", ".join(filter(None, (facts["payout_id"], facts["payout_status"], money)))
        show("Payout", text, good=False if money else None, wrap=False)
    if facts["first_sent"] is not None:
        first, last = _time(facts["first_sent"]), _time(facts["last_sent"])
        show("Sent", f"first {first}" + (f"; last {last}" if last != first else ""), good=None)


def _show_statuses(facts: Mapping[str, Any], context: CommandContext) -> None:
    """Each status of each payout of the row, with the service's time and ours."""
    for payout, statuses in groupby(facts["statuses"], key=itemgetter("payout_id")):
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for name in ("Service's time (UTC)", "Recorded", "Status"):
            table.add_column(name)
        for each in statuses:
            at = "not known" if each["service_at"] is None else moment(each["service_at"])
            table.add_row(at, moment(each["at"]), Text(clean(status_text(each))))
        context.show.step("Statuses", f"of {payout}", good=None, wrap=False)
        context.show.render(Padding(table, (0, 0, 1, 4), expand=False))


def _show_attempts(facts: Mapping[str, Any], context: CommandContext) -> None:
    attempts = RowAttempts.read(facts["attempts"])
    if not attempts.made:
        if facts["first_sent"]:
            none = "one, which created it" if facts["payout_id"] else "none is kept"
        else:
            none = (
                "none is recorded; the service's list shows its payout" if facts["payout_id"] else "none yet"
            )
        context.show.step("Attempts", none, good=None)
        return
    context.show.step("Answers", str(attempts), good=None, wrap=False)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name, justify in (("When", "left"), ("Answer", "left"), ("Took", "right")):
        table.add_column(name, justify="right" if justify == "right" else "left")
    for number, attempt in enumerate(attempts):
        if attempts.omitted and number == len(attempts.first):
            table.add_row(f"{attempts.omitted:,} more", "…", "", style="dim")
        answer = clean(attempt.answer) + (" replayed" if attempt.replayed else "")
        style = {"2": "", "5": "bold red"}.get(answer[:1], "bold yellow")
        table.add_row(_time(attempt.at), Text(answer, style), took_text(attempt.seconds))
    context.show.render(Padding(table, (0, 0, 1, 4), expand=False))


def _time(seconds: float) -> str:
    return f"{moment(seconds)} UTC"
