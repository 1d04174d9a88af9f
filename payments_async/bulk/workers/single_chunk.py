"""Works on one chunk, if its lease can be had: for `run_chunk`."""

from __future__ import annotations

from ...client import AsyncPayments
from ..engine.stopping import Stopping
from ..ledger.postgresql import batches
from ..ledger.postgresql.leasing import granting
from ..ledger.postgresql.leasing.leases import Work
from .chunk_run import ChunkRun
from .key_proof import KeyProver
from .reports import ChunkReport, RunEnd
from .session import WorkerSession
from .settings import WorkerSettings


async def run_single(
    client: AsyncPayments, session: WorkerSession, settings: WorkerSettings, batch_id: str, chunk: int
) -> ChunkReport:
    """Work on one chunk of a batch, unless another process does. Raises LedgerError, OutcomesUnrecorded."""
    stopping = Stopping(session.runtime)
    session.on_renewal = lambda renewal: stopping.drain("drained by an operator") if renewal.drain else None
    async with session.opened() as database, session.holder() as holder:
        number = (await batches.found(database, batch_id)).batch.batch
        await KeyProver(client, session.worker.account).prove(database, number)
        held = await granting.grant(
            holder.database, session.worker, kind=Work.SEND, batch=number, chunk=chunk
        )
        if not held:
            facts = await batches.found(database, batch_id)
            return ChunkReport(batch_id, (chunk,), RunEnd.UNAVAILABLE, facts.held)
        run = ChunkRun(holder, held, stopping, Work.SEND, settings, bool)
        session.rows = lambda: run.rows
        return await run.run()
