"""The ledger of a batch in a SQLite file, on the disk before anything is sent.

    async with await SqliteLedger.open("may.ledger", clock=clock, create=True) as ledger:
        await ledger.import_rows(binding, rows)

One process has the file, so the state after the last commit is kept in memory. Every commit is synced to the
disk.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from functools import partial

import attrs
from aiosqlite import Connection

from .... import __version__
from ...ledger_errors import BatchExists, LedgerRefused
from ...protocol import transitions
from ...protocol.clocks import Timestamps
from ...protocol.records import Binding, Claim, ExtraTotals, Header, LedgerRow, NewRow, Resend, RowOutcome
from ...protocol.row_state import OPEN
from ...protocol.run_figures import RunFigures, RunSeries
from ..ledger import Edits
from . import journal, run_figures
from . import rows as _store
from .connection import Purpose
from .edits import SqliteEdits, moves, wanted_rows
from .importing import load
from .journal import Change, LedgerState, Plan
from .lock import HighWater
from .reader import LedgerReader


class SqliteLedger(LedgerReader):
    """One batch's ledger, open and locked."""

    async def import_rows(self, binding: Binding, rows: AsyncIterable[NewRow]) -> Header:
        """Import all rows in one transaction, in rising order of their numbers; then the batch can begin.

        Raises LedgerDuplicates naming rows that share a key or a reference, and whatever `rows` raises.
        Nothing is imported then. A cancelled import is rolled back and the ledger unusable
        until it is opened again.
        """
        if not self.is_empty:
            raise BatchExists(self.path)
        at = self._clock()

        async def work(db: Connection) -> None:
            state = await load(db, self.path, binding, rows, at=at, client_version=__version__)
            self._after_commit(state)

        await self._handle.transact(work, Purpose.IMPORT)
        await self._handle.in_write_ahead_log()
        return self.header

    async def rebind(self, binding: Binding) -> None:
        """Record that the ledger now belongs to another key or input file. The batch stays the same."""
        self.require(binding, other_key=True, other_input=True)
        await self._describe(attrs.evolve(self.header, binding=binding))

    async def note_extra(self, extra: ExtraTotals) -> None:
        """Record the extra payouts that a whole reading of the list has shown."""
        await self._describe(attrs.evolve(self.header, extra=extra))

    async def _describe(self, header: Header) -> None:
        at = self._clock()

        async def work(db: Connection) -> None:
            self._after_commit(await journal.describe(db, self._current, at, header))

        await self._handle.transact(work, Purpose.OUTCOME)

    async def discard(self) -> None:
        """Remove the file once it is closed. Raises LedgerRefused when a row was ever claimed for sending."""
        if await self._found(_store.USED):
            raise LedgerRefused(self.path, None, "its rows were sent or cancelled: it is the record of that")
        self._handle.remove_when_closed()
        self._discarded = True

    async def edit(self, work: Callable[[Edits], Awaitable[None]], *, dry: bool = False) -> None:
        """Carry out edits as one transaction: all of them, or none. `dry`: `work` only reads.

        A cancelled edit is rolled back and the ledger unusable until it is opened again.
        """
        at = self._clock()

        async def edited(db: Connection) -> None:
            edits = SqliteEdits(self._current, db, self.path, at)
            await work(edits)
            self._after_commit(edits.state)

        await self._handle.transact(edited, Purpose.READ if dry else Purpose.IMPORT)

    async def claim(self, limit: int) -> Claim:
        """Mark up to `limit` NEW rows IN_FLIGHT. Returned only once the intent is on the disk.

        Raises LedgerFull or LedgerGone when the intent, or later its outcome, cannot be recorded.
        """

        async def plan(db: Connection, entry: int) -> list[Change]:
            found = await _store.unclaimed(db, limit)
            return [(stored, transitions.claimed(stored.row, entry)) for stored in found]

        return await self._intend("claim", plan)

    async def resend(self, resends: Iterable[Resend]) -> Claim:
        """Record intents to post unfinished rows again, without decided ones; on the disk when it returns."""
        wanted = {resend.number: resend for resend in resends}

        async def plan(db: Connection, entry: int) -> list[Change]:
            found = await wanted_rows(db, self.path, wanted)
            return [
                (each, transitions.resent(each.row, wanted[each.row.number], entry))
                for each in found
                if each.row.state in OPEN
            ]

        return await self._intend("resend", plan)

    async def _intend(self, kind: str, plan: Plan) -> Claim:
        at = self._clock()
        return Claim(await self._commit(kind, plan, Purpose.INTENT, at), at)

    async def record(self, outcomes: Iterable[RowOutcome]) -> tuple[LedgerRow, ...]:
        """Record outcomes, all in one commit. Returns the changed rows.

        An outcome that knows less than the ledger changes nothing. On a full disk the reserve is freed first;
        LedgerFull means that these outcomes are not recorded and must be kept elsewhere.
        """
        learned = list(outcomes)

        async def plan(db: Connection, entry: int) -> list[Change]:
            found = await wanted_rows(db, self.path, {outcome.number for outcome in learned})
            after = {each.row.number: each.row for each in found}
            for outcome in learned:
                row = after[outcome.number]
                after[outcome.number] = transitions.recorded(row, outcome, entry) or row
            pairs = [(each, after[each.row.number]) for each in found]
            return [(each, row) for each, row in pairs if row is not each.row]

        changed = await self._commit("record", plan, Purpose.OUTCOME)
        await self._store(self.recorder.due(self._clock().wall))
        return changed

    async def _store_figures(self, figures: RunFigures) -> None:
        async def work(db: Connection) -> None:
            await run_figures.save(db, figures)
            series = self._series
            stored = await run_figures.series(db) if series is None else series + figures.series
            self._after_commit(self._current, stored)

        await self._handle.transact(work, Purpose.FIGURES)

    async def correct(self, replacements: Iterable[NewRow]) -> tuple[LedgerRow, ...]:
        """Give rejected rows (or new ones) another body: same reference, new key; they are NEW again.

        Raises LedgerRefused, and changes nothing, when a row is in another state or the reference differs.
        """
        return await self._replace("correct", replacements, transitions.corrected)

    async def next_generation(self, replacements: Iterable[NewRow]) -> tuple[LedgerRow, ...]:
        """Make rows new whose payout has finally failed (`final` is recorded): new references.

        The caller has just confirmed with the service that each has failed. Raises LedgerRefused,
        and changes nothing, when a row is in another state or its reference is not a new one.
        """
        return await self._replace("retry", replacements, transitions.retried)

    async def adopt(self, payouts: Iterable[tuple[NewRow, RowOutcome]]) -> tuple[LedgerRow, ...]:
        """Make good lost retries: each row's later generation, and its outcome. Raises LedgerRefused."""
        found = list(payouts)
        await self._replace("recover", [new for new, _ in found], transitions.adopted)
        return await self.record(outcome for _, outcome in found)

    async def _replace(
        self, kind: str, replacements: Iterable[NewRow], move: Callable[[LedgerRow, NewRow, int], LedgerRow]
    ) -> tuple[LedgerRow, ...]:
        wanted = {new.number: new for new in replacements}
        return await self._commit(kind, moves(self.path, wanted, move), Purpose.OUTCOME)

    async def _commit(
        self,
        kind: str,
        plan: Plan,
        purpose: Purpose,
        at: Timestamps | None = None,
    ) -> tuple[LedgerRow, ...]:
        moment = at or self._clock()

        async def work(db: Connection) -> tuple[LedgerRow, ...]:
            state, rows = await journal.commit(db, self._current, kind, moment, plan)
            self._after_commit(state)
            return rows

        return await self._handle.transact(work, purpose)

    def _after_commit(self, state: LedgerState, series: RunSeries | None = None) -> None:
        self._handle.after = partial(self._set_state, state, series)

    def _set_state(self, state: LedgerState, series: RunSeries | None) -> None:
        self._series = series or self._series
        self._state, head = state, state.head
        self._handle.lock.note(HighWater(state.header.binding.batch_id, head.number, head.hash.hex()))
