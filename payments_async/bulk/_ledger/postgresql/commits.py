"""Commits to a batch that many processes work on.

An intent needs the chunk's lease. After a fail-over, a process looks for its own last commits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

import attrs

from ..._protocol import machines, transitions
from ..._protocol.machines import BatchState, IntentBlock
from ..._protocol.records import LedgerRow
from ..._protocol.row_state import UNFINISHED, RowState
from ...ledger_errors import LeaseLost, LedgerDamaged, LedgerRefused, LedgerUnavailable
from ..chunks import BATCH_CHUNK, Chunk, ChunkWrite, LockedChunks
from ..commits import Commit, Committer, Leases
from ..statements import Statement
from ..stored_rows import StoredRow, UnreadableRecord, stored_rows
from ..transactions import Transaction
from .batches import found, reopening, with_note
from .database import Database
from .failover import UNPROVEN, LastEntries, ServerChanged, judge

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class SharedCommitter(Committer):
    """Makes the commits of one batch of a database. Intents raise LeaseLost."""

    database: Database
    last_entries: LastEntries = attrs.field(factory=LastEntries)
    """The last entries that this process has made, to be found again after a fail-over."""

    async def doubt(self, chunk: Chunk) -> Commit:
        """Count the lost intents of a chunk's rows that are in flight or in doubt."""

        async def work(transaction: Transaction) -> Commit:
            locked, found = await self._all_of(transaction, chunk, UNFINISHED)

            def move(row: LedgerRow, entry: int) -> LedgerRow:
                return transitions.perhaps_resent(row, locked.losses, entry) or row

            return self._write(transaction, locked, "recover", found, move, {})

        return await self._commit(work)

    async def cancel_new(self, chunk: Chunk) -> Commit:
        """Cancel all new rows of a chunk. Raises LedgerRefused while it is not known what was lost."""

        async def work(transaction: Transaction) -> Commit:
            locked, found = await self._all_of(transaction, chunk, [RowState.NEW], also=(BATCH_CHUNK,))
            self.require_proven(locked)
            done = self.cancelled(transaction, locked, found)
            whole = self.command(transaction, locked, "cancel", len(done.rows), {chunk.number})
            return attrs.evolve(done, writes=(*done.writes, whole))

        return await self._commit(work)

    async def _all_of(
        self,
        transaction: Transaction,
        chunk: Chunk,
        states: Collection[RowState],
        also: Collection[int] = (),
    ) -> tuple[LockedChunks, list[StoredRow]]:
        """Lock a chunk, and read its rows in some states."""
        first, *rest = (self._in_state(chunk, state) for state in states)
        locked, found = await self._locked(transaction, {chunk.number, *also}, first)
        for more in await transaction.read(*rest):
            found += stored_rows(more)
        return locked, sorted(found, key=lambda each: each.row.number)

    def _in_state(self, chunk: Chunk, state: RowState) -> Statement:
        before, rows = chunk.first - 1, chunk.last - chunk.first + 1
        return self.on_rows(self.sql.rows_in_state, before, chunk.last, state.value, rows)

    # What a database refuses that many work with

    async def judged(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do work. When the batch's server has changed, find out first whether commits are lost."""
        runtime, began = self.database.runtime, self.database.runtime.monotonic()
        while True:
            try:
                return await work()
            except ServerChanged:
                pass
            except (LedgerDamaged, UnreadableRecord):
                await found(self.database, self.batch.batch_id)  # raises if it was discarded or forgotten
                raise
            if runtime.monotonic() > began + self.database.patience:
                raise LedgerUnavailable(self.path, "the connection is lost again and again")
            await judge(self.database, self.batch, self.clock, self.last_entries)

    def require_store(self, locked: LockedChunks) -> None:
        """Raise ServerChanged unless the batch's last commit, and this process's, went to this server."""
        if not locked.is_here or self.last_entries.are_unchecked(self.database):
            raise ServerChanged

    def require_proven(self, locked: LockedChunks) -> None:
        """Raise LedgerRefused if rows may have been sent of which the ledger does not know."""
        if locked.is_unproven:
            raise LedgerRefused(self.path, None, UNPROVEN)

    def require_leases(self, locked: LockedChunks, leases: Leases) -> None:
        """Raise LeaseLost unless all of these are the chunks' leases, and the batch may be sent."""
        for number, chunk in locked.chunks.items():
            block = machines.intent_block(chunk.lease, leases[number], BatchState(locked.state))
            if block is IntentBlock.STOPPED:
                why = f": {locked.reason}" if locked.reason else ""
                raise LeaseLost(self.path, f"the batch is {locked.state}{why}")
            if block is IntentBlock.LOST:
                raise LeaseLost(
                    self.path, f"the lease of chunk {number} is another worker's by now, or ended"
                )

    def command(
        self, transaction: Transaction, locked: LockedChunks, kind: str, rows: int, chunks: Collection[int]
    ) -> ChunkWrite:
        """Add an entry for the batch: an operator's command changed so many rows of these chunks."""
        transaction.write(*reopening(self.batch.batch, chunks))
        return super().command(transaction, locked, kind, rows, chunks)

    def note(self, transaction: Transaction, locked: LockedChunks, kind: str, text: str) -> ChunkWrite:
        """Add an entry about the batch itself, and record the standbys that may lack it."""
        return with_note(transaction, self.batch, locked, self.clock, kind, text)
