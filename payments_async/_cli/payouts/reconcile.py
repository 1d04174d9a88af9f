"""`payments payouts reconcile`, `retry-failed` and `recover`, and the certificate file beside the ledger."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs

from ..._files import write_text
from ..._runtime import SYSTEM
from ...bulk import AnyBatch, BatchReport, Certificate, RecoveryReport, RetryReport
from ...bulk._texts.advice import after_run
from ...bulk._texts.figures import with_causes
from ...bulk._texts.ledger_address import LedgerAddress, open_batch, open_shared
from ...bulk._texts.outcomes import title_of
from ...bulk._texts.quantities import counted, duration_text, money_text, plain_sums
from ...bulk.errors import BulkError
from ...errors import PaymentsError
from ...models._masking import clean
from .._exit_codes import CommandEnded, Exit
from .command_context import CommandContext, causes_of, ledger_work, open_client, print_next_steps, updater
from .confirm import ConfirmOptions, confirm_once, is_live, terminal
from .messages import code_of
from .options import RecoverOptions, RetryOptions
from .summary import result, show_causes, state_table

_MOST_FINDINGS = 5
_SHOWN = 20


@attrs.frozen
class Certified:
    """The result of certifying a complete batch."""

    path: str | None
    """Path of the written certificate; None when there is none."""
    code: Exit
    """Exit code when every row was created: 0 only with a clean certificate."""
    found: BatchReport | None = None
    """The batch as the list's reading left it; None when the list could not be read."""
    reason: str | None = None
    """The reason for having no certificate."""
    unproven: bool = False
    """True if commits were lost, and no recovery has proven yet which."""

    def applied_to(self, report: BatchReport) -> BatchReport:
        """The report of a run that also had to certify. Refused rows take precedence."""
        if self.found is not None:
            awaits = report.resumable is not None and self.found.counts["not_final"]
            counts, sums = self.found.counts, self.found.sums
            report = attrs.evolve(report, counts=counts, sums=sums) if awaits else self.found
        if report.exit_code != Exit.DONE:
            return report
        resumable = {Exit.RESUMABLE: "now", Exit.USAGE: "after_change"}.get(self.code)
        stopped = self.reason if resumable else None
        return attrs.evolve(report, exit_code=int(self.code), resumable=resumable, stopped=stopped)


async def certify(batch: AnyBatch, ledger: LedgerAddress, context: CommandContext) -> Certified:
    """Compare a complete batch with the service's list and write the certificate.

    Raises CommandEnded or BulkError where the ledger fails.
    """
    try:
        with context.progress("Certifying") as view:
            certificate = await ledger_work(ledger, batch.reconcile(updater(view)))
    except BulkError:
        raise
    except PaymentsError as error:
        again = ledger.command("reconcile")
        text = f"not written ({error}); every row is recorded, and `{again}` writes it"
        context.show.step("Certified", text, good=False, path=None, error=str(error))
        return Certified(None, code_of(error), reason=f"the certificate could not be made ({error})")
    path = write_certificate(certificate, ledger.beside("certificate.json"), context)
    code = Exit.DONE if certificate.is_clean else Exit.REFUSED
    return Certified(path, code, certificate.report, unproven=certificate.is_unproven)


def write_certificate(certificate: Certificate, path: str, context: CommandContext) -> str | None:
    """Write and show a certificate; one that is unproven replaces no clean one, and None is returned.

    Raises CommandEnded when it cannot be written.
    """
    is_kept = certificate.is_unproven and _is_clean(path)
    try:
        if not is_kept:
            write_text(path, certificate.to_json() + "\n")
    except OSError as error:
        raise CommandEnded(
            f"the certificate cannot be written to {path} ({error.strerror}); nothing else is wrong, "
            "make room or name another place and run the same command again",
            Exit.REFUSED,
        ) from None
    findings, audit = certificate.findings, certificate.audit
    seen = counted(audit.seen, "payout")
    facts: dict[str, Any] = {
        "path": None if is_kept else path,
        "clean": certificate.is_clean,
        "seen": audit.seen,
        "turns": list(audit.turns),
    }
    facts["fields"] = {name: attrs.asdict(count) for name, count in audit.fields.items()}
    text = f"the service's list shows {seen} as asked for" + ", BUT:" * bool(findings)
    context.show.step("Certified", text, good=not findings, findings=list(findings), **facts)
    if not context.as_json:
        for finding in findings[:_MOST_FINDINGS]:
            context.show.step("Finding", finding, good=False)
        if audit.rounded:
            text = f"payouts differ by {money_text(audit.rounded)} in all from what was asked for"
            context.show.step("Rounded", text, good=False)
        for turn in audit.turns[:_MOST_FINDINGS]:
            context.show.step("Turned", clean(turn), good=None)
        context.show.step("Kept" if is_kept else "Written", path, wrap=False)
    return None if is_kept else path


def _is_clean(path: str) -> bool:
    """True if the file is a clean certificate."""
    try:
        return bool(json.loads(Path(path).read_text(encoding="utf-8"))["clean"])
    except (OSError, ValueError, LookupError, TypeError):
        return False


async def reconcile(
    ledger: LedgerAddress, path: str | None, base_url: str | None, context: CommandContext
) -> Exit:
    """Settle what the list shows, write the certificate. Raises CommandEnded or PaymentsError."""
    async with (
        open_client(base_url, insecure_database=ledger.is_insecure) as client,
        open_batch(ledger, client, create=False) as batch,
    ):
        context.show.heading(ledger.shown, title_of(batch.status().batch_id))
        with context.progress("Checking") as view:
            certificate = await ledger_work(ledger, batch.reconcile(updater(view)))
        report = batch.status()
        path = path or ledger.beside("certificate.json")
        written = write_certificate(certificate, path, context)
        causes = await causes_of(batch)
    figures, code = with_causes(report, causes), Exit(report.exit_code)
    if code is Exit.DONE and not certificate.is_clean:
        code = Exit.REFUSED
    context.show.render(state_table(figures))
    clean = certificate.is_clean
    steps = after_run(figures, code, None, ledger, clean=clean, unproven=certificate.is_unproven)
    if context.as_json:
        facts = {**result(report, code, steps, causes), "certificate": written}
        context.show.step("Finished", "", good=code is Exit.DONE, **facts)
    else:
        show_causes(causes, context.show)
    print_next_steps(steps)
    return code


async def retry_failed(ledger: LedgerAddress, wanted: RetryOptions, context: CommandContext) -> Exit:
    """Find the failed payouts, or the rejected rows, have their total confirmed, make the rows new."""
    async with (
        open_client(wanted.base_url, insecure_database=ledger.is_insecure) as client,
        open_batch(ledger, client, create=False) as batch,
    ):
        context.show.heading(ledger.shown, title_of(batch.status().batch_id))
        reading = "rejected rows in the ledger" if wanted.rejected else "failed payouts at the service"
        with context.spinner(f"Reading the {reading}"):
            found = await batch.retry_failed(rows=wanted.row, rejected=wanted.rejected, dry_run=True)
        if not found.rows or wanted.dry_run:
            return _show_retry(found, wanted, context)
        live = is_live(os.environ.get("PAYMENTS_API_KEY", ""))
        asking = ConfirmOptions(wanted.confirm_total or (), live, context.interrupts.asking, terminal())
        confirm_once(found.totals, len(found.rows), asking)
        with context.spinner("Making their rows new"):
            anew = batch.retry_failed(rows=found.rows, rejected=wanted.rejected)
            done = await ledger_work(ledger, anew)
    left = sorted((*found.left, *done.left), key=lambda row: row.number)
    return _show_retry(attrs.evolve(done, left=tuple(left)), wanted, context)


def _show_retry(report: RetryReport, wanted: RetryOptions, context: CommandContext) -> Exit:
    reasons = sorted(report.reasons.items())
    context.show.step(
        "Retry",
        _retry_text(report, wanted),
        good=bool(report.rows) or not report.left,
        batch_id=report.batch_id,
        rows=list(report.rows),
        totals=plain_sums(report.totals),
        left=[attrs.asdict(left) for left in report.left],
        rejected=wanted.rejected,
        dry_run=report.dry_run,
        reasons={str(number): reason for number, reason in reasons},
    )
    if not context.as_json:
        anew = [f"row {number}: {reason}" for number, reason in reasons]
        _show_first("Again", anew, len(report.rows), context, good=True)
        left = [f"row {left.number}: {left.reason}" for left in report.left]
        _show_first("Left", left, len(left), context, good=False)
    return Exit.REFUSED if report.left else Exit.DONE


def _show_first(name: str, texts: list[str], total: int, context: CommandContext, *, good: bool) -> None:
    for text in texts[:_SHOWN]:
        context.show.step(name, text, good=good)
    if total > _SHOWN:
        context.show.step(name, f"and {total - _SHOWN:,} more", good=good)


def _retry_text(report: RetryReport, wanted: RetryOptions) -> str:
    rows, money = counted(len(report.rows), "row"), money_text(report.totals)
    if not report.rows and report.left:
        return "no row can be taken; nothing was changed"
    if not report.rows:
        none = "no row is rejected" if wanted.rejected else "no payout has failed for good"
        return f"{none}: nothing to pay again"
    again = "sent again" if wanted.rejected else "paid again"
    if report.dry_run:
        return f"{rows}, {money}, would be {again}; nothing was changed"
    return f"{rows}, {money}, to be {again} by the next `payments payouts run`"


async def recover(ledger: LedgerAddress, wanted: RecoverOptions, context: CommandContext) -> Exit:
    """Learn from the list what a database has lost. Raises CommandEnded or PaymentsError."""
    async with (
        open_client(wanted.base_url, insecure_database=ledger.is_insecure) as client,
        open_shared(ledger, client, create=False) as batch,
    ):
        context.show.heading(ledger.shown, title_of(batch.status().batch_id))
        with context.progress("Recovering") as view:
            work = batch.recover(
                updater(view), commands_complete=wanted.commands_complete, by_hand=wanted.by_hand
            )
            report = await ledger_work(ledger, work)
    steps = _after_recovery(report, ledger)
    code = Exit.REFUSED if report.findings else Exit.DONE if report.is_over else Exit.RESUMABLE
    _show_recovery(report, code, steps, context)
    print_next_steps(steps)
    return code


def _show_recovery(report: RecoveryReport, code: Exit, steps: list[str], context: CommandContext) -> None:
    commands = [{**attrs.asdict(each), "at": _time_text(each.at)} for each in report.commands]
    facts = {**attrs.asdict(report, recurse=False), "commands": commands, "wait": round(report.wait)}
    facts |= {"retried": list(report.retried), "findings": list(report.findings)}
    context.show.step(
        "Recovered",
        _recovery_text(report),
        good=None if code is Exit.RESUMABLE else code is Exit.DONE,
        **facts,
        is_over=report.is_over,
        exit_code=int(code),
        next=" ".join(steps),
    )
    if not context.as_json:
        for each in commands:
            context.show.step(
                "Command", f"{each['at']}  {each['kind']:<8} {each['rows']:>11,} rows", good=None
            )
        _show_first("Finding", list(report.findings), len(report.findings), context, good=False)


def _time_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ", timespec="seconds")


def _recovery_text(report: RecoveryReport) -> str:
    if report.reason is None:
        return "no commits were lost: nothing to recover"
    settled = f"{counted(report.settled, 'row')} settled from the service's list"
    return f"{report.reason}; {settled}, {counted(len(report.retried), 'lost retry')} made good"


def _after_recovery(report: RecoveryReport, ledger: LedgerAddress) -> list[str]:
    """Advice after a recovery."""
    parts = []
    if report.wait:
        again = ledger.command("recover")
        due = SYSTEM.now() + timedelta(seconds=report.wait + 59)
        parts.append(
            f"Run `{again}` again at {due.astimezone():%H:%M}, in {duration_text(report.wait)}: until a "
            "reading of the list has shown what was lost, rows cannot be cancelled, edited or retried, and "
            "the batch cannot be certified."
        )
    if report.is_suspect:
        confirm = ledger.command("recover", "--commands-complete")
        parts.append(
            "No more rows are sent until you confirm that no command is missing: compare those above with "
            f"those that were given, repeat what is missing, and `{confirm}`."
        )
    return parts
