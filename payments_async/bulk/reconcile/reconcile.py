"""Updates the ledger from the service's list, then compares the two. Sends no payout."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ..engine.payout_list import pages
from ..engine.service import Service
from ..ledger.ledger import Ledger
from ..protocol.payout_status import settled
from .certificate import Certificate, certify
from .reading import ListReading


async def reconcile(ledger: Ledger, service: Service, on_commit: Callable[[], object]) -> Certificate:
    """Settle rows by the list, copy statuses, then check the ledger and compare it with the list.

    Rows get the later payouts that the list shows and the ledger does not know. Raises PaymentsError when the
    list cannot be read to its end; all facts read until then are recorded.
    """
    reading = ListReading(ledger, settled)
    async for page in pages(service):
        await reading.take(page)
        on_commit()
    mirror = reading.mirror
    if mirror.later.shown:
        await reading.adopt()
        on_commit()
    certificate = await certify(ledger, service, mirror.contradicted)
    audit = certificate.audit
    findings = (*mirror.findings, *audit.findings)
    differing = audit.differing + mirror.contradictions
    return attrs.evolve(certificate, audit=attrs.evolve(audit, differing=differing, findings=findings))
