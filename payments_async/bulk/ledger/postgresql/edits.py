"""Edits of a batch: the interface's `Edits` in one transaction that holds all its chunks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection

import attrs

from ...protocol import transitions
from ...protocol.records import Binding, LedgerRow, NewRow
from ...protocol.totals import by_currency
from ..ledger import Edits
from . import chunks as _chunks
from . import rows as _rows
from .batches import BatchFacts, facts_text, rebinding
from .chunks import WHOLE, Entered, Locked
from .commits import Commit, Committer
from .driver.database import Transaction
from .figures import added_up
from .rows import VersionedRow

_PAGE = 500


@attrs.define
class PostgresEdits(Edits):
    """The edits of one transaction."""

    facts: BatchFacts
    """The batch, as it is after these edits."""
    _transaction: Transaction
    _committer: Committer
    _locked: Locked
    entered: dict[int, Entered] = attrs.field(factory=dict)
    """The changed chunks with their last entries."""
    _commands: dict[str, int] = attrs.field(factory=dict)
    """{kind: rows}."""

    @classmethod
    async def begun(
        cls, transaction: Transaction, committer: Committer, facts: BatchFacts, chunks: Collection[int]
    ) -> PostgresEdits:
        """Lock the whole batch. Without any of its chunks: to read only."""
        locked = Locked(0.0, facts.state, None, {})
        if chunks:
            (found,) = await transaction.read(_chunks.locking(facts.batch.batch, chunks))
            locked = Locked.of(found)
            committer.require_store(locked)
        return cls(facts, transaction, committer, locked)

    async def by_keys(self, keys: Collection[str]) -> list[LedgerRow]:
        """Read the rows with one of these keys."""
        (found,) = await self._transaction.read(_rows.by_keys(self.facts.batch.batch, keys))
        return [each.row for each in _rows.stored(found)]

    async def rows(self) -> AsyncIterator[LedgerRow]:
        """Read all rows in the order of their numbers, a page at a time."""
        last, more = 0, True
        while more:
            page = _rows.reading(self.facts.batch.batch, "s.number > %s", [last], limit=_PAGE)
            (found,) = await self._transaction.read(page)
            for each in _rows.stored(found):
                yield each.row
                last = each.row.number
            more = len(found) == _PAGE

    async def correct(self, replacements: Collection[NewRow]) -> None:
        """Give rows another body. Raises LedgerRefused."""
        self._committer.require_proven(self._locked)
        wanted = {new.number: new for new in replacements}
        done = await self._committer.replaced(
            self._transaction,
            self._locked,
            await self._found(wanted),
            "correct",
            wanted,
            transitions.corrected,
        )
        self._take("correct", done)

    async def cancel(self, numbers: Collection[int]) -> None:
        """Cancel rows that were never sent. Raises LedgerRefused for another state."""
        self._committer.require_proven(self._locked)
        found = await self._found(numbers)
        self._take("cancel", self._committer.cancelled(self._transaction, self._locked, found))

    async def _found(self, numbers: Collection[int]) -> list[VersionedRow]:
        (found,) = await self._transaction.read(_rows.numbered(self.facts.batch.batch, numbers))
        rows = _rows.stored(found)
        self._committer.require_all(numbers, rows)
        return rows

    def _take(self, kind: str, done: Commit) -> None:
        self._commands[kind] = self._commands.get(kind, 0) + len(done.rows)
        self._keep(done.entered)

    def _keep(self, entered: Collection[Entered]) -> None:
        changed = {each.chunk.number: each for each in entered}
        self.entered.update(changed)
        chunks = {number: each.chunk for number, each in changed.items()}
        self._locked = self._locked._replace(chunks={**self._locked.chunks, **chunks})

    async def rebind(self, binding: Binding) -> None:
        """Record another key or input; the sums are those of the rows as they are now."""
        batch, chunks = self.facts.batch, self._locked.chunks
        totals = by_currency(added_up(chunk.figures for chunk in chunks.values()).totals)
        header = attrs.evolve(self.facts.header, binding=binding, totals=totals)
        text = facts_text(header, batch, self.facts.chunks)
        at = self._committer.moment(self._locked)
        whole = _chunks.entered(batch, chunks[WHOLE], "header", at, text)
        _chunks.write(self._transaction, batch, [whole])
        self._transaction.write(rebinding(batch.batch, header, whole.entry.number))
        self.facts = attrs.evolve(self.facts, header=header, described_in=whole.entry.number)
        self._keep([whole])

    def end(self) -> None:
        """Add an entry for the batch for each kind of edit."""
        for kind, rows in self._commands.items():
            if rows:
                touched = [number for number in self.entered if number != WHOLE]
                self._keep([self._committer.noted(self._transaction, self._locked, kind, rows, touched)])
