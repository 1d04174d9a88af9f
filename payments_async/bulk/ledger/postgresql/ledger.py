"""One batch in a database, for reading, edits and outcomes. Rows are sent under leases (`leased`)."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from typing import Self

from ...ledger_errors import (
    BatchExists,
    InputPaidElsewhere,
    LeaseLost,
    LedgerClosed,
    LedgerMissing,
    LedgerOfAnotherBatch,
    LedgerRefused,
)
from ...protocol import transitions
from ...protocol.attempts import RowAttempts
from ...protocol.clocks import Timestamps
from ...protocol.records import (
    Awaited,
    Binding,
    CheckReport,
    Claim,
    ExtraTotals,
    Header,
    IntentTimes,
    LedgerRow,
    NewRow,
    Resend,
    RowOutcome,
    RowTotals,
)
from ...protocol.recovery import LossState, Standbys
from ...protocol.row_state import UNFINISHED, RowState
from ...protocol.run_figures import RunFigures, RunSeries
from ...protocol.stop_rules import StopRules
from ..ledger import Edits, SharedLedger
from ..operators import ListedWorker, Role
from ..run_recorder import RunRecorder
from . import batches, run_figures
from . import chunks as _chunks
from .batches import BatchFacts
from .check import checked
from .chunks import WHOLE, Locked
from .commits import Commit, Committer
from .driver.database import Database, Transaction
from .edits import PostgresEdits
from .failover import LOSSY, UNPROVEN, Heads, judge
from .figures import RowFigures, added_up
from .importing import Loading, one_input, same_input
from .leasing import workers
from .reader import RowReader
from .recovering import Recovery
from .rows import undamaged
from .schema import FIGURES_TABLES, rows_table, states_table
from .setup import require_rights, require_tables
from .standbys import standbys

_NO_CHUNK = "no chunk of it is held here: rows are sent by workers"


class PostgresLedger(SharedLedger):
    """One batch in a database."""

    def __init__(self, database: Database, batch_id: str | None, clock: Callable[[], Timestamps]) -> None:
        """Use `open`."""
        self.database: Database = database
        self.batch_id: str | None = batch_id
        self._clock = clock
        self._facts: BatchFacts | None = None
        self._figures: dict[int, RowFigures] = {}
        self._total: RowFigures | None = None
        self._paid_elsewhere: set[str] = set()
        """Batches that were reported to have the same input."""
        self._discarded = False
        self._heads = Heads()
        self.recorder: RunRecorder = RunRecorder()
        self._series = run_figures.StoredSeries()

    @classmethod
    async def open(
        cls,
        database: Database,
        batch_id: str | None,
        *,
        clock: Callable[[], Timestamps],
        create: bool = False,
        must_exist: bool = True,
    ) -> Self:
        """Open a batch by its name. The ledger closes the database.

        Args:
            database: a connection.
            batch_id: the batch's name; None for one that gets its name with its import.
            clock: the time on this process's clocks; its `session` names this run.
            create: make the tables when there are none.
            must_exist: refuse a batch that is not there; otherwise the ledger is empty until the import.

        Raises LedgerMissing, LedgerNewer, LedgerOlder or RightsMissing.
        """
        ledger = cls(database, batch_id, clock)
        await require_tables(database, create=create)
        await ledger.refresh()
        if ledger.is_empty and must_exist:
            raise LedgerMissing(ledger.path, "there is no such batch")
        if create:
            await require_rights(database, Role.PLANNER if ledger.is_empty else Role.WORKER)
        return ledger

    async def close(self) -> None:
        """Wait for a running commit and disconnect. A second call does nothing."""
        await self.database.close()

    @property
    def path(self) -> str:
        """The database's address without user and password, and the batch's name."""
        name = "" if self.batch_id is None else f", batch {self.batch_id}"
        return f"{self.database.label}{name}"

    @property
    def is_empty(self) -> bool:
        """True if nothing was imported yet."""
        return self._facts is None

    @property
    def facts(self) -> BatchFacts:
        """The batch, as read last. Raises LedgerMissing before the import."""
        if self._discarded:
            raise LedgerClosed(self.path, "was discarded")
        if self._facts is None:
            raise LedgerMissing(self.path, "holds no batch yet: `load` comes first")
        return self._facts

    @property
    def header(self) -> Header:
        """The ledger's facts about its batch. Raises LedgerMissing before the import."""
        return self.facts.header

    @property
    def totals(self) -> RowTotals:
        """Rows and sums by outcome and currency. Raises LedgerMissing before the import."""
        self.facts  # noqa: B018 - raises before the import
        if self._total is None:
            self._total = added_up(self._figures.values())
        return self._total.totals

    @property
    def hold_reason(self) -> str | None:
        """Why no process may send a row now, in words; None when they may."""
        return self.facts.hold_reason

    @property
    def stopped(self) -> str | None:
        """Why the stop rules let no further new row be taken; None while they do."""
        return self.facts.stopped

    @property
    def chunks(self) -> int:
        """How many chunks the batch has. Raises LedgerMissing before the import."""
        return self.facts.chunks

    async def workers(self) -> tuple[ListedWorker, ...]:
        """Read the workers that hold rows of the batch now."""
        name, found = self.header.binding.batch_id, await workers.listed(self.database)
        return tuple(each for each in found if name in each.batches and not each.is_gone)

    def now(self) -> float:
        """Seconds since 1970 on the database's clock, which decides."""
        return self.database.clock.now()

    @property
    def unproven(self) -> str | None:
        """Say that commits were lost, and that no reading of the list has proven yet what; else None."""
        return UNPROVEN if self.facts.is_unproven else None

    async def refresh(self) -> None:
        """Read `header` and `totals` anew, as other processes may have changed them."""
        if self.batch_id is None:
            return
        (found,) = await self.database.read(batches.by_id(self.batch_id))
        with undamaged(self.path):
            self._facts = batches.facts_of(found[0]) if found else None
        if self._facts is not None:
            self._figures = await self._all_figures()
            self._total = None

    async def _all_figures(self) -> dict[int, RowFigures]:
        return {chunk.number: chunk.figures for chunk in await self._reader.chunks()}

    @property
    def _reader(self) -> RowReader:
        return RowReader(self.database, self.facts.batch, self.path, is_whole=not self.facts.losses)

    @property
    def _committer(self) -> Committer:
        return Committer(self.database, self.facts.batch, self.path, self._clock, self._heads)

    def _took(self, commit: Commit) -> tuple[LedgerRow, ...]:
        """Keep the figures of changed chunks. Returns the changed rows."""
        self._keep(commit.figures)
        return commit.rows

    def _keep(self, figures: Mapping[int, RowFigures]) -> None:
        """Take the figures of this ledger's chunks from those of any."""
        self._figures.update((chunk, figures[chunk]) for chunk in figures.keys() & self._figures.keys())
        self._total = None

    # The batch as a whole

    async def import_rows(self, binding: Binding, rows: AsyncIterable[NewRow]) -> Header:
        """Import all rows in one transaction, in rising order of their numbers; then it can be planned.

        Raises BatchExists when there is a batch already, perhaps another process's, which is then the one of
        this ledger; InputPaidElsewhere when another process has just imported the same rows as another
        batch; LedgerDuplicates; and whatever `rows` raises. Nothing is imported then, nor when cancelled
        before the commit.
        """
        if self.batch_id not in (None, binding.batch_id):
            raise LedgerOfAnotherBatch(self.path, recorded=str(self.batch_id), given=binding.batch_id)
        if not self.is_empty:
            raise BatchExists(self.path)
        at, self.batch_id = self._clock(), binding.batch_id
        number = int.from_bytes(self.database.runtime.token(8)) >> 1
        loading = Loading(number, self.path, binding, frozenset(self._paid_elsewhere))

        async def work(transaction: Transaction) -> Header:
            return await loading.load(transaction, rows, at)

        async def committed(transaction: Transaction) -> bool:
            found = "SELECT 1 FROM payments.batches WHERE batch = %s"
            return bool((await transaction.read(one_input(binding), (found, (number,))))[1])

        try:
            await self.database.once(work, committed, may_repeat=lambda: not loading.blocks)
        finally:
            await self.refresh()  # after BatchExists too: another process has imported it
        return self.header

    async def paid_elsewhere(self, binding: Binding) -> InputPaidElsewhere | None:
        """Find the same input as another batch of the database. `import_rows` raises for later ones."""
        (found,) = await self.database.read(same_input(binding))
        self._paid_elsewhere.update(batch_id for (batch_id,) in found)
        return InputPaidElsewhere(self.path, batch_id=found[0][0]) if found else None

    async def rebind(self, binding: Binding) -> None:
        """Record that the ledger now belongs to another key or input. The batch stays the same."""
        self.require(binding, other_key=True, other_input=True)
        await self.edit(lambda edits: edits.rebind(binding))

    async def note_extra(self, extra: ExtraTotals) -> None:
        """Record the extra payouts that a whole reading of the list has shown."""
        await batches.note_extra(self.database, self.facts.batch, self._clock, extra)
        await self.refresh()

    async def edit(self, work: Callable[[Edits], Awaitable[None]], *, dry: bool = False) -> None:
        """Carry out edits as one transaction: all of them, or none. `dry`: `work` only reads.

        Nobody else changes the batch meanwhile. Workers' intents wait, and their leases may run out.
        """
        chunks = [] if dry else [WHOLE, *self._figures]
        made: list[PostgresEdits] = []

        async def edited(transaction: Transaction) -> None:
            edits = await PostgresEdits.begun(transaction, self._committer, self.facts, chunks)
            made.append(edits)
            await work(edits)
            edits.end()

        async def committed(transaction: Transaction) -> bool:
            return await _chunks.is_stored(transaction, self.facts.batch.batch, made[0].entered.values())

        with undamaged(self.path):
            await self._committer.judged(
                lambda: self.database.once(edited, committed, may_repeat=lambda: not made)
            )
        self._facts = made[0].facts
        self._keep({number: each.chunk.figures for number, each in made[0].entered.items()})

    async def discard(self) -> None:
        """Remove the batch. Raises LedgerRefused when a row was ever claimed or cancelled."""
        if self._discarded:
            return
        facts, chunks = self.facts, [WHOLE, *self._figures]
        tables = [table(facts.batch.batch) for table in (rows_table, states_table)]
        used = f"SELECT 1 FROM {tables[1]} WHERE first_intent IS NOT NULL OR state <> 'NEW' OR generation > 0"

        async def work(transaction: Transaction) -> None:
            lock = _chunks.locking(facts.batch.batch, chunks)
            rows, found = await transaction.read(lock, (f"{used} LIMIT 1", ()))
            locked = Locked.of(rows)
            self._committer.require_store(locked)
            if found or locked.losses:
                why = "its rows were sent or cancelled: it is the record of that"
                raise LedgerRefused(self.path, None, why)
            for name in (*FIGURES_TABLES, "entries", "chunks", "batches"):
                transaction.write((f"DELETE FROM payments.{name} WHERE batch = %s", (facts.batch.batch,)))
            transaction.write((f"DROP TABLE {', '.join(tables)}", ()))

        async def committed(transaction: Transaction) -> bool:
            lock = _chunks.locking(facts.batch.batch, chunks)
            return not (await transaction.read(lock, batches.by_id(facts.batch.batch_id)))[1]

        with undamaged(self.path):
            await self._committer.judged(lambda: self.database.once(work, committed, may_repeat=lambda: True))
        self._discarded = True

    async def check(self, on_line: Callable[[str], object] = bool) -> CheckReport:
        """Check all of the batch, chunk by chunk. What is wrong is in `.findings`."""
        return await checked(self.database, self.facts.batch.batch_id, on_line)

    async def plan(self, rules: StopRules, *, lossy_standby: bool = False) -> None:
        """Set the stop rules of the whole batch. Before the first time no process takes one of its rows.

        Raises LedgerRefused for a live batch with a lossy standby that was not accepted.
        """
        found, facts = await standbys(self.database), self.facts
        accepts = lossy_standby or facts.accepts_loss
        is_live = facts.header.binding.environment == "live"
        if found is Standbys.ASYNCHRONOUS and is_live and not accepts:
            raise LedgerRefused(self.path, None, LOSSY)
        accepting = batches.accepting(facts.batch, accepts=accepts)
        await batches.plan(self.database, facts.batch, self._clock, rules, accepting)
        await self.refresh()

    async def pause(self, reason: str) -> None:
        """Let no process begin to send a row, effective within 5 seconds. A paused batch stays so.

        A suspect one is paused after its recovery; for a closed one this does nothing.
        """
        await batches.pause(self.database, self.facts.batch, self._clock, reason)
        await self.refresh()

    async def resume(self) -> None:
        """End a pause. Does nothing without one. Raises LedgerRefused for a suspect batch."""
        await batches.resume(self.database, self.facts.batch, self._clock)
        await self.refresh()

    async def cancel_rest(self) -> None:
        """Cancel every row that is still new, chunk by chunk. Raises LedgerRefused while commits are lost."""
        for chunk in await self._reader.chunks("AND c.chunk > 0 AND c.unsent > 0"):
            await self._committer.cancel_new(chunk)
        await self.refresh()

    # Lost commits

    async def begin_recovery(self, *, by_hand: bool) -> LossState | None:
        """Begin or go on with a recovery; None when no commits were lost."""
        await judge(self.database, self.facts.batch, self._clock, self._heads)
        recovery = Recovery(self.database, self.facts.batch, self._clock)
        with undamaged(self.path):
            return await recovery.begin(by_hand=by_hand)

    async def adopt(self, payouts: Iterable[tuple[NewRow, RowOutcome]]) -> tuple[LedgerRow, ...]:
        """Make good lost retries: each row's later generation, and its outcome. Raises LedgerRefused."""
        found = list(payouts)
        self._took(
            await self._committer.replace(
                "recover", [new for new, _ in found], transitions.adopted, recovers=True
            )
        )
        return await self.record(outcome for _, outcome in found)

    async def end_recovery(self, state: LossState, *, confirmed: bool, proven: bool) -> None:
        """Record what a recovery has found. Raises LedgerUnavailable when more was lost meanwhile."""
        for chunk in await self._reader.chunks("AND c.in_flight + c.in_doubt > 0"):
            self._took(await self._committer.doubt(chunk))
        recovery = Recovery(self.database, self.facts.batch, self._clock)
        await recovery.end(state, confirmed=confirmed, proven=proven)
        await self.refresh()

    # Rows that are sent

    async def claim(self, limit: int) -> Claim:
        """Raise LeaseLost: rows are claimed under a lease (`LeasedChunks`)."""
        raise LeaseLost(self.path, _NO_CHUNK)

    async def resend(self, resends: Iterable[Resend]) -> Claim:
        """Raise LeaseLost: rows are sent under a lease (`LeasedChunks`)."""
        raise LeaseLost(self.path, _NO_CHUNK)

    async def record(self, outcomes: Iterable[RowOutcome]) -> tuple[LedgerRow, ...]:
        """Record outcomes, all in one commit, whoever holds their rows. Returns the changed rows."""
        changed = self._took(await self._committer.record(outcomes))
        await self._store(self.recorder.due(self.now()))
        return changed

    async def _store_figures(self, figures: RunFigures) -> None:
        await self._committer.save(figures)

    async def correct(self, replacements: Iterable[NewRow]) -> tuple[LedgerRow, ...]:
        """Give rejected rows (or new ones) another body: same reference, new key; they are NEW again."""
        return self._took(await self._committer.replace("correct", replacements, transitions.corrected))

    async def next_generation(self, replacements: Iterable[NewRow]) -> tuple[LedgerRow, ...]:
        """Make rows new whose payout has finally failed (`final` is recorded): new references."""
        return self._took(await self._committer.replace("retry", replacements, transitions.retried))

    # Reading

    async def first(self) -> LedgerRow:
        """Read the row with the lowest number. Raises LedgerMissing before the import."""
        return await self._reader.first()

    async def last(self, state: RowState) -> LedgerRow | None:
        """Read the row with the highest number in a state."""
        return await self._reader.last(state)

    async def numbered(self, numbers: Iterable[int]) -> dict[int, LedgerRow]:
        """Read rows by number: {number: row}, without those that do not exist."""
        return await self._reader.numbered(set(numbers))

    async def by_keys(self, keys: Collection[str]) -> list[LedgerRow]:
        """Read the rows with one of these keys, at most a thousand keys."""
        return await self._reader.by_keys(keys)

    async def by_references(self, references: Iterable[str]) -> list[LedgerRow]:
        """Read the rows with one of these references, at most as many as a page of the list has."""
        return await self._reader.by_references(set(references))

    async def intent_times(self, rows: Iterable[LedgerRow]) -> Mapping[int, IntentTimes]:
        """{row number: times of its intents}, without rows that have none under their present key."""
        return await self._reader.intent_times(rows)

    async def series(self) -> RunSeries:
        """The answers of all runs so far, second by second: of this one until now, of others as stored."""
        stored = RunSeries()
        with self.recorder.reading(), undamaged(self.path):
            stored = await self._series.read(self.database, self.facts.batch.batch, self.now())
        return stored + self.recorder.pending(self.now()).series

    async def attempts(self, numbers: Collection[int]) -> Mapping[int, RowAttempts]:
        """{row number: its attempts}, at most a thousand, without rows that were created at once."""
        stored: Mapping[int, RowAttempts] = {}
        with self.recorder.reading():
            stored = await run_figures.attempts(self.database, self.facts.batch.batch, numbers)
        return self.recorder.added_to(stored, numbers)

    async def rows(self, state: RowState | None = None) -> AsyncIterator[LedgerRow]:
        """Read all rows, or those in a state, in the order of their numbers, a page at a time."""
        async for row in self._reader.rows(state):
            yield row

    async def unfinished(self) -> AsyncIterator[LedgerRow]:
        """Read the rows in flight, then those in doubt."""
        for state in UNFINISHED:
            async for row in self._reader.rows(state):
                yield row

    async def failed(self) -> AsyncIterator[LedgerRow]:
        """Read the CREATED rows whose payouts have failed, as far as the ledger knows."""
        async for row in self._reader.failed():
            yield row

    async def awaited(self) -> Awaited:
        """Count the CREATED rows whose payouts are not final, and find when the first was begun."""
        return await self._reader.awaited()

    async def latest_generation(self) -> int:
        """The highest generation of all rows."""
        return added_up(chunk.figures for chunk in await self._reader.chunks()).generation

    async def latest_command(self) -> int:
        """The number of the last entry that made rows new again: that of the batch's own chain."""
        (whole,) = await self._reader.chunks("AND c.chunk = 0")
        return whole.entries
