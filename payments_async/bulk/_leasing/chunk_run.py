"""Work under leases: one run of the engine over leased chunks, whose leases are kept meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import attrs

from ...client import AsyncPayments
from .._activity import Waits
from .._engine.engine import Engine, Pace
from .._engine.recorder import OutcomesUnrecorded
from .._engine.sender import LEASE_LOST
from .._engine.service import Service
from .._engine.stopping import Stopping
from .._ledger.postgresql.database import Database
from .._ledger.postgresql.leased_chunks import LeasedChunks
from .._ledger.postgresql.leases import Lease, Work, give_back
from .._ledger.postgresql.worker_registry import Worker
from .._protocol.outcomes import CREATED, Outcome, count_rows
from ..ledger_errors import LedgerError, LedgerUnavailable
from .lease_keeper import LeasedWork, LeaseKeeper

if TYPE_CHECKING:
    from .._reconcile.certificate import Certificate

LOOK_AGAIN: Final = 900.0
"""Seconds until rows that stayed in doubt are due again: by then their last requests have surely ended."""
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
                self.database.patience = 0.0  # a database that is away is not waited for
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
    """One run of the engine over leased chunks. Afterwards `stopping` says why it ended early, if it did."""

    def __init__(
        self,
        holder: LeaseHolder,
        leases: Sequence[Lease],
        stopping: Stopping,
        pace: Pace,
        on_commit: Callable[[], object],
    ) -> None:
        self._holder, self._leases = holder, leases
        self.stopping: Stopping = stopping
        self._pace, self._on_commit = pace, on_commit
        self._ledger: LeasedChunks | None = None
        self._engine: Engine | None = None
        self._before = 0
        self.certificate: Certificate | None = None
        """None: the list is read for a closing only."""
        self.is_lost: bool = False
        """True if it ended because its leases were lost, or because the batch is held."""
        self.leased_chunks: tuple[tuple[str, int], ...] = tuple(
            (lease.batch.batch_id, lease.chunk) for lease in leases
        )
        """(batch, chunk) of each lease."""

    @property
    def rows(self) -> int:
        """Rows that this run decided."""
        return self.decided - self._before

    @property
    def decided(self) -> int:
        """Rows of its chunks that are decided."""
        return 0 if self._ledger is None else count_rows(self._ledger.totals, *_DECIDED)

    @property
    def waits(self) -> Waits:
        """What it does now, and the rows in doubt that wait."""
        return Waits() if self._engine is None else self._engine.waits

    @property
    def failure(self) -> LedgerError | None:
        """The error, other than a lost lease, for which an intent was refused."""
        return None if self._ledger is None else self._ledger.failure

    async def run(self) -> None:
        """Pay what can be paid now. Raises LedgerError and OutcomesUnrecorded."""
        holder, stopping = self._holder, self.stopping
        look_after = LOOK_AGAIN if self._leases[0].kind is Work.LOOK else None
        async with holder.working(self._leases, stopping.halt, look_after) as work:
            # begun after the grant: all that earlier holders recorded was past by then
            service = Service(holder.client, holder.database.clock.now)
            self._ledger = await LeasedChunks.under(holder.database, self._leases, clock=service.moment)
            self._before = self.decided
            self._engine = Engine(self._ledger, service, self._pace, stopping, self._on_commit)
            await self._engine.run()
            lost = any(lease.is_lost for lease in self._leases)  # before they are given back
        self.is_lost = work.halt is not None or lost or stopping.reason == LEASE_LOST
