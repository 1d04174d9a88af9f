"""Commits of changed rows: intents, outcomes from anybody, replaced content.

Each is one transaction of two parts: lock the chunks and read rows; then write their states, an entry of each
chunk's chain and the chunks themselves, and commit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from .._protocol import transitions
from .._protocol.clocks import Timestamps
from .._protocol.outcomes import Outcome
from .._protocol.records import Header, LedgerRow, NewRow, Resend, RowFigures, RowOutcome
from .._protocol.row_state import OPEN, IllegalTransition
from .._protocol.run_figures import RunFigures
from ..ledger_errors import LedgerRefused
from . import run_figures
from .batches import BatchFacts, facts_of, rebinding
from .chunks import (
    BATCH_CHUNK,
    NOTHING_LOCKED,
    Batch,
    Chunk,
    ChunkWrite,
    LockedChunks,
    is_stored,
    locking_chunks,
    of_batch,
    with_changed_rows,
    with_entry,
    write_chunks,
)
from .statements import Rows, Statement, Statements
from .stored_rows import Change, StoredRow, content, stored_rows, undamaged
from .transactions import LedgerDatabase, Purpose, Transaction

T = TypeVar("T")
Move = Callable[[LedgerRow, int], LedgerRow]
"""Changes a row in the entry of this number."""
Leases = Mapping[int, bytes | None]
"""{chunk: the lease under which its rows are sent}."""


@attrs.frozen
class Commit:
    """What a transaction has stored."""

    at: Timestamps
    rows: tuple[LedgerRow, ...] = ()
    """The changed rows."""
    writes: tuple[ChunkWrite, ...] = ()
    """The chunks with their new entries."""
    figures: Mapping[int, RowFigures] = attrs.field(factory=dict)
    """{chunk: its figures}, of all that were locked."""
    losses: int = 0
    """How often the batch had lost commits before."""
    facts: BatchFacts | None = None
    """The batch's own, where they were changed."""


@attrs.frozen
class Committer:
    """Makes the commits of one batch. Every method may raise LedgerError."""

    database: LedgerDatabase
    batch: Batch
    path: str
    """What messages call the ledger."""
    clock: Callable[[], Timestamps]
    """The time on this process's clocks; the wall clock's is replaced by the database's, where it has one."""
    took: Callable[[Commit], object]
    """Called with each commit once it is stored, even when its caller is gone."""
    in_flight: Mapping[int, StoredRow]
    """{number: row}, of rows that were claimed here: they are read again only if another has changed them."""

    @property
    def sql(self) -> Statements:
        """The database's statements."""
        return self.database.sql

    def on_rows(self, sql: str, *values: Any) -> Statement:
        """Make a statement about the batch's rows."""
        return of_batch(self.batch.batch, sql, *values)

    async def claim(self, chunk: int, *, after: int, limit: int, lease: bytes | None = None) -> Commit:
        """Record intents for the next new rows of a chunk: first those after a number, then any."""

        async def work(transaction: Transaction) -> Commit:
            locked, found = await self._locked(transaction, {chunk}, self.claimable(chunk, after, limit))
            self.require_leases(locked, {chunk: lease})
            if not found and after and locked.chunks[chunk].figures.count(Outcome.NOT_STARTED):
                (again,) = await transaction.read(self.claimable(chunk, 0, limit))
                found = stored_rows(again)

            def move(row: LedgerRow, entry: int) -> LedgerRow:
                return transitions.claimed(_doubted(row, locked), entry)

            return self._write(transaction, locked, "claim", found, move, {chunk: lease})

        return await self._commit(work, Purpose.INTENT)

    def claimable(self, chunk: int, after: int, limit: int) -> Statement:
        """Make the statement that reads the next new rows of a chunk that may be claimed."""
        begin = max(after, (chunk - 1) * self.batch.chunk_size)
        return self.on_rows(self.sql.rows_claimable, begin, self.batch.batch, chunk, limit)

    async def resend(self, resends: Iterable[Resend], leases: Leases) -> Commit:
        """Record intents to post unfinished rows again, without those decided meanwhile."""
        wanted = {resend.number: resend for resend in resends}

        def move(row: LedgerRow, entry: int) -> LedgerRow:
            return transitions.resent(row, wanted[row.number], entry)

        async def work(transaction: Transaction) -> Commit:
            locked, found = await self._wanted(transaction, wanted)
            of_chunks = {chunk: leases.get(chunk) for chunk in locked.chunks}
            self.require_leases(locked, of_chunks)
            undecided = [each for each in found if each.row.known.state in OPEN]
            return self._write(transaction, locked, "resend", undecided, move, of_chunks)

        return await self._commit(work, Purpose.INTENT)

    async def record(self, outcomes: Iterable[RowOutcome]) -> Commit:
        """Add outcomes to what is known of rows. One of another generation or body adds nothing."""
        learned: dict[int, list[RowOutcome]] = {}
        for outcome in outcomes:
            learned.setdefault(outcome.number, []).append(outcome)

        async def work(transaction: Transaction) -> Commit:
            locked, found = await self._wanted(transaction, learned)

            def move(row: LedgerRow, entry: int) -> LedgerRow:
                before = known = _doubted(row, locked)
                for outcome in learned[row.number]:
                    known = transitions.recorded(known, outcome, entry) or known
                return row if known is before else known

            return self._write(transaction, locked, "record", found, move, {})

        return await self._commit(work)

    async def save(self, figures: RunFigures, done: Callable[[None], object] = bool) -> None:
        """Store figures alone."""
        batch, session = self.batch.batch, self.clock().session
        await self.database.commit(
            lambda transaction: run_figures.write(transaction, batch, session, figures),
            purpose=Purpose.FIGURES,
            done=done,
        )

    async def replace(
        self,
        kind: str,
        replacements: Iterable[NewRow],
        change: Callable[[LedgerRow, NewRow, int], LedgerRow],
        *,
        recovers: bool = False,
    ) -> Commit:
        """Give rows other content, which makes them new. Raises LedgerRefused.

        `recovers`: it is the list that shows the change; a command waits until lost commits are known.
        """
        wanted = {new.number: new for new in replacements}

        async def work(transaction: Transaction) -> Commit:
            locked, found = await self._wanted(transaction, wanted, also=(BATCH_CHUNK,))
            if not recovers:
                self.require_proven(locked)
            done = await self.replaced(transaction, locked, found, kind, wanted, change)
            return self.commanded(transaction, locked, kind, done) if done.rows else done

        return await self._commit(work)

    async def replaced(
        self,
        transaction: Transaction,
        locked: LockedChunks,
        found: Sequence[StoredRow],
        kind: str,
        wanted: Mapping[int, NewRow],
        change: Callable[[LedgerRow, NewRow, int], LedgerRow],
    ) -> Commit:
        """Write other content of locked rows. Raises LedgerRefused."""

        def move(row: LedgerRow, entry: int) -> LedgerRow:
            return change(row, wanted[row.number], entry)

        done = self._write(transaction, locked, kind, found, move, {})
        if done.rows:
            before = {each.row.number: each for each in found}
            into = self.sql.add_rows.of_batch(self.batch.batch)
            await transaction.copy(into, self._new_content(done, before))
        return done

    def _new_content(self, done: Commit, before: Mapping[int, StoredRow]) -> Iterator[tuple[Any, ...]]:
        """The content of replaced rows. A new reference must be nobody else's."""
        for row, version, *_ in (row for each in done.writes for row in each.rows):
            if version != before[row.number].version:
                is_same = row.reference == before[row.number].row.reference
                yield content(row, version, None, None if is_same else self.sql.named(row.reference))

    def cancelled(self, transaction: Transaction, locked: LockedChunks, found: Iterable[StoredRow]) -> Commit:
        """Cancel locked rows. Raises LedgerRefused."""
        return self._write(transaction, locked, "cancel", found, transitions.cancelled, {})

    def commanded(self, transaction: Transaction, locked: LockedChunks, kind: str, done: Commit) -> Commit:
        """Add an entry for the batch to what an operator's command has changed."""
        touched = [each.chunk.number for each in done.writes]
        whole = self.command(transaction, locked, kind, len(done.rows), touched)
        return attrs.evolve(done, writes=(*done.writes, whole))

    def command(
        self, transaction: Transaction, locked: LockedChunks, kind: str, rows: int, chunks: Collection[int]
    ) -> ChunkWrite:
        """Add an entry for the batch: an operator's command changed so many rows of these chunks."""
        return self.note(transaction, locked, kind, f'{{"rows":{rows}}}')

    async def describe(self, **changes: Any) -> Commit:
        """Record other facts of the header; not while commits may be lost."""

        async def work(transaction: Transaction) -> Commit:
            locking = locking_chunks(transaction, self.batch.batch, [BATCH_CHUNK])
            reading = (self.sql.batch, (self.batch.batch_id,))
            found, batch = await transaction.read(locking, reading)
            locked = LockedChunks.of(found)
            if not locked.is_here:
                return Commit(self.moment(locked))
            self.require_store(locked)
            before = facts_of(batch)
            header = attrs.evolve(before.header, **changes)
            facts, whole = self.described(transaction, locked, before, header)
            return Commit(whole.entry.at, writes=(whole,), losses=locked.losses, facts=facts)

        return await self._commit(work)

    def described(
        self, transaction: Transaction, locked: LockedChunks, facts: BatchFacts, header: Header
    ) -> tuple[BatchFacts, ChunkWrite]:
        """Store other facts of the batch, with the entry that carries them."""
        facts = attrs.evolve(facts, header=header, described_in=locked.chunks[BATCH_CHUNK].entries + 1)
        whole = self.note(transaction, locked, "header", facts.text)
        transaction.write(*rebinding(self.sql, facts))
        return facts, whole

    def note(self, transaction: Transaction, locked: LockedChunks, kind: str, text: str) -> ChunkWrite:
        """Add an entry about the batch itself."""
        at = self.moment(locked)
        whole = with_entry(self.batch, locked.chunks[BATCH_CHUNK], kind, at, text)
        write_chunks(transaction, self.batch, [whole])
        return whole

    # What a database refuses that many work with

    def require_store(self, locked: LockedChunks) -> None:
        """Raise unless the chunks are as the last commit left them, as far as that is known here."""

    def require_proven(self, locked: LockedChunks) -> None:
        """Raise LedgerRefused if rows may have been sent of which the ledger does not know."""

    def require_leases(self, locked: LockedChunks, leases: Leases) -> None:
        """Raise LeaseLost unless all of these are the chunks' leases, and the batch may be sent."""

    async def judged(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do work."""
        return await work()

    # The parts of a commit

    async def _commit(
        self, work: Callable[[Transaction], Awaitable[Commit]], purpose: Purpose = Purpose.OUTCOME
    ) -> Commit:
        last: list[Commit] = []

        async def run(transaction: Transaction) -> Commit:
            last[:] = [await work(transaction)]
            return last[0]

        async def committed(transaction: Transaction) -> bool:
            return await is_stored(transaction, self.batch.batch, last[0].writes)

        with undamaged(self.path):
            return await self.judged(
                lambda: self.database.commit(run, committed, purpose=purpose, done=self.took)
            )

    async def _locked(
        self, transaction: Transaction, chunks: Collection[int], reading: Statement
    ) -> tuple[LockedChunks, list[StoredRow]]:
        """Lock chunks, then read rows of them."""
        locking = locking_chunks(transaction, self.batch.batch, chunks)
        found, rows = await transaction.read(locking, reading)
        locked = LockedChunks.of(found)
        self.require_store(locked)
        return locked, stored_rows(rows)

    async def _wanted(
        self, transaction: Transaction, numbers: Collection[int], also: Collection[int] = ()
    ) -> tuple[LockedChunks, list[StoredRow]]:
        """Lock the chunks of these rows, and read the rows. Raises LedgerRefused when one is not there."""
        chunks = {*self.batch.chunks_of(numbers), *also}
        if not chunks:
            return NOTHING_LOCKED, []
        known = [self.in_flight[number] for number in sorted(numbers) if number in self.in_flight]
        is_known = len(known) == len(numbers)
        digests = self.on_rows(self.sql.row_digests, [each.row.number for each in known])
        reading = digests if is_known else self._numbered(numbers)
        found, rows = await transaction.read(locking_chunks(transaction, self.batch.batch, chunks), reading)
        locked = LockedChunks.of(found)
        self.require_store(locked)
        if not is_known:
            return locked, self._all_of_them(numbers, rows)
        if {(each.row.number, each.rank, each.digest) for each in known} == set(rows):
            return locked, known
        return locked, await self.numbered(transaction, numbers)

    async def numbered(self, transaction: Transaction, numbers: Collection[int]) -> list[StoredRow]:
        """Read rows by number. Raises LedgerRefused when one is not there."""
        (rows,) = await transaction.read(self._numbered(numbers))
        return self._all_of_them(numbers, rows)

    def _numbered(self, numbers: Collection[int]) -> Statement:
        return self.on_rows(self.sql.rows_numbered, sorted(numbers))

    def _all_of_them(self, numbers: Iterable[int], rows: Rows) -> list[StoredRow]:
        found = stored_rows(rows)
        there = {each.row.number for each in found}
        for number in numbers:
            if number not in there:
                raise LedgerRefused(self.path, number, "is not there")
        return found

    def moment(self, locked: LockedChunks) -> Timestamps:
        """The time of a commit: by the database's clock, and by this process's others."""
        return attrs.evolve(self.clock(), wall=locked.wall)

    def _write(
        self,
        transaction: Transaction,
        locked: LockedChunks,
        kind: str,
        found: Iterable[StoredRow],
        move: Move,
        leases: Leases,
    ) -> Commit:
        """Move rows, and write them with an entry for each of their chunks."""
        at, changes = self.moment(locked), dict[int, list[Change]]()
        for each in found:
            chunk = locked.chunks[self.batch.chunk_of(each.row.number)]
            after = self._moved(each.row, move, chunk)
            if after is not each.row:
                changes.setdefault(chunk.number, []).append((each, after))
        writes = tuple(
            with_changed_rows(self.batch, locked.chunks[chunk], kind, at, of_chunk, leases.get(chunk))
            for chunk, of_chunk in changes.items()
        )
        if writes:
            write_chunks(transaction, self.batch, writes)
        rows = tuple(row.row for each in writes for row in each.rows)
        figures = {number: chunk.figures for number, chunk in locked.chunks.items()}
        figures.update((each.chunk.number, each.chunk.figures) for each in writes)
        return Commit(at, rows, writes, figures, locked.losses)

    def _moved(self, row: LedgerRow, move: Move, chunk: Chunk) -> LedgerRow:
        try:
            return move(row, chunk.entries + 1)
        except (IllegalTransition, transitions.TransitionRefused) as error:
            reason = str(error)
        raise LedgerRefused(self.path, row.number, reason)


def _doubted(row: LedgerRow, locked: LockedChunks) -> LedgerRow:
    return transitions.doubted(row, locked.losses, proven=not locked.is_unproven)
