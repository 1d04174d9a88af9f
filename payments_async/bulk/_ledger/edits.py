"""Edits of a batch, in one transaction that holds all its chunks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection

import attrs

from .._protocol import transitions
from .._protocol.outcomes import by_currency
from .._protocol.records import Binding, LedgerRow, NewRow, added_up
from .batches import BatchFacts, facts_of
from .chunks import BATCH_CHUNK, NOTHING_LOCKED, ChunkWrite, LockedChunks, locking_chunks
from .commits import Commit, Committer
from .statements import LAST_NUMBER, PAGE
from .stored_rows import stored_rows
from .transactions import Transaction


@attrs.define
class Edits:
    """Edits of a batch in one transaction: committed together, or not at all. Valid within `Ledger.edit`.

    What a method reads holds what this transaction has changed.
    """

    facts: BatchFacts
    """The batch, as it is after these edits."""
    _transaction: Transaction
    _committer: Committer
    _locked: LockedChunks
    writes: dict[int, ChunkWrite] = attrs.field(factory=dict)
    """The changed chunks with their last entries."""
    _commands: dict[str, int] = attrs.field(factory=dict)
    """{kind: rows}."""

    @classmethod
    async def begun(
        cls, transaction: Transaction, committer: Committer, facts: BatchFacts, chunks: Collection[int]
    ) -> Edits:
        """Lock the whole batch, and read it anew. Without any of its chunks: to read only."""
        locked = NOTHING_LOCKED
        if chunks:
            locking = locking_chunks(transaction, facts.batch.batch, chunks)
            found, batch = await transaction.read(locking, (transaction.sql.batch, (facts.batch.batch_id,)))
            locked = LockedChunks.of(found)
            committer.require_store(locked)
            facts = facts_of(batch)
        return cls(facts, transaction, committer, locked)

    async def by_keys(self, keys: Collection[str]) -> list[LedgerRow]:
        """Read the rows with one of these keys, at most a thousand keys."""
        sql = self._committer.sql
        statement = self._committer.on_rows(sql.rows_by_keys, [sql.named(key) for key in keys])
        (found,) = await self._transaction.read(statement)
        return [each.row for each in stored_rows(found)]

    async def rows(self) -> AsyncIterator[LedgerRow]:
        """Read all rows in the order of their numbers, a page at a time."""
        last, more = 0, True
        while more:
            page = self._committer.on_rows(self._committer.sql.rows_after, last, LAST_NUMBER, PAGE)
            (found,) = await self._transaction.read(page)
            for each in stored_rows(found):
                yield each.row
                last = each.row.number
            more = len(found) == PAGE

    async def correct(self, replacements: Collection[NewRow]) -> None:
        """Give rows another body, as `Ledger.correct` does. Raises LedgerRefused."""
        self._committer.require_proven(self._locked)
        wanted = {new.number: new for new in replacements}
        found = await self._committer.numbered(self._transaction, wanted)
        done = await self._committer.replaced(
            self._transaction, self._locked, found, "correct", wanted, transitions.corrected
        )
        self._take("correct", done)

    async def cancel(self, numbers: Collection[int]) -> None:
        """Cancel rows that were never sent. Raises LedgerRefused for another state."""
        self._committer.require_proven(self._locked)
        found = await self._committer.numbered(self._transaction, numbers)
        self._take("cancel", self._committer.cancelled(self._transaction, self._locked, found))

    def _take(self, kind: str, done: Commit) -> None:
        self._commands[kind] = self._commands.get(kind, 0) + len(done.rows)
        self._keep(done.writes)

    def _keep(self, writes: Collection[ChunkWrite]) -> None:
        changed = {each.chunk.number: each for each in writes}
        self.writes.update(changed)
        chunks = {number: each.chunk for number, each in changed.items()}
        self._locked = self._locked._replace(chunks={**self._locked.chunks, **chunks})

    async def rebind(self, binding: Binding) -> None:
        """Record that the ledger now belongs to another key or input; its totals are summed anew."""
        totals = by_currency(added_up(chunk.figures for chunk in self._locked.chunks.values()).totals)
        header = attrs.evolve(self.facts.header, binding=binding, totals=totals)
        self.facts, whole = self._committer.described(self._transaction, self._locked, self.facts, header)
        self._keep([whole])

    @property
    def commit(self) -> Commit:
        """What the edits have changed."""
        writes = tuple(self.writes.values())
        figures = {each.chunk.number: each.chunk.figures for each in writes}
        at = self._committer.moment(self._locked)
        return Commit(at, (), writes, figures, self._locked.losses, self.facts)

    def end(self) -> None:
        """Add an entry for the batch for each kind of edit."""
        for kind, rows in self._commands.items():
            if rows:
                touched = [number for number in self.writes if number != BATCH_CHUNK]
                self._keep([self._committer.command(self._transaction, self._locked, kind, rows, touched)])
