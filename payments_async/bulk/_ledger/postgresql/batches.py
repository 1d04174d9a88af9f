"""Batches of a database: their facts, states and stop rules. Needs no right to read rows."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import attrs

from ..._protocol.clocks import Timestamps
from ..._protocol.machines import BatchState, Standbys
from ..._protocol.outcomes import OPEN, as_text, counts_of, outcomes_text
from ..._protocol.records import RowFigures, added_up
from ..._protocol.stop_rules import StopRules
from ...ledger_errors import (
    LedgerDamaged,
    LedgerError,
    LedgerForgotten,
    LedgerMissing,
    LedgerNewer,
    LedgerOlder,
    LedgerRefused,
)
from ..batches import FORM, BatchFacts, batch_of
from ..chunks import (
    BATCH_CHUNK,
    Batch,
    ChunkWrite,
    LockedChunks,
    Root,
    is_stored,
    locking_chunks,
    read_chunks,
    with_entry,
    write_chunks,
)
from ..operators import ForgottenBatch
from ..statements import BATCH_COLUMNS, Rows, Statement
from ..stored_rows import UnreadableRecord, readable, undamaged
from ..transactions import Transaction
from .database import Database
from .dialect import NOTIFY, STANDBYS, locking_all, observing

_READ: Final = f"""
    SELECT b.batch, b.batch_id, b.schema, b.state, b.reason, b.stopped, b.rules, b.keys, b.losses,
        b.lost_in IS NOT NULL, b.lossy_standby, b.closed, b.forgotten,
        CASE b.state WHEN 'forgotten' THEN b.certificate END, {BATCH_COLUMNS}
    FROM payments.batches b
"""
_LIST: Final = f"{_READ} ORDER BY b.created_at DESC"
_BY_ID: Final = f"{_READ} WHERE b.batch_id = %s"


@attrs.frozen(kw_only=True)
class SharedFacts(BatchFacts):
    """A batch of a database, as stored."""

    state: BatchState
    reason: str | None
    """The reason for the state, if it was given."""
    stopped: str | None
    """The reason why the stop rules let no further row be taken; None while they do."""
    rules: StopRules
    keys: tuple[str, ...]
    """Fingerprints of the API keys that were proven to be of the batch's project."""
    losses: int
    """How often it has lost commits."""
    is_unproven: bool
    """True if no reading of the service's list has shown yet what was lost."""
    accepts_loss: bool
    """True if the operator has accepted a standby that may lose the last commits."""
    closing: Mapping[str, Any] | None
    """What its chain says of its last closing, and when that was (`at`)."""
    forgotten: ForgottenBatch | None
    """What is kept of it; None if it has its rows."""
    kept_figures: RowFigures | None
    """The figures of a forgotten batch."""

    @property
    def closed_at(self) -> float:
        """When it was closed last, in seconds since 1970; 0 if it never was."""
        return 0.0 if self.closing is None else float(self.closing["at"])

    @property
    def hold_reason(self) -> str | None:
        """Why no process may send one of its rows now, in words; None when they may."""
        return hold_reason(self.state, self.reason)


def hold_reason(state: str, reason: str | None) -> str | None:
    """Why no row of a batch in this state may be sent, in words; None when they may."""
    if state == BatchState.OPEN:
        return None
    if state == BatchState.IMPORTED:
        return "not planned yet"
    return f"{state}: {reason}" if reason else str(state)


def facts_of(values: Sequence[Any]) -> SharedFacts:
    """Make a batch of the values of a table row. Raises UnreadableRecord, LedgerNewer, LedgerOlder."""
    _, name, form, state, reason, stopped, rules, keys, losses, is_unproven, accepts_loss, *more = values
    closing, forgotten, certificate, *common = more
    if form != FORM:
        raise (LedgerNewer if form > FORM else LedgerOlder)(f"batch {name}", found=form, known=FORM)
    with readable("a batch"):
        kept = None if forgotten is None else json.loads(forgotten)
        return SharedFacts(
            **attrs.asdict(batch_of(*common), recurse=False),
            state=BatchState(state),
            reason=reason,
            stopped=stopped,
            rules=read_rules(rules),
            keys=tuple(keys),
            losses=losses,
            is_unproven=is_unproven,
            accepts_loss=accepts_loss,
            closing=None if closing is None else json.loads(closing),
            forgotten=kept and ForgottenBatch(float(kept["at"]), str(kept["root"]), certificate),
            kept_figures=kept and RowFigures.read(json.dumps(kept["totals"]), kept["generation"]),
        )


def by_id(batch_id: str) -> Statement:
    """Make a statement that reads a batch by the name that the operator gave it."""
    return _BY_ID, (batch_id,)


def rules_text(rules: StopRules) -> str:
    """Format stop rules as JSON text."""
    amount = None if rules.max_amount is None else as_text(rules.max_amount)
    return json.dumps([amount, rules.max_rows, rules.max_failure_rate])


def read_rules(text: str) -> StopRules:
    """Parse what `rules_text` wrote. Raises UnreadableRecord."""
    with readable("the stop rules"):
        amount, rows, rate = json.loads(text)
        return StopRules(None if amount is None else Decimal(amount), rows, rate)


async def found(database: Database, batch_id: str) -> SharedFacts:
    """Read one batch. Raises LedgerMissing, and LedgerError."""
    path = f"{database.label}, batch {batch_id}"
    (rows,) = await database.read(by_id(batch_id))
    return found_as(path, rows)


def found_as(path: str, rows: Rows) -> SharedFacts:
    """Make a batch of what `by_id` has found. Raises LedgerMissing, LedgerForgotten, and LedgerError."""
    if not rows:
        raise LedgerMissing(path, "there is no such batch")
    with undamaged(path):
        return require_rows(path, facts_of(rows[0]))


def require_rows(path: str, facts: SharedFacts) -> SharedFacts:
    """Return a batch that has its rows. Raises LedgerForgotten for one that was forgotten."""
    if facts.forgotten is None or facts.kept_figures is None:
        return facts
    sums = ", ".join(f"{currency} {amount}" for currency, amount in sorted(facts.header.totals.items()))
    known = f"{facts.header.rows:,} rows were asked for, {sums}: "
    known += f"{outcomes_text(counts_of(facts.kept_figures.totals))}; its root is {facts.forgotten.root}"
    at = datetime.fromtimestamp(facts.forgotten.at, UTC)
    raise LedgerForgotten(path, batch_id=facts.batch.batch_id, forgotten_at=at, known=known)


async def standbys(database: Database) -> Standbys:
    """Find out what receives the server's commits. Raises LedgerError."""
    (((found,),),) = await database.read((STANDBYS, ()))
    return Standbys(found)


# Lists


@attrs.frozen
class BatchWithFigures:
    """A batch with its figures."""

    facts: SharedFacts
    figures: RowFigures
    chunks_open: int
    """Chunks with rows that are new, in flight or in doubt."""
    chunks_leased: int
    """Chunks with a lease, or with one that became void and whose holder may not know that yet."""


_FIGURES: Final = (
    "SELECT batch, unsent + in_flight + in_doubt > 0, coalesce(expires > clock_timestamp(), false), "
    "totals, generation FROM payments.chunks WHERE batch = ANY(%b::int8[]) AND chunk > 0"
)


async def listed(
    database: Database,
    batch_id: str | None = None,
    on_unreadable: Callable[[LedgerError], object] | None = None,
) -> list[BatchWithFigures]:
    """List batches as of one moment, newest first; `batch_id`: only that one. Raises LedgerError.

    `on_unreadable` gets the error of a batch that cannot be read, in place of the caller.
    """
    where = (_LIST, ()) if batch_id is None else by_id(batch_id)

    async def work(transaction: Transaction) -> tuple[Rows, Rows]:
        (found,) = await transaction.read(where)
        (figures,) = await transaction.read((_FIGURES, ([batch for batch, *_ in found],)))
        return found, figures

    found, figures = await database.snapshot(work)
    chunks = dict[int, Rows]()
    for batch, *chunk in figures:
        chunks.setdefault(batch, []).append(tuple(chunk))
    listing = []
    for batch, name, *values in found:
        try:
            with undamaged(f"{database.label}, batch {name}"):
                listing.append(_with_figures(facts_of((batch, name, *values)), chunks.get(batch, [])))
        except LedgerError as error:
            if on_unreadable is None:
                raise
            on_unreadable(error)
    return listing


def _with_figures(facts: SharedFacts, chunks: Rows) -> BatchWithFigures:
    with readable("a chunk"):
        figures = added_up(RowFigures.read(totals, generation) for *_, totals, generation in chunks)
    figures = facts.kept_figures or figures
    is_open, is_leased = ([each for each, *_ in chunks], [each for _, each, *_ in chunks])
    return BatchWithFigures(facts, figures, sum(is_open), sum(is_leased))


# Changes: each locks the batch's own chunk and adds an entry to its chain

Clock = Callable[[], Timestamps]
_SET_STATE: Final = "UPDATE payments.batches SET state = %s, reason = %s WHERE batch = %s"
_CLOSE: Final = (
    "UPDATE payments.batches SET state = 'closed', reason = NULL, "
    "closed = (%s::jsonb || jsonb_build_object('at', %s::float8))::text WHERE batch = %s"
)
_RESUME_PAUSED: Final = (
    "UPDATE payments.batches SET resumes_as = 'paused' WHERE batch = %s AND resumes_as <> 'imported'"
)
_SET_RULES: Final = (
    "UPDATE payments.batches SET rules = %s, stopped = NULL, "
    "state = CASE state WHEN 'imported' THEN 'open' ELSE state END WHERE batch = %s"
)
_LOOK_NOW: Final = "UPDATE payments.chunks SET look_at = NULL WHERE batch = %s"
_NO_GRANTS: Final = "UPDATE payments.chunks SET granted_to = 0 WHERE batch = %s AND unsent > 0"
Decide = Callable[[LockedChunks], Sequence[Statement] | None]
"""Decides, given the locked batch, what to change; None for nothing."""


async def plan(database: Database, batch: Batch, clock: Clock, rules: StopRules, *also: Statement) -> None:
    """Set the stop rules. The first time this lets workers begin.

    What was granted is granted anew, and rows in doubt are due for a look at once.
    """
    text = rules_text(rules)
    number = batch.batch
    granted = locking_all(number), (_NO_GRANTS, (number,)), (_LOOK_NOW, (number,))
    statements = (*granted, (_SET_RULES, (text, number)), *also)
    await _change(database, batch, clock, "plan", text, lambda _: statements)


def accepting(batch: Batch, *, accepts: bool) -> Statement:
    """Make the statement that records whether the operator accepts a lossy standby."""
    return "UPDATE payments.batches SET lossy_standby = %s WHERE batch = %s", (accepts, batch.batch)


def stopping(batch: int, reason: str) -> Statement:
    """Make the statement that records why the stop rules let no further new row be taken."""
    return "UPDATE payments.batches SET stopped = %s WHERE batch = %s", (reason, batch)


async def pause(database: Database, batch: Batch, clock: Clock, reason: str) -> None:
    """Let no process begin to send a row. A batch that is not planned, paused already or closed stays so.

    A suspect one stays suspect, and is paused after its recovery. An open one whose chain cannot be read is
    paused without an entry.
    """

    def decide(locked: LockedChunks) -> Sequence[Statement] | None:
        if locked.state == BatchState.SUSPECT:
            return [(_RESUME_PAUSED, (batch.batch,))]
        if locked.state not in (BatchState.OPEN, BatchState.PAUSED):  # not planned: `resume` must not open it
            return None
        return [(_SET_STATE, (BatchState.PAUSED.value, reason, batch.batch))]

    try:
        await _change(database, batch, clock, "pause", json.dumps({"reason": reason}), decide)
    except LedgerDamaged:
        sql = f"{_SET_STATE} AND state = 'open'"
        await database.read((sql, (BatchState.PAUSED.value, reason, batch.batch)))


async def resume(database: Database, batch: Batch, clock: Clock) -> None:
    """End a pause. Does nothing without one. Raises LedgerRefused for a suspect batch."""

    def decide(locked: LockedChunks) -> Sequence[Statement] | None:
        if locked.state == BatchState.SUSPECT:
            raise LedgerRefused(
                f"{database.label}, batch {batch.batch_id}", None, "the batch is suspect: recover it first"
            )
        if locked.state != BatchState.PAUSED:
            return None
        return [(_SET_STATE, (BatchState.OPEN.value, None, batch.batch))]

    await _change(database, batch, clock, "resume", "{}", decide)


async def close(database: Database, batch: Batch, clock: Clock, facts: Mapping[str, object]) -> bool:
    """Close a batch all of whose rows are decided, with the root over its chunks. False when one is not.

    `facts`: what its chain is to keep beside the root.
    """
    done: list[bool] = []

    async def work(transaction: Transaction) -> ChunkWrite | None:
        locking = locking_chunks(transaction, batch.batch, [BATCH_CHUNK])
        found, chunks = await transaction.read(locking, (transaction.sql.chunks, (batch.batch,)))
        locked, root = LockedChunks.of(found), Root()
        done[:] = [locked.state == BatchState.OPEN and locked.is_here]  # else commits may be lost
        for chunk in read_chunks(chunks):
            done[0] = done[0] and not chunk.figures.count(*OPEN)
            root.add(chunk)
        if not done[0]:
            return None
        text = json.dumps({"root": root.hex, **facts})
        transaction.write((_CLOSE, (text, locked.wall, batch.batch)))
        return with_note(transaction, batch, locked, clock, "root", text)

    await commit(database, batch, work)
    return done[0]


def reopening(batch: int, chunks: Iterable[int]) -> tuple[Statement, Statement]:
    """Make statements for rows that an operator changed: their chunks are granted anew."""
    return (
        (
            "UPDATE payments.batches SET stopped = NULL, state = CASE state WHEN 'closed' THEN 'open' "
            "ELSE state END WHERE batch = %s",
            (batch,),
        ),
        (
            "UPDATE payments.chunks SET granted_to = 0 WHERE batch = %s AND chunk = ANY(%b::int4[])",
            (batch, sorted(chunks)),
        ),
    )


def with_note(
    transaction: Transaction, batch: Batch, locked: LockedChunks, clock: Clock, kind: str, text: str
) -> ChunkWrite:
    """Add an entry to the chain of a locked batch, and record the standbys that may lack it."""
    at = attrs.evolve(clock(), wall=locked.wall)
    whole = with_entry(batch, locked.chunks[BATCH_CHUNK], kind, at, text)
    write_chunks(transaction, batch, [whole])
    transaction.write(observing([batch.batch]), NOTIFY)
    return whole


async def _change(
    database: Database, batch: Batch, clock: Clock, kind: str, text: str, decide: Decide
) -> None:
    async def work(transaction: Transaction) -> ChunkWrite | None:
        (found,) = await transaction.read(locking_chunks(transaction, batch.batch, [BATCH_CHUNK]))
        locked = LockedChunks.of(found)
        statements = decide(locked)
        if statements is None:
            return None
        transaction.write(*statements)
        return with_note(transaction, batch, locked, clock, kind, text)

    await commit(database, batch, work)


async def commit_entries(
    database: Database, batch: int, work: Callable[[Transaction], Awaitable[list[ChunkWrite]]]
) -> None:
    """Run work that adds these entries to chains of a batch. Raises LedgerError, UnreadableRecord."""
    last: list[ChunkWrite] = []

    async def run(transaction: Transaction) -> None:
        last[:] = await work(transaction)

    async def committed(transaction: Transaction) -> bool:
        return await is_stored(transaction, batch, last)

    await database.commit(run, committed)


async def commit(
    database: Database, batch: Batch, work: Callable[[Transaction], Awaitable[ChunkWrite | None]]
) -> None:
    """Run work that adds an entry to the batch's chain, or changes nothing. Raises LedgerError."""

    async def run(transaction: Transaction) -> list[ChunkWrite]:
        write = await work(transaction)
        return [] if write is None else [write]

    try:
        await commit_entries(database, batch.batch, run)
        return
    except UnreadableRecord as error:
        finding = str(error)
    except LedgerDamaged as error:
        finding = error.problem
    await found(database, batch.batch_id)  # it may have been discarded or forgotten meanwhile
    raise LedgerDamaged(f"{database.label}, batch {batch.batch_id}", [finding])
