"""One batch in a database, for reading, edits and outcomes. Rows are sent under leases (`leased_chunks`)."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable
from typing import Self

from ..._protocol.clocks import Timestamps
from ..._protocol.machines import BatchState, LossState, Standbys
from ..._protocol.outcomes import UNFINISHED, Outcome
from ..._protocol.records import Binding, CheckReport, Claim, Header, NewRow, Resend, RowFigures
from ..._protocol.stop_rules import StopRules
from ...ledger_errors import (
    BatchExists,
    InputPaidElsewhere,
    LeaseLost,
    LedgerClosed,
    LedgerMissing,
    LedgerOfAnotherBatch,
    LedgerRefused,
)
from ..check import checked
from ..chunks import BATCH_CHUNK, LockedChunks, locking_chunks, read_chunks
from ..commits import Commit
from ..ledger import Ledger
from ..operators import ListedWorker, Role
from ..statements import Statement
from ..stored_rows import undamaged
from ..tables import FIGURES
from ..transactions import Transaction
from . import batches, worker_registry
from .batches import SharedFacts, standbys
from .commits import SharedCommitter
from .database import Database
from .failover import LOSSY, UNPROVEN, LastEntries, Recovery, judge
from .importing import SharedLoading, input_lock, same_input
from .schema import dropping
from .setup import require_rights, require_tables

_NO_CHUNK = "no chunk of it is held here: rows are sent by workers"


class PostgresLedger(Ledger):
    """One batch in a database, which any number of processes use at the same time.

    `header` and `totals` are as of the last commit here, or the last `refresh`.
    """

    def __init__(self, database: Database, batch_id: str | None, clock: Callable[[], Timestamps]) -> None:
        """Use `open`."""
        super().__init__(database, clock)
        self.database: Database = database
        self.batch_id: str | None = batch_id
        self._facts: SharedFacts | None
        self._paid_elsewhere: set[str] = set()
        """Batches that were reported to have the same input."""
        self._last_entries = LastEntries()
        self._discarded = False

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

    @property
    def path(self) -> str:
        """The database's address without user and password, and the batch's name."""
        name = "" if self.batch_id is None else f", batch {self.batch_id}"
        return f"{self.database.label}{name}"

    @property
    def facts(self) -> SharedFacts:
        """The batch, as read last. Raises LedgerMissing before the import."""
        if self._discarded:
            raise LedgerClosed(self.path, "was discarded")
        return self._facts or self._refuse_empty()

    @property
    def hold_reason(self) -> str | None:
        """Why no process may send a row now, in words: not planned, paused, suspect. None when they may."""
        return self.facts.hold_reason

    @property
    def stopped(self) -> str | None:
        """Why the stop rules let no further new row be taken; None while they do."""
        return self.facts.stopped

    @property
    def chunks(self) -> int:
        """How many chunks the batch has. Raises LedgerMissing before the import."""
        return self.facts.chunks

    @property
    def unclosed(self) -> str | None:
        """Say why the batch is not closed, and what closes it; None once it is."""
        if self.facts.state is BatchState.CLOSED:
            return None
        state = self.facts.hold_reason or "not closed yet: `payments payouts run` or a worker closes it"
        return super().unclosed or f"it is {state}"

    async def workers(self) -> tuple[ListedWorker, ...]:
        """Read the workers that hold rows of the batch now."""
        name, found = self.header.binding.batch_id, await worker_registry.listed(self.database)
        return tuple(each for each in found if name in each.batches and not each.is_gone)

    def now(self) -> float:
        """Seconds since 1970 on the database's clock, which decides."""
        return self.database.clock.now()

    @property
    def unproven(self) -> str | None:
        """Say that commits were lost, and that no reading of the list has proven yet what; else None."""
        return UNPROVEN if self.facts.is_unproven else None

    async def refresh(self) -> None:
        """Read `header` and `totals` anew, as of one moment: other processes may have changed them."""
        if self.batch_id is None:
            return
        reading = batches.by_id(self.batch_id)

        async def work(transaction: Transaction) -> tuple[SharedFacts | None, dict[int, RowFigures]]:
            (found,) = await transaction.read(reading)
            if not found:
                return None, {}
            facts = batches.require_rows(self.path, batches.facts_of(found[0]))
            (chunks,) = await transaction.read(self._counted(facts.batch.batch))
            return facts, {chunk.number: chunk.figures for chunk in read_chunks(chunks)}

        with undamaged(self.path):
            self._facts, self._figures = await self.database.snapshot(work)
        self._total = None

    def _counted(self, batch: int) -> Statement:
        """Make the statement that reads the chunks that `totals` counts."""
        return self.database.sql.chunks, (batch,)

    @property
    def _is_whole(self) -> bool:
        """False if commits were ever lost: a row may have been sent since the import."""
        return not self.facts.losses

    @property
    def _committer(self) -> SharedCommitter:
        return SharedCommitter(
            database=self.database,
            batch=self.facts.batch,
            path=self.path,
            clock=self._clock,
            took=self._took,
            in_flight=self._in_flight,
            last_entries=self._last_entries,
        )

    def _took(self, commit: Commit) -> None:
        """Keep what a commit has changed, even when its caller is gone."""
        super()._took(commit)
        if commit.writes:
            self._last_entries.keep(commit.writes, losses=commit.losses, connection=self.database.connections)

    # The batch as a whole

    async def import_rows(self, binding: Binding, rows: AsyncIterable[NewRow]) -> Header:
        """Import all rows; then the batch can be planned.

        Raises BatchExists also for another process's batch, which is then the one of this ledger, and
        InputPaidElsewhere when another process has just imported the same rows as another batch.
        """
        if self.batch_id not in (None, binding.batch_id):
            raise LedgerOfAnotherBatch(self.path, recorded=str(self.batch_id), given=binding.batch_id)
        if not self.is_empty:
            raise BatchExists(self.path)
        named, at, self.batch_id = self.batch_id, self._clock(), binding.batch_id
        number = int.from_bytes(self.database.runtime.token(8)) >> 1
        elsewhere = frozenset(self._paid_elsewhere)
        loading = SharedLoading(number, self.path, binding, paid_elsewhere=elsewhere)

        async def work(transaction: Transaction) -> None:
            await loading.load(transaction, rows, at)

        async def committed(transaction: Transaction) -> bool:
            found = "SELECT 1 FROM payments.batches WHERE batch = %s"
            transaction.lock(input_lock(binding))
            return bool((await transaction.read((found, (number,))))[0])

        try:
            await self.database.once(work, committed, may_repeat=lambda: not loading.blocks)
        finally:
            await self.refresh()  # after BatchExists too: another process has imported it
            if self._facts is None:
                self.batch_id = named  # another input may follow
        return self.header

    async def paid_elsewhere(self, binding: Binding) -> InputPaidElsewhere | None:
        """Find the same input as another batch of the database. `import_rows` raises for later ones."""
        (found,) = await self.database.read(same_input(binding))
        self._paid_elsewhere.update(batch_id for batch_id, _ in found)
        for batch_id, is_forgotten in found:
            return InputPaidElsewhere(self.path, batch_id=batch_id, is_forgotten=is_forgotten)
        return None

    async def keep_certificate(self, text: str) -> None:
        """Keep the batch's latest certificate: `forget` asks whether it is settled."""
        batch = self.facts.batch.batch
        await self.database.read(
            ("UPDATE payments.batches SET certificate = %s WHERE batch = %s", (text, batch))
        )

    async def kept_certificate(self) -> str | None:
        """Read the batch's latest certificate, as JSON text; None for none."""
        reading = "SELECT certificate FROM payments.batches WHERE batch = %s"
        (((text,),),) = await self.database.read((reading, (self.facts.batch.batch,)))
        return None if text is None else str(text)

    async def discard(self) -> None:
        """Remove the batch. Raises LedgerRefused when a row was ever claimed or cancelled."""
        if self._discarded:
            return
        facts, chunks = self.facts, [BATCH_CHUNK, *self._figures]
        used = self._on_rows(self._sql.used)

        async def work(transaction: Transaction) -> None:
            lock = locking_chunks(transaction, facts.batch.batch, chunks)
            rows, found = await transaction.read(lock, used)
            locked = LockedChunks.of(rows)
            self._committer.require_store(locked)
            if found or locked.losses:
                why = "its rows were sent or cancelled: it is the record of that"
                raise LedgerRefused(self.path, None, why)
            for name in (*FIGURES, "chunks", "batches"):
                transaction.write((f"DELETE FROM payments.{name} WHERE batch = %s", (facts.batch.batch,)))
            transaction.write((dropping(facts.batch.batch), ()))

        async def committed(transaction: Transaction) -> bool:
            lock = locking_chunks(transaction, facts.batch.batch, chunks)
            return not (await transaction.read(lock, batches.by_id(facts.batch.batch_id)))[1]

        with undamaged(self.path):
            await self._committer.judged(lambda: self.database.once(work, committed, may_repeat=lambda: True))
        self._discarded = True

    async def check(self, on_line: Callable[[str], object] = bool) -> CheckReport:
        """Check all of the batch, chunk by chunk. What is wrong is in `.findings`.

        `on_line` gets a line of JSON for each chunk; the report's head is the SHA-256 of all lines.
        """
        return await checked(self.database, self.facts.batch.batch_id, on_line)

    async def plan(self, rules: StopRules, *, lossy_standby: bool = False) -> None:
        """Set the stop rules of the whole batch. Before the first time no process takes one of its rows.

        `lossy_standby`: accept, once for the batch, a standby that may lose the last commits. Raises
        LedgerRefused for a live batch with such a standby that was not accepted.
        """
        found, facts = await standbys(self.database), self.facts
        accepts = lossy_standby or facts.accepts_loss
        is_live = facts.header.binding.environment == "live"
        if found is Standbys.ASYNCHRONOUS and is_live and not accepts:
            raise LedgerRefused(self.path, None, LOSSY)
        accepting = batches.accepting(facts.batch, accepts=accepts)
        await batches.plan(self.database, facts.batch, self._clock, rules, accepting)

    async def pause(self, reason: str) -> None:
        """Let no process begin to send a row, effective within 5 seconds (`batches.pause`)."""
        await batches.pause(self.database, self.facts.batch, self._clock, reason)
        await self.refresh()

    async def resume(self) -> None:
        """End a pause. Does nothing without one. Raises LedgerRefused for a suspect batch."""
        await batches.resume(self.database, self.facts.batch, self._clock)
        await self.refresh()

    async def cancel_rest(self) -> None:
        """Cancel every row that is still new, while other processes may be sending others.

        Raises LedgerRefused while it is not known which commits were lost.
        """
        for chunk in (each for each in await self._chunks() if each.figures.count(Outcome.NOT_STARTED)):
            await self._committer.cancel_new(chunk)
        await self.refresh()

    # Lost commits

    async def begin_recovery(self, *, by_hand: bool) -> LossState | None:
        """Begin or go on with a recovery; None when no commits were lost.

        `by_hand`: commits were lost, even though nothing shows it.
        """
        await judge(self.database, self.facts.batch, self._clock, self._last_entries)
        recovery = Recovery(self.database, self.facts.batch, self._clock)
        with undamaged(self.path):
            return await recovery.begin(by_hand=by_hand)

    async def end_recovery(self, state: LossState, *, confirmed: bool, proven: bool) -> None:
        """Record what a recovery has found.

        Args:
            state: what `begin_recovery` returned.
            confirmed: the operator says that no command is missing: rows may be sent again.
            proven: a whole reading of the list has shown what was lost, and that no more can be.

        Raises LedgerUnavailable when more commits were lost meanwhile.
        """
        for chunk in (each for each in await self._chunks() if each.figures.count(*UNFINISHED)):
            await self._committer.doubt(chunk)
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
