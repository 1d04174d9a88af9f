"""`payments payouts reconcile` and `retry-failed`, and the certificate: the ledger and the service's list."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final

import attrs

from ..._runtime import SYSTEM
from ...bulk import Certificate, RetryReport
from ...bulk._texts.ledger_address import LedgerAddress, open_batch
from ...bulk._texts.outcomes import title_of
from ...bulk._texts.quantities import counted, moment, money_text, plain_sums
from ...models._masking import clean
from .._exit_codes import Exit
from .command_context import CommandContext, open_client
from .confirm import ConfirmOptions, confirm_total, is_live, terminal
from .options import RetryOptions
from .summary import show_end

_MOST_FINDINGS: Final = 5
_SHOWN: Final = 20


def show_certificate(certificate: Certificate, context: CommandContext) -> None:
    """Show what the service's list says of a batch."""
    findings, audit = certificate.findings, certificate.audit
    text = f"the service's list shows {counted(audit.seen, 'payout')} as asked for" + ", BUT:" * bool(
        findings
    )
    context.show.step("Certified", text, good=not findings, **json.loads(certificate.to_json()))
    for finding in findings[:_MOST_FINDINGS]:
        context.show.line("Finding", finding, good=False)
    if audit.rounded:
        text = f"payouts differ by {money_text(audit.rounded)} in all from what was asked for"
        context.show.line("Rounded", text, good=False)
    for turn in audit.turns[:_MOST_FINDINGS]:
        context.show.line("Turned", clean(turn))
    since = "from its beginning" if certificate.since is None else f"since {moment(certificate.since)} UTC"
    context.show.line("Read", f"the list {since}")
    if doubts := certificate.report.doubts:
        context.show.line("Doubts", f"{counted(doubts, 'row')} with a value that is probably a slip")


def certificate_text(facts: Mapping[str, Any]) -> str:
    """What a kept certificate says: `certified 2026-06-30 21:19:26 UTC: clean, settled`."""
    words = "clean" if facts["clean"] else "NOT clean"
    settled = ", settled" if facts["settled"] else ", not all payouts are final" if facts["clean"] else ""
    return f"certified {moment(facts['at'])} UTC: {words}{settled}"


async def reconcile(ledger: LedgerAddress, base_url: str | None, context: CommandContext) -> Exit:
    """Record what the list shows, and certify the batch. Raises CommandEnded or PaymentsError."""
    async with (
        open_client(base_url, insecure_database=ledger.is_insecure) as client,
        open_batch(ledger, client, create=False) as batch,
    ):
        await batch.facts()  # says so if there is none
        context.show.heading(ledger.shown, title_of(batch.batch_id))
        with context.progress("Certifying") as view:
            certificate = await batch.reconcile(lambda figures: view.show(figures, SYSTEM.monotonic()))
        causes = await batch.causes(0)
    show_certificate(certificate, context)
    code = certificate.report.exit_code or (Exit.DONE if certificate.is_clean else Exit.REFUSED)
    report = attrs.evolve(certificate.report, exit_code=int(code), certificate=certificate)
    return show_end(report, causes, ledger, context)


async def retry_failed(ledger: LedgerAddress, wanted: RetryOptions, context: CommandContext) -> Exit:
    """Find the failed payouts, or the rejected rows, have their total confirmed, make the rows new."""
    async with (
        open_client(wanted.base_url, insecure_database=ledger.is_insecure) as client,
        open_batch(ledger, client, create=False) as batch,
    ):
        await batch.facts()  # says so if there is none
        context.show.heading(ledger.shown, title_of(batch.batch_id))
        reading = "rejected rows in the ledger" if wanted.rejected else "failed payouts at the service"
        with context.spinner(f"Reading the {reading}"):
            found = await batch.retry_failed(rows=wanted.row, rejected=wanted.rejected, dry_run=True)
        if not found.rows or wanted.dry_run:
            return _show_retry(found, wanted, context)
        live = is_live(os.environ.get("PAYMENTS_API_KEY", ""))
        asking = ConfirmOptions(wanted.confirm_total or (), live, context.interrupts.asking, terminal())
        confirm_total(found.totals, len(found.rows), asking)
        with context.spinner("Making their rows new"):
            done = await batch.retry_failed(rows=found.rows, rejected=wanted.rejected)
    left = sorted((*found.left, *done.left), key=lambda row: row.number)
    return _show_retry(attrs.evolve(done, left=tuple(left)), wanted, context)


def _show_retry(report: RetryReport, wanted: RetryOptions, context: CommandContext) -> Exit:
    reasons = sorted(report.reasons.items())
    facts: dict[str, Any] = {
        **attrs.asdict(report, recurse=False),
        "rows": list(report.rows),
        "totals": plain_sums(report.totals),
        "left": [attrs.asdict(left) for left in report.left],
        "reasons": {str(number): reason for number, reason in reasons},
    }
    is_good = bool(report.rows) or not report.left
    context.show.step("Retry", _retry_text(report, wanted), good=is_good, rejected=wanted.rejected, **facts)
    for number, reason in reasons[:_SHOWN]:
        context.show.line("Again", f"row {number}: {reason}", good=True)
    for left in report.left[:_SHOWN]:
        context.show.line("Left", f"row {left.number}: {left.reason}", good=False)
    return Exit.REFUSED if report.left else Exit.DONE


def _retry_text(report: RetryReport, wanted: RetryOptions) -> str:
    rows, money = counted(len(report.rows), "row"), money_text(report.totals)
    left = f"; {counted(len(report.left), 'row')} left as it is" if report.left else ""
    if not report.rows:
        none = "no row is rejected" if wanted.rejected else "no payout has failed for good"
        return f"{'no row can be taken' if report.left else none}: nothing to pay again"
    if report.dry_run:
        return f"{rows}, {money}, would be paid again; nothing was changed{left}"
    return f"{rows}, {money}, to be paid again by the next `payments payouts run`{left}"
