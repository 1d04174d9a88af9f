"""Closes a batch all of whose rows are decided: compares it with the service's list, then seals it."""

from __future__ import annotations

import asyncio
from typing import Final

from ...errors import PaymentsError
from .._activity import Waits
from .._engine.service import Service
from .._engine.stopping import Stopping
from .._ledger.postgresql import batches
from .._ledger.postgresql.leases import Lease
from .._ledger.postgresql.ledger import PostgresLedger
from .._protocol.responses import stop_of, why
from .._reconcile.certificate import Certificate
from .._reconcile.reconcile import reconcile
from ..ledger_errors import LedgerError
from .chunk_run import LeaseHolder

_AGAIN: Final = 60.0
"""Seconds until a closing that failed is tried again."""


class BatchClosing:
    """The closing of one batch, under the lease of its chunk 0."""

    rows: Final = 0
    """It decides no row."""
    decided: Final = 0
    waits: Final = Waits("reconciling")
    failure: Final = None

    def __init__(self, holder: LeaseHolder, lease: Lease, stopping: Stopping, *, audits: bool) -> None:
        """`audits`: compare the batch with the service's list first."""
        self._holder, self._lease, self._audits = holder, lease, audits
        self.stopping: Stopping = stopping
        self.is_lost: bool = False
        """True if it ended because its lease was lost, or because the batch is held."""
        self.certificate: Certificate | None = None
        """What the list showed; None when it was not read."""
        self.leased_chunks: tuple[tuple[str, int], ...] = ((lease.batch.batch_id, lease.chunk),)
        """(batch, chunk) of its lease."""

    async def run(self) -> None:
        """Close the batch. Raises LedgerError."""
        stopping, lease = self.stopping, self._lease
        async with self._holder.working([lease], stopping.halt, _AGAIN) as work:
            closing = asyncio.ensure_future(self._close())
            stopping.on_drain = closing.cancel
            if stopping.draining:  # between its grant and here
                closing.cancel()
            try:
                await asyncio.wait([closing])
            finally:
                closing.cancel()
                await asyncio.wait([closing])  # before its connection is used for other work
            self._take(closing)
            lost = lease.is_lost  # before the lease is given back
            # closed, or broken off: another worker need not wait to close it, after a retry once more
            if closing.cancelled() or closing.exception() is None:
                await self._holder.give_back([lease], None)
        self.is_lost = work.halt is not None or lost  # a renewal may have seen that the batch is closed

    def _take(self, closing: asyncio.Task[None]) -> None:
        """Take the result. A list that cannot be read stops the closing."""
        if closing.cancelled():
            return
        error = closing.exception()
        if isinstance(error, PaymentsError) and not isinstance(error, LedgerError):
            self.stopping.halt(why(error), stop_of(error))
        else:
            closing.result()

    async def _close(self) -> None:
        holder = self._holder
        service = Service(holder.client, holder.database.clock.now)
        ledger = await PostgresLedger.open(holder.database, self._lease.batch.batch_id, clock=service.moment)
        self.certificate = await reconcile(ledger, service) if self._audits else None
        facts = {} if self.certificate is None else summary(self.certificate)
        await batches.close(holder.database, ledger.facts.batch, service.moment, facts)


def summary(certificate: Certificate) -> dict[str, object]:
    """The facts of a certificate that the batch's chain keeps."""
    audit = certificate.audit
    return {
        "clean": certificate.is_clean,
        "findings": len(certificate.findings),
        "seen": audit.seen,
        "missing": audit.missing,
        "differing": audit.differing,
        "uncompared": audit.uncompared,
    }
