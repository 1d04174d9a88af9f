"""`payments payouts reconcile` and `retry-failed`, and the certificate file beside the ledger."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import attrs

from ...bulk import BatchReport, Certificate, PayoutBatch, RetryReport
from ...bulk._files import write_text
from ...bulk.errors import BulkError
from ...errors import PaymentsError
from .._exit_codes import CommandEnded, Exit
from . import files, messages
from .amounts import grouped, plain
from .confirm import ConfirmOptions, confirm_once, is_live, terminal
from .messages import code_of, command, counted
from .progress import board_on
from .session import CommandContext, figures_of, paying, recorded, result, tell_next, title_of, watching
from .summary import standing

_MOST_FINDINGS = 5


@attrs.frozen
class Certified:
    """What became of the certificate of a complete batch."""

    path: str | None
    """Where it was written; None when it was not."""
    code: Exit
    """How the command ends when every row was created: 0 only with a clean certificate."""
    reason: str | None = None
    """Why there is none."""

    def ended(self, report: BatchReport) -> BatchReport:
        """The report of a run that had to certify too. Rows that were refused count more."""
        if report.exit_code != Exit.DONE:
            return report
        resumable = {Exit.RESUMABLE: "now", Exit.USAGE: "after_change"}.get(self.code)
        stopped = self.reason if resumable else None
        return attrs.evolve(report, exit_code=int(self.code), resumable=resumable, stopped=stopped)


async def certify(batch: PayoutBatch, ledger: str, stage: CommandContext) -> Certified:
    """Compare a complete batch with the service's list and write down what was found.

    Raises Ended or BulkError where the ledger fails.
    """
    try:
        with board_on(stage.console, stage.show, "Certifying", as_json=stage.as_json) as board:
            certificate = await recorded(ledger, batch.certify(watching(board)))
    except BulkError:
        raise
    except PaymentsError as error:
        again = command("reconcile", ledger)
        told = f"not written ({error}); every row is recorded, and `{again}` writes it"
        stage.show.step("Certified", told, good=False, path=None, error=str(error))
        return Certified(None, code_of(error), f"the certificate could not be made ({error})")
    path = keep(certificate, files.certificate_of(ledger), stage)
    return Certified(path, Exit.DONE if certificate.is_clean else Exit.REFUSED)


def keep(certificate: Certificate, path: str, stage: CommandContext) -> str:
    """Write it there, and tell what it says. Raises Ended when it cannot be written."""
    try:
        write_text(path, certificate.to_json() + "\n")
    except OSError as error:
        raise CommandEnded(
            f"the certificate cannot be written to {path} ({error.strerror}); nothing else is wrong, "
            "make room or name another place and run the same command again",
            Exit.REFUSED,
        ) from None
    findings, audit = certificate.findings, certificate.audit
    seen = counted(audit.seen, "payout")
    facts: dict[str, Any] = {"path": path, "clean": certificate.is_clean, "seen": audit.seen}
    facts["fields"] = {name: attrs.asdict(count) for name, count in audit.fields.items()}
    told = f"the service's list shows {seen} as asked for" + ", BUT:" * bool(findings)
    stage.show.step("Certified", told, good=not findings, findings=list(findings), **facts)
    if not stage.as_json:
        for finding in findings[:_MOST_FINDINGS]:
            stage.show.step("Finding", finding, good=False)
        stage.show.step("Written", path)
    return path


def waiting(text: str, stage: CommandContext) -> AbstractContextManager[object]:
    """Something that takes a while and cannot say how long."""
    if stage.as_json or not stage.console.is_terminal:
        return nullcontext()
    return stage.console.status(f"{text}…", spinner="dots")


_SHOWN = 20


@attrs.frozen(kw_only=True)
class Retry:
    """What `payments payouts retry-failed` was asked for."""

    ledger: str
    base_url: str | None
    rows: Collection[int] | None
    rejected: bool
    """Whether the rejected rows are meant, not those whose payouts failed."""
    dry_run: bool
    confirm_total: Sequence[str]


async def reconcile(ledger: str, path: str | None, base_url: str | None, stage: CommandContext) -> Exit:
    """Settle what the list shows, write the certificate. Raises Ended or PaymentsError."""
    async with paying(base_url) as client, PayoutBatch.open(ledger, client, create=False) as batch:
        stage.show.heading(ledger, title_of(batch.status().batch_id))
        with board_on(stage.console, stage.show, "Checking", as_json=stage.as_json) as board:
            certificate = await recorded(ledger, batch.reconcile(watching(board)))
        report = batch.status()
        written = keep(certificate, path or files.certificate_of(ledger), stage)
    figures, code = figures_of(report), Exit(report.exit_code)
    if code is Exit.DONE and not certificate.is_clean:
        code = Exit.REFUSED
    stage.show.picture(standing(figures))
    todo = messages.after_run(figures, code, None, ledger, failed=report.failed, clean=certificate.is_clean)
    if stage.as_json:
        facts = {**result(report, code, todo), "certificate": written}
        stage.show.step("Finished", "", good=code is Exit.DONE, **facts)
    tell_next(todo)
    return code


async def retry_failed(wanted: Retry, stage: CommandContext) -> Exit:
    """Find the failed payouts, or the rejected rows, have their total confirmed, begin them anew."""
    async with (
        paying(wanted.base_url) as client,
        PayoutBatch.open(wanted.ledger, client, create=False) as batch,
    ):
        stage.show.heading(wanted.ledger, title_of(batch.status().batch_id))
        reading = "rejected rows in the ledger" if wanted.rejected else "failed payouts at the service"
        with waiting(f"Reading the {reading}", stage):
            found = await batch.retry_failed(rows=wanted.rows, rejected=wanted.rejected, dry_run=True)
        if not found.rows or wanted.dry_run:
            return _tell(found, wanted, stage)
        live = is_live(os.environ.get("PAYMENTS_API_KEY", ""))
        asking = ConfirmOptions(wanted.confirm_total, live, stage.interrupts.asking, terminal())
        confirm_once(found.totals, len(found.rows), asking)
        with waiting("Beginning their rows anew", stage):
            anew = batch.retry_failed(rows=found.rows, rejected=wanted.rejected)
            done = await recorded(wanted.ledger, anew)
    left = sorted((*found.left, *done.left), key=lambda row: row.number)
    return _tell(attrs.evolve(done, left=tuple(left)), wanted, stage)


def _tell(report: RetryReport, wanted: Retry, stage: CommandContext) -> Exit:
    money = ", ".join(f"{currency} {grouped(total)}" for currency, total in sorted(report.totals.items()))
    rows = messages.counted(len(report.rows), "row")
    if not report.rows and report.left:
        text = "no row can be paid anew; nothing was changed"
    elif not report.rows:
        none = "no row is rejected" if wanted.rejected else "no payout has finally failed"
        text = f"{none}: nothing to pay anew"
    elif report.dry_run:
        text = f"{rows}, {money}, would be paid anew; nothing was changed"
    else:
        text = f"{rows}, {money}: the next `payments payouts run` pays them"
    stage.show.step(
        "Retry",
        text,
        batch_id=report.batch_id,
        rows=list(report.rows),
        totals={currency: plain(total) for currency, total in report.totals.items()},
        left=[attrs.asdict(left) for left in report.left],
        rejected=wanted.rejected,
        dry_run=report.dry_run,
        reasons={str(number): reason for number, reason in sorted(report.reasons.items())},
    )
    for number, reason in [] if stage.as_json else sorted(report.reasons.items())[:_SHOWN]:
        stage.show.step("Anew", f"row {number}: {reason}")
    if len(report.rows) > _SHOWN and not stage.as_json:
        stage.show.step("Anew", f"and {len(report.rows) - _SHOWN:,} more")
    for left in () if stage.as_json else report.left[:_SHOWN]:
        stage.show.step("Left", f"row {left.number}: {left.reason}", good=False)
    if len(report.left) > _SHOWN and not stage.as_json:
        stage.show.step("Left", f"and {len(report.left) - _SHOWN:,} more", good=False)
    return Exit.REFUSED if report.left else Exit.DONE
