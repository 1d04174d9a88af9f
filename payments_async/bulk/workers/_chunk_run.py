"""Work under leases: one run of the engine over leased chunks, whose leases are kept meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import attrs

from ...client import AsyncPayments
from .._activity import Waits
from .._engine.engine import Engine
from .._engine.recorder import OutcomesUnrecorded
from .._engine.service import Service
from .._engine.stopping import Stopping
from .._ledger.ledger import Ledger
from .._ledger.postgresql.database import Database
from .._ledger.postgresql.leased_chunks import LeasedChunks
from .._ledger.postgresql.leases import Lease, Work, give_back
from .._ledger.postgresql.worker_registry import Worker
from .._protocol.outcomes import CREATED, Outcome, count_rows
from ..ledger_errors import LedgerError, LedgerUnavailable
from ._keeper import LeasedWork, LeaseKeeper
from ._planning import LOOK_AGAIN, end_of
from ._reports import ChunkReport
from ._settings import WorkerSettings

_DECIDED: Final = (*CREATED, Outcome.REJECTED, Outcome.CONFLICT)


@attrs.frozen
class LeaseHolder:
    """A process that works under leases, and what it needs for that."""

    client: AsyncPayments
    worker: Worker
    keeper: LeaseKeeper
    database: Database

    @asynccontextmanager
    async def working(
        self, leases: Sequence[Lease], on_halt: Callable[[str], object], look_after: float | None
    ) -> AsyncIterator[LeasedWork]:
        """Context of work under leases, which are renewed meanwhile and given back afterwards."""
        with self.keeper.keeping(leases, on_halt) as work:
            try:
                yield work
            except (LedgerUnavailable, OutcomesUnrecorded):  # without the database they end by themselves
                raise
            except asyncio.CancelledError:
                self.database.patience = 0.0  # once: a database that is away is not waited for
                with suppress(LedgerError):
                    await self.give_back(leases, look_after)
                raise
            except BaseException:
                await self.give_back(leases, look_after)
                raise
            await self.give_back(leases, look_after)

    async def give_back(self, leases: Sequence[Lease], look_after: float | None) -> None:
        """End leases; `look_after`: seconds until the chunks are due for a look. Raises LedgerError."""
        await give_back(self.database, self.worker, leases, look_after=look_after)


class ChunkRun:
    """One run of the engine over leased chunks."""

    def __init__(
        self,
        holder: LeaseHolder,
        leases: Sequence[Lease],
        stopping: Stopping,
        settings: WorkerSettings,
        on_commit: Callable[[], object],
    ) -> None:
        self._holder, self._leases = holder, leases
        self.stopping: Stopping = stopping
        self._settings, self._on_commit = settings, on_commit
        self._ledger: Ledger | None = None
        self._engine: Engine | None = None
        self._before = 0
        self.leased_chunks: tuple[tuple[str, int], ...] = tuple(
            (each.batch.batch_id, each.chunk) for each in leases
        )
        """(batch, chunk) of each lease."""

    @property
    def rows(self) -> int:
        """Rows that this run decided."""
        return 0 if self._ledger is None else _decided(self._ledger) - self._before

    @property
    def waits(self) -> Waits:
        """What it does now, and the rows in doubt that wait."""
        return Waits() if self._engine is None else self._engine.waits

    async def run(self) -> ChunkReport:
        """Pay what can be paid now. Raises LedgerError and OutcomesUnrecorded."""
        holder, stopping = self._holder, self.stopping
        looks = self._leases[0].kind is Work.LOOK
        look_after = LOOK_AGAIN if looks else None
        async with holder.working(self._leases, stopping.halt, look_after) as work:
            # begun after the grant: all that earlier holders recorded was past by then
            service = Service(holder.client, holder.database.clock.now)
            ledger = await LeasedChunks.under(holder.database, self._leases, clock=service.moment)
            self._ledger, self._before = ledger, _decided(ledger)
            pace = self._settings.pace(looks=looks)
            self._engine = Engine(ledger, service, pace, stopping, self._on_commit)
            await self._engine.run()
            end = end_of(stopping.reason, work.halt, self._leases)  # before the leases are given back
        chunks = tuple(lease.chunk for lease in self._leases)
        return ChunkReport(
            self._leases[0].batch.batch_id, chunks, end, stopping.reason, stopping.kind, self.rows
        )


def _decided(ledger: Ledger) -> int:
    return count_rows(ledger.totals, *_DECIDED)
