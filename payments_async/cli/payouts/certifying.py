"""The certificate at the end of a batch, written beside its ledger."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import attrs

from ...bulk import Certificate, PayoutBatch
from ...errors import PaymentsError, SearchIncomplete
from .._exit import Ended, Exit
from . import beside
from .advice import command, counted
from .board import board_on
from .working import Stage, watching

_SHOWN = 5


@attrs.frozen
class Certified:
    """What became of the certificate."""

    path: str | None
    """Where it was written; None when it was not."""
    is_clean: bool | None
    """Whether the batch is complete and the service's list agrees, which a list that is not whole does not.

    None when the list could not be read.
    """

    def code_for(self, code: Exit) -> Exit:
        """How the command ends that would have ended with `code`."""
        return Exit.REFUSED if code is Exit.DONE and self.is_clean is False else code


async def certify(batch: PayoutBatch, ledger: str, stage: Stage) -> Certified:
    """Compare a complete batch with the service's list and write down what was found.

    The payouts are made whatever becomes of this: a list that cannot be read now is told, and no failure.
    """
    try:
        with board_on(stage.console, stage.show, "Certifying", as_json=stage.as_json) as board:
            certificate = await batch.certify(watching(board))
    except PaymentsError as error:
        again = command("reconcile", ledger)
        told = f"not written ({error}); every row is recorded, and `{again}` writes it"
        stage.show.step("Certified", told, good=False, path=None, error=str(error))
        return Certified(None, False if isinstance(error, SearchIncomplete) else None)
    path = beside.certificate_of(ledger)
    return Certified(keep(certificate, path, stage), certificate.is_clean)


def keep(certificate: Certificate, path: str, stage: Stage) -> str:
    """Write it there, and tell what it says. Raises Ended when it cannot be written."""
    try:
        beside.write(path, certificate.to_json() + "\n")
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
