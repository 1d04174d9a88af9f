"""A worker's view of the rows of one leased chunk: intents are fenced, outcomes are merged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import attrs

from payments_async.bulk._protocol import row_state, transitions
from payments_async.bulk._protocol.machines import intent_block
from payments_async.bulk._protocol.records import LedgerRow, RowOutcome
from payments_async.bulk._protocol.row_state import RowKnowledge, RowState, merge

from ..ledger import Entry
from ..loop import SimulatedLoop
from .database import Database, State
from .line import Line, Unreachable
from .watch import LEDGER, Lease, Watch

_GIVE_UP = 60.0
"""Seconds for which outcomes are tried to be recorded."""


@attrs.frozen(eq=False)
class _Intent:
    row: str
    base: RowKnowledge
    entry: Entry
    done: asyncio.Future[bool]


@attrs.frozen(eq=False)
class _Outcome:
    row: str
    known: RowKnowledge
    body_hash: str | None


class LeasedRows:
    """What the model engine takes for its ledger."""

    name = LEDGER

    def __init__(
        self,
        loop: SimulatedLoop,
        database: Database,
        line: Line,
        lease: Lease,
        watch: Watch,
        note: Callable[[str], None],
    ) -> None:
        self._loop, self._database, self._line, self.lease = loop, database, line, lease
        self._watch, self._note = watch, note
        self._queue: list[_Intent | _Outcome] = []
        self._committing: asyncio.Task[None] | None = None
        self.rows: dict[str, Entry] = {}
        """What this worker believes of them."""

    @property
    def disk(self) -> LeasedRows:
        """Its own name and lease, for the promises."""
        return self

    def intend(self, row: str, base: RowKnowledge, entry: Entry) -> asyncio.Future[bool] | None:
        """Ask for an intent; the future says whether it is recorded."""
        done: asyncio.Future[bool] = self._loop.create_future()
        self.rows[row] = entry
        self._put(_Intent(row, base, entry, done))
        return done

    def record(self, row: str, known: RowKnowledge) -> RowKnowledge:
        """An outcome; it is committed sooner or later, or given up."""
        entry = self.rows[row]
        merged = merge(entry.known, known)
        self.rows[row] = attrs.evolve(entry, known=merged)
        self._put(_Outcome(row, known, body_hash(entry)))
        return merged

    async def flush(self) -> None:
        """Until nothing waits to be recorded."""
        while self._committing is not None:
            await asyncio.wait([self._committing])

    def _put(self, change: _Intent | _Outcome) -> None:
        self._queue.append(change)
        if self._committing is None:
            self._committing = self._loop.create_task(self._commit())

    async def _commit(self) -> None:
        since = self._loop.time()
        while self._queue:
            changes, self._queue = self._queue, []
            try:
                kept = await self._line.run(self._loop, partial(self._write, changes))
            except Unreachable:
                self._failed(changes, give_up=self._loop.time() - since > _GIVE_UP)
                await asyncio.sleep(1.0)
                continue
            since = self._loop.time()
            self._line.heads.update({self.lease.chunk: kept[1]} if kept[1] else {})
            for change, is_kept in zip(changes, kept[0], strict=True):
                if isinstance(change, _Intent):
                    change.done.set_result(is_kept)
        self._committing = None

    def _failed(self, changes: list[_Intent | _Outcome], *, give_up: bool) -> None:
        """Nothing is sent without its intent; outcomes are tried again."""
        outcomes = [change for change in changes if isinstance(change, _Outcome)]
        for change in changes:
            if isinstance(change, _Intent):
                self._note("intent not recorded: no answer")
                change.done.set_result(False)
        if give_up and outcomes:
            self._note("outcomes never recorded")
        elif outcomes:
            self._queue = [*outcomes, *self._queue]

    # In the database

    def _write(self, changes: list[_Intent | _Outcome]) -> tuple[list[bool], int | None]:
        """One transaction. Which intents are recorded, and the entry that was added."""
        state = before = self._database.state
        kept = list[bool]()
        for change in changes:
            after = (
                self._intended(state, change) if isinstance(change, _Intent) else self._merged(state, change)
            )
            state = after or state
            kept.append(
                after is not None
                and isinstance(change, _Intent)
                and state.rows[change.row].known == change.entry.known
            )
        if state is before:
            return kept, None
        entry = self._database.new_entry()
        self._database.commit(state.with_entry(self.lease.chunk, entry))
        return kept, entry

    def _intended(self, state: State, intent: _Intent) -> State | None:
        block = intent_block(state.chunks[self.lease.chunk].lease, self.lease.id, state.batch)
        if block is not None:
            self._note(f"intent refused: {block.name}")
            return None
        before = state.rows[intent.row]
        known = _intended(state.known(intent.row), intent)
        if known is None or before.body.hash != intent.entry.body.hash:
            self._note("intent refused: the row has changed")
            return None
        if known != intent.entry.known:
            self._note("intent upon more than was known")
        self._watch.intending(self.lease, intent.entry, state)
        self._watch.committing(before, known)
        return state.with_row(intent.row, attrs.evolve(intent.entry, known=known))

    def _merged(self, state: State, outcome: _Outcome) -> State | None:
        entry, before = state.rows[outcome.row], state.known(outcome.row)
        learned = RowOutcome(0, outcome.known, body_hash=outcome.body_hash)
        after = transitions.recorded(as_row(entry, before), learned, 0)
        if not self._watch.is_newest(self.lease):
            self._note("late outcome merged" if after else "late outcome: nothing new")
        if after is None:
            return None
        self._watch.committing(entry, after.known)
        return state.with_row(outcome.row, attrs.evolve(entry, known=after.known))


def _intended(known: RowKnowledge, intent: _Intent) -> RowKnowledge | None:
    """As a ledger intends: upon what it knows itself. None when the row has been decided, or begun anew."""
    asked = intent.entry.known
    again = known.state in (RowState.IN_FLIGHT, RowState.IN_DOUBT)
    same = (known.generation, known.revision) == (asked.generation, asked.revision)
    if not same or not (again or known == intent.base):
        return None
    absent = asked.cleared == intent.base.intents > 0
    return row_state.intend(known, next_epoch=asked.epoch > intent.base.epoch, absent=absent)


def body_hash(entry: Entry) -> str | None:
    """The body that an outcome is about."""
    return entry.body.hash


def as_row(entry: Entry, known: RowKnowledge) -> LedgerRow:
    """A row as the real ledger has it; what the decisions do not ask for is left empty."""
    body = entry.body
    return LedgerRow(*(0, None, body.row, "", body.amount, "XOF", "", b"", body.hash, "", None), known=known)
