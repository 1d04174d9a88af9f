"""Updates the ledger from the service's list, then compares the two. Sends no payout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs

from ...models import Payout
from ..engine.mirror import Mirror
from ..engine.payout_list import pages
from ..engine.service import Service
from ..ledger.ledger import Ledger
from ..protocol.generations import later_references
from ..protocol.payout_status import described, failure_of, settled
from .certificate import Certificate, certify


async def reconcile(ledger: Ledger, service: Service, on_commit: Callable[[], object]) -> Certificate:
    """Settle rows by the list, copy statuses, then check the ledger and compare it with the list.

    Raises PaymentsError when the list cannot be read to its end; all facts read until then are recorded.
    """
    mirror = Mirror(ledger, settled)
    latest = await ledger.latest_generation()
    async for page in pages(service):
        shown = await mirror.take(page)
        current = {each.payout.reference for each in shown}
        others = [payout for payout in page if payout.reference not in current]
        for finding in await _past_payouts(ledger, others, latest):
            mirror.note(finding)
        on_commit()
    certificate = await certify(ledger, service)
    audit = certificate.audit
    findings = (*mirror.findings, *audit.findings)
    differing = audit.differing + mirror.contradictions
    return attrs.evolve(certificate, audit=attrs.evolve(audit, differing=differing, findings=findings))


async def _past_payouts(ledger: Ledger, payouts: Sequence[Payout], latest: int) -> Iterable[str]:
    """Report payouts of earlier generations, recorded as failed, that have not failed after all."""
    alive = [payout for payout in payouts if payout.reference and failure_of(payout) is None]
    later = {
        reference: payout
        for payout in alive
        for reference in later_references(payout.reference or "", latest)
    }
    rows = await ledger.by_references(later) if later else []
    return [_arrived_after_all(row.number, later[row.reference]) for row in rows]


def _arrived_after_all(number: int, payout: Payout) -> str:
    shown = described(payout)
    return f"row {number}: {payout.id} had failed and was retried, and the list shows {shown}"
