"""The certificate at the end of a batch, written beside its ledger."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import attrs

from ...bulk import BatchReport, Certificate, PayoutBatch
from ...bulk.errors import BulkError
from ...errors import PaymentsError
from .._exit_codes import Ended, Exit
from . import files
from .failures import code_of
from .messages import command, counted
from .progress import board_on
from .session import Stage, recorded, watching

_SHOWN = 5


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


async def certify(batch: PayoutBatch, ledger: str, stage: Stage) -> Certified:
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


def keep(certificate: Certificate, path: str, stage: Stage) -> str:
    """Write it there, and tell what it says. Raises Ended when it cannot be written."""
    try:
        files.write(path, certificate.to_json() + "\n")
    except OSError as error:
        raise Ended(
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
        for finding in findings[:_SHOWN]:
            stage.show.step("Finding", finding, good=False)
        stage.show.step("Written", path)
    return path


def waiting(text: str, stage: Stage) -> AbstractContextManager[object]:
    """Something that takes a while and cannot say how long."""
    if stage.as_json or not stage.console.is_terminal:
        return nullcontext()
    return stage.console.status(f"{text}…", spinner="dots")
