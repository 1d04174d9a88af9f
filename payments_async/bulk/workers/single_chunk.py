"""Works on one chunk, if its lease can be had: for `run_chunk`."""

from __future__ import annotations

from ...client import AsyncPayments
from ..engine.stopping import Stopping
from ..errors import BulkError
from ..ledger.postgresql import batches
from ..ledger.postgresql.driver.database import Database
from ..ledger.postgresql.leasing import granting
from ..ledger.postgresql.leasing.leases import Work
from ..ledger.postgresql.leasing.renewing import Renewal
from .chunk_run import ChunkRun
from .key_proof import KeyProver
from .reports import ChunkReport, RunEnd
from .session import WorkerSession
from .settings import WorkerSettings


async def run_single(
    client: AsyncPayments, session: WorkerSession, settings: WorkerSettings, chunk: int
) -> ChunkReport:
    """Work on one chunk of a batch, unless another process does.

    Raises LedgerError, OutcomesUnrecorded, and BulkError for a chunk that the batch does not have.
    """
    stopping, batch_id = Stopping(session.runtime), settings.batch_id
    assert batch_id is not None  # `run_chunk` wants a name

    def renewed(renewal: Renewal) -> None:
        if renewal.drain:
            stopping.drain("drained by an operator")

    async with session.opened(renewed) as database, session.holder() as holder:
        facts = await batches.found(database, batch_id)
        if chunk > facts.chunks:
            raise BulkError(f"batch {batch_id} has {facts.chunks} chunks, and no chunk {chunk}")
        number = facts.batch.batch
        await KeyProver(client, session.worker.account).prove(database, number)
        leases = await granting.grant(
            holder.database, session.worker, kind=Work.SEND, batch=number, chunk=chunk
        )
        if not leases:
            return await _without_lease(database, batch_id, chunk)
        run = ChunkRun(holder, leases, stopping, Work.SEND, settings, bool)
        session.rows = lambda: run.rows
        return await run.run()


async def _without_lease(database: Database, batch_id: str, chunk: int) -> ChunkReport:
    """Report on a chunk whose lease was not to be had: it is done, another worker's, or held back."""
    facts = await batches.found(database, batch_id)
    if await granting.has_rows_to_send(database, facts.batch.batch, chunk):
        return ChunkReport(batch_id, (chunk,), RunEnd.UNAVAILABLE, facts.hold_reason or facts.stopped)
    return ChunkReport(batch_id, (chunk,), RunEnd.DONE)
