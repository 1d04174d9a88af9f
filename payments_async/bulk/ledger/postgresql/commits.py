"""Commits of changed rows: intents under a lease, outcomes from anybody, replaced content.

Each is one transaction of two round trips: lock the chunks and read rows; then write their states, an entry
of each chunk's chain and the chunks themselves, and commit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs

from ...ledger_errors import LeaseLost, LedgerRefused, LedgerUnavailable
from ...protocol import leases as _leases
from ...protocol import transitions
from ...protocol.clocks import Timestamps
from ...protocol.leases import BatchState, IntentBlock
from ...protocol.outcomes import Outcome
from ...protocol.records import LedgerRow, NewRow, Resend, RowOutcome
from ...protocol.row_state import OPEN, IllegalTransition
from ...protocol.run_figures import RunFigures
from . import chunks as _chunks
from . import rows as _rows
from . import run_figures
from .batches import noted as _noted
from .batches import reopening
from .chunks import WHOLE, Batch, Chunk, Entered, Locked
from .driver.database import Database, Transaction
from .driver.session import Statement
from .failover import UNPROVEN, Heads, StoreChanged, judge
from .figures import RowFigures
from .rows import Change, VersionedRow, undamaged
from .schema import rows_table

T = TypeVar("T")
Move = Callable[[LedgerRow, int], LedgerRow]
"""Changes a row in the entry of this number."""
_CLAIMABLE: Final = (
    "s.number > %s AND s.number <= (SELECT c.granted_to FROM payments.chunks c "
    "WHERE c.batch = %s AND c.chunk = %s) AND s.state = 'NEW'"
)
_NEW: Final = "s.number BETWEEN %s AND %s AND s.state = 'NEW'"
_DOUBTFUL: Final = "s.number BETWEEN %s AND %s AND s.state IN ('IN_FLIGHT', 'IN_DOUBT')"


@attrs.frozen
class Commit:
    """What a transaction has stored."""

    at: Timestamps
    rows: tuple[LedgerRow, ...] = ()
    """The changed rows."""
    entered: tuple[Entered, ...] = ()
    """The chunks with their new entries."""
    figures: Mapping[int, RowFigures] = attrs.field(factory=dict)
    """{chunk: its figures}, of all that were locked."""
    losses: int = 0
    """How often the batch had lost commits before."""
    connection: int = 0
    """The connection that it was made on, counted."""


@attrs.frozen
class Committer:
    """Makes the commits of one batch. Every method may raise LedgerError."""

    database: Database
    batch: Batch
    path: str
    """What messages call the ledger."""
    clock: Callable[[], Timestamps]
    """The time on this process's clocks; the wall clock's is replaced by the database's."""
    heads: Heads = attrs.field(factory=Heads)
    """The last entries that this process has made, to be found again after a fail-over."""

    async def claim(self, chunk: int, lease: bytes, *, after: int, limit: int) -> Commit:
        """Record intents for the next new rows of a chunk: first those after a number, then any.

        Raises LeaseLost.
        """

        async def work(transaction: Transaction) -> Commit:
            locked, found = await self._locked(transaction, {chunk}, self._claimable(chunk, after, limit))
            self._require_lease(locked, {chunk: lease})
            if not found and after and locked.chunks[chunk].figures.count(Outcome.NOT_STARTED):
                (again,) = await transaction.read(self._claimable(chunk, 0, limit))
                found = _rows.stored(again)
            moves = [(each, _claiming(locked)) for each in found]
            return self._entered(transaction, locked, "claim", moves, {chunk: lease})

        return await self._commit(work)

    def _claimable(self, chunk: int, after: int, limit: int) -> Statement:
        batch, before = self.batch.batch, (chunk - 1) * self.batch.chunk_size
        return _rows.reading(batch, _CLAIMABLE, [max(after, before), batch, chunk], limit=limit)

    async def resend(self, resends: Iterable[Resend], leases: Mapping[int, bytes]) -> Commit:
        """Record intents to post unfinished rows again, without those decided meanwhile. Raises LeaseLost."""
        wanted = {resend.number: resend for resend in resends}

        def move(resend: Resend) -> Move:
            return lambda row, entry: transitions.resent(row, resend, entry)

        async def work(transaction: Transaction) -> Commit:
            locked, found = await self._wanted(transaction, wanted)
            of_chunks = {chunk: leases.get(chunk) for chunk in locked.chunks}
            self._require_lease(locked, of_chunks)
            undecided = [each for each in found if each.row.state in OPEN]
            moves = [(each, move(wanted[each.row.number])) for each in undecided]
            return self._entered(transaction, locked, "resend", moves, of_chunks)

        return await self._commit(work)

    async def record(self, outcomes: Iterable[RowOutcome]) -> Commit:
        """Add outcomes to what is known of rows. One of another generation or body adds nothing."""
        learned: dict[int, list[RowOutcome]] = {}
        for outcome in outcomes:
            learned.setdefault(outcome.number, []).append(outcome)

        def move(locked: Locked, number: int) -> Move:
            return lambda row, entry: _with_outcomes(row, learned[number], locked, entry)

        async def work(transaction: Transaction) -> Commit:
            locked, found = await self._wanted(transaction, learned)
            moves = [(each, move(locked, each.row.number)) for each in found]
            return self._entered(transaction, locked, "record", moves, {})

        return await self._commit(work)

    async def save(self, figures: RunFigures) -> None:
        """Store figures alone."""
        lane = run_figures.lane_of(self.clock().session)
        await self.database.commit(
            lambda transaction: run_figures.write(transaction, self.batch.batch, lane, figures)
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
            locked, found = await self._wanted(transaction, wanted, also=(WHOLE,))
            if not recovers:
                self.require_proven(locked)
            done = await self.replaced(transaction, locked, found, kind, wanted, change)
            if not done.rows:
                return done
            touched = [each.chunk.number for each in done.entered]
            whole = self.noted(transaction, locked, kind, len(done.rows), touched)
            return attrs.evolve(done, entered=(*done.entered, whole))

        return await self._commit(work)

    async def replaced(
        self,
        transaction: Transaction,
        locked: Locked,
        found: Sequence[VersionedRow],
        kind: str,
        wanted: Mapping[int, NewRow],
        change: Callable[[LedgerRow, NewRow, int], LedgerRow],
    ) -> Commit:
        """Write other content of locked rows. Raises LedgerRefused."""

        def move(new: NewRow) -> Move:
            return lambda row, entry: change(row, new, entry)

        moves = [(each, move(wanted[each.row.number])) for each in found]
        done = self._entered(transaction, locked, kind, moves, {})
        if not done.rows:
            return done
        before = {each.row.number: each.row.reference for each in found}
        into = _rows.copying(rows_table(self.batch.batch), frozen=False)
        await transaction.copy(into, _rows.CONTENT_TYPES, _new_content(done, before))
        return done

    def noted(
        self, transaction: Transaction, locked: Locked, kind: str, rows: int, chunks: Collection[int]
    ) -> Entered:
        """Add an entry for the batch: an operator's command changed so many rows of these chunks."""
        for statement in reopening(self.batch.batch, chunks):
            transaction.write(statement)
        text = f'{{"rows":{rows}}}'
        return _noted(transaction, self.batch, locked, self.clock, kind, text)

    async def doubt(self, chunk: Chunk) -> Commit:
        """Count the lost intents of a chunk's rows that are in flight or in doubt."""

        async def work(transaction: Transaction) -> Commit:
            reading = _rows.reading(self.batch.batch, _DOUBTFUL, [chunk.first, chunk.last])
            locked, found = await self._locked(transaction, {chunk.number}, reading)

            def move(row: LedgerRow, entry: int) -> LedgerRow:
                return transitions.perhaps_resent(row, locked.losses, entry) or row

            return self._entered(transaction, locked, "recover", [(each, move) for each in found], {})

        return await self._commit(work)

    async def cancel_new(self, chunk: Chunk) -> Commit:
        """Cancel all new rows of a chunk. Raises LedgerRefused while it is not known what was lost."""

        async def work(transaction: Transaction) -> Commit:
            reading = _rows.reading(self.batch.batch, _NEW, [chunk.first, chunk.last])
            locked, found = await self._locked(transaction, {WHOLE, chunk.number}, reading)
            self.require_proven(locked)
            done = self.cancelled(transaction, locked, found)
            whole = self.noted(transaction, locked, "cancel", len(done.rows), {chunk.number})
            return attrs.evolve(done, entered=(*done.entered, whole))

        return await self._commit(work)

    # The parts of a commit

    async def _commit(self, work: Callable[[Transaction], Awaitable[Commit]]) -> Commit:
        last: list[Commit] = []

        async def run(transaction: Transaction) -> Commit:
            last[:] = [await work(transaction)]
            return last[0]

        async def committed(transaction: Transaction) -> bool:
            return await _chunks.is_stored(transaction, self.batch.batch, last[0].entered)

        with undamaged(self.path):
            done = await self.judged(lambda: self.database.commit(run, committed))
        self.heads.keep(done.entered, losses=done.losses, connection=done.connection)
        return done

    async def judged(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do work. When the batch's store has changed, find out first whether commits are lost."""
        runtime, began = self.database.runtime, self.database.runtime.monotonic()
        while True:
            try:
                return await work()
            except StoreChanged:
                pass
            if runtime.monotonic() > began + self.database.patience:
                raise LedgerUnavailable(self.path, "the connection is lost again and again")
            await judge(self.database, self.batch, self.clock, self.heads)

    def require_store(self, locked: Locked) -> None:
        """Raise StoreChanged unless the batch's last commit, and this process's, went to this store."""
        if not locked.is_here or self.heads.are_unchecked(self.database):
            raise StoreChanged

    def require_proven(self, locked: Locked) -> None:
        """Raise LedgerRefused if rows may have been sent of which the ledger does not know."""
        if locked.is_unproven:
            raise LedgerRefused(self.path, None, UNPROVEN)

    async def _locked(
        self, transaction: Transaction, chunks: Collection[int], reading: Statement
    ) -> tuple[Locked, list[VersionedRow]]:
        """Lock chunks, then read rows of them."""
        locking = _chunks.locking(self.batch.batch, chunks)
        found, rows = await transaction.read(locking, reading)
        locked = Locked.of(found)
        self.require_store(locked)
        return locked, _rows.stored(rows)

    async def _wanted(
        self, transaction: Transaction, numbers: Collection[int], also: Collection[int] = ()
    ) -> tuple[Locked, list[VersionedRow]]:
        """Lock the chunks of these rows, and read the rows. Raises LedgerRefused when one is not there."""
        chunks = {*self.batch.chunks_of(numbers), *also}
        if not chunks:
            return Locked(0.0, BatchState.OPEN, None, {}), []
        locked, found = await self._locked(transaction, chunks, _rows.numbered(self.batch.batch, numbers))
        self.require_all(numbers, found)
        return locked, found

    def require_all(self, numbers: Iterable[int], found: Iterable[VersionedRow]) -> None:
        """Raise LedgerRefused when a row is not there."""
        there = {each.row.number for each in found}
        for number in numbers:
            if number not in there:
                raise LedgerRefused(self.path, number, "is not there")

    def _require_lease(self, locked: Locked, leases: Mapping[int, bytes | None]) -> None:
        """Raise LeaseLost unless all of these are the chunks' leases, and the batch may be sent."""
        for number, chunk in locked.chunks.items():
            block = _leases.intent_block(chunk.lease, leases[number], BatchState(locked.state))
            if block is IntentBlock.STOPPED:
                why = f": {locked.reason}" if locked.reason else ""
                raise LeaseLost(self.path, f"the batch is {locked.state}{why}")
            if block is IntentBlock.LOST:
                raise LeaseLost(
                    self.path, f"the lease of chunk {number} is another worker's by now, or ended"
                )

    def moment(self, locked: Locked) -> Timestamps:
        """The time of a commit: by the database's clock, and by this process's others."""
        return attrs.evolve(self.clock(), wall=locked.wall)

    def _entered(
        self,
        transaction: Transaction,
        locked: Locked,
        kind: str,
        moves: Iterable[tuple[VersionedRow, Move]],
        leases: Mapping[int, bytes | None],
    ) -> Commit:
        """Move rows, and write them with an entry for each of their chunks."""
        at, changes = self.moment(locked), dict[int, list[Change]]()
        for each, move in moves:
            chunk = locked.chunks[self.batch.chunk_of(each.row.number)]
            after = self._moved(each.row, move, chunk)
            if after is not each.row:
                changes.setdefault(chunk.number, []).append((each, after))
        entered = tuple(
            _chunks.changed(self.batch, locked.chunks[chunk], kind, at, of_chunk, leases.get(chunk))
            for chunk, of_chunk in changes.items()
        )
        if entered:
            _chunks.write(transaction, self.batch, entered)
        rows = tuple(row.row for each in entered for row in each.rows)
        figures = {number: chunk.figures for number, chunk in locked.chunks.items()}
        figures.update((each.chunk.number, each.chunk.figures) for each in entered)
        return Commit(at, rows, entered, figures, locked.losses, self.database.connections)

    def _moved(self, row: LedgerRow, move: Move, chunk: Chunk) -> LedgerRow:
        try:
            return move(row, chunk.entries + 1)
        except (IllegalTransition, transitions.TransitionRefused) as error:
            reason = str(error)
        raise LedgerRefused(self.path, row.number, reason)

    def cancelled(self, transaction: Transaction, locked: Locked, found: Iterable[VersionedRow]) -> Commit:
        """Cancel locked rows. Raises LedgerRefused."""
        moves = [(each, transitions.cancelled) for each in found]
        return self._entered(transaction, locked, "cancel", moves, {})


def _doubted(row: LedgerRow, locked: Locked) -> LedgerRow:
    return transitions.doubted(row, locked.losses, proven=not locked.is_unproven)


def _claiming(locked: Locked) -> Move:
    return lambda row, entry: transitions.claimed(_doubted(row, locked), entry)


def _with_outcomes(row: LedgerRow, outcomes: Iterable[RowOutcome], locked: Locked, entry: int) -> LedgerRow:
    before = known = _doubted(row, locked)
    for outcome in outcomes:
        known = transitions.recorded(known, outcome, entry) or known
    return row if known is before else known


def _new_content(done: Commit, references: Mapping[int, str]) -> Iterator[tuple[Any, ...]]:
    """The content of replaced rows. A new reference must be nobody else's."""
    for each in done.entered:
        for row in each.rows:
            new = row.row.reference
            hashed = None if new == references[row.row.number] else _rows.name_hash(new)
            yield _rows.content(row.row, row.version, hashed)
