"""Batches of a database: their facts, states and stop rules. Needs no right to read rows."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import attrs

from ...ledger_errors import (
    LedgerDamaged,
    LedgerError,
    LedgerMissing,
    LedgerNewer,
    LedgerOlder,
    LedgerRefused,
)
from ...protocol.clocks import Timestamps
from ...protocol.leases import BatchState
from ...protocol.outcomes import OPEN, ExtraPayout
from ...protocol.records import Binding, ExtraTotals, Header
from ...protocol.stop_rules import StopRules
from ...protocol.totals import as_text, read_totals, totals_text
from ..rows import UnreadableRecord, readable
from . import chunks as _chunks
from .chunks import WHOLE, Batch, Entered, Locked
from .driver import arrays
from .driver.database import Database, Transaction
from .driver.session import Rows, Statement
from .figures import RowFigures, added_up
from .rows import undamaged
from .schema import PROTOCOL
from .standbys import observing

_BINDING: Final = ("batch_id", "environment", "base_url", "key_fingerprint", "input_hash", "input_stat")
_COLUMNS: Final = ", ".join(
    (
        *("b.batch", "b.chunk_size", *(f"b.{name}" for name in _BINDING)),
        *("b.created_at", "b.client_version", "b.schema", "b.rows", "b.totals"),
        *("b.chunks", "b.described_in", "b.state", "b.reason", "b.stopped", "b.rules", "b.keys"),
        *("b.losses", "b.lost_in IS NOT NULL", "b.lossy_standby", "b.extra"),
    )
)
READ: Final = f"SELECT {_COLUMNS} FROM payments.batches b"


@attrs.frozen
class BatchFacts:
    """A batch, as stored."""

    batch: Batch
    header: Header
    chunks: int
    """How many chunks it has, without the one that stands for itself."""
    described_in: int
    """The entry of its own chain that carries the header's facts."""
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


def facts_of(values: Sequence[Any]) -> BatchFacts:
    """Make a batch of the values that `READ` found. Raises UnreadableRecord, LedgerNewer, LedgerOlder."""
    if values[10] != PROTOCOL:
        other = LedgerNewer if values[10] > PROTOCOL else LedgerOlder
        raise other(f"batch {values[2]}", found=values[10], known=PROTOCOL)
    with readable("a batch"):
        binding = Binding(*values[2:8])
        amounts = {currency: Decimal(text) for currency, text in json.loads(values[12]).items()}
        header = Header(*(binding, *values[8:12], amounts, read_totals(values[23], ExtraPayout)))
        state, reason, stopped, rules, keys, *loss = values[15:23]
        return BatchFacts(
            Batch(values[0], binding.batch_id, values[1]),
            header,
            chunks=values[13],
            described_in=values[14],
            state=BatchState(state),
            reason=reason,
            stopped=stopped,
            rules=read_rules(rules),
            keys=tuple(keys),
            losses=loss[0],
            is_unproven=loss[1],
            accepts_loss=loss[2],
        )


def by_id(batch_id: str) -> Statement:
    """Make a statement that reads a batch by the name that the operator gave it."""
    return f"{READ} WHERE b.batch_id = %s", (batch_id,)


def amounts_text(header: Header) -> str:
    """Format a header's sums as JSON text."""
    return json.dumps({currency: as_text(amount) for currency, amount in sorted(header.totals.items())})


def facts_text(header: Header, batch: Batch, chunks: int) -> str:
    """The facts of a batch that an entry records, as JSON text."""
    sums = {"totals": amounts_text(header), "extra": totals_text(header.extra)}
    values = {**attrs.asdict(header), **sums}
    return json.dumps({**values, "chunk_size": batch.chunk_size, "chunks": chunks}, sort_keys=True)


def rules_text(rules: StopRules) -> str:
    """Format stop rules as JSON text."""
    amount = None if rules.max_amount is None else as_text(rules.max_amount)
    return json.dumps([amount, rules.max_rows, rules.max_failure_rate])


def read_rules(text: str) -> StopRules:
    """Parse what `rules_text` wrote. Raises UnreadableRecord."""
    with readable("the stop rules"):
        amount, rows, rate = json.loads(text)
        return StopRules(None if amount is None else Decimal(amount), rows, rate)


async def found(database: Database, batch_id: str) -> BatchFacts:
    """Read one batch. Raises LedgerMissing, and LedgerError."""
    path = f"{database.label}, batch {batch_id}"
    (values,) = await database.read(by_id(batch_id))
    if not values:
        raise LedgerMissing(path, "there is no such batch")
    with undamaged(path):
        return facts_of(values[0])


# Lists


@attrs.frozen
class BatchWithFigures:
    """A batch with its figures."""

    facts: BatchFacts
    figures: RowFigures
    chunks_open: int
    """Chunks with rows that are new, in flight or in doubt."""
    chunks_leased: int
    """Chunks with a lease, or with one that became void and whose holder may not know that yet."""


_FIGURES: Final = (
    "SELECT batch, unsent + in_flight + in_doubt > 0, coalesce(expires > clock_timestamp(), false), "
    "totals, generation FROM payments.chunks WHERE batch = ANY(%s) AND chunk > 0"
)


async def listed(
    database: Database,
    batch_id: str | None = None,
    on_unreadable: Callable[[LedgerError], object] | None = None,
) -> list[BatchWithFigures]:
    """List batches with their figures, newest first; `batch_id`: only that one. Raises LedgerError.

    `on_unreadable` gets the error of a batch that cannot be read, in place of the caller.
    """
    where = (f"{READ} ORDER BY b.created_at DESC", ()) if batch_id is None else by_id(batch_id)
    (found,) = await database.read(where)
    (figures,) = await database.read((_FIGURES, (arrays.int8s([values[0] for values in found]),)))
    chunks = dict[int, list[tuple[Any, ...]]]()
    for each in figures:
        chunks.setdefault(each[0], []).append(each)
    listing = []
    for values in found:
        try:
            listing.append(_listed(database, values, chunks.get(values[0], [])))
        except LedgerError as error:
            if on_unreadable is None:
                raise
            on_unreadable(error)
    return listing


def _listed(database: Database, values: Sequence[Any], chunks: Rows) -> BatchWithFigures:
    with undamaged(f"{database.label}, batch {values[2]}"):
        return _with_figures(facts_of(values), chunks)


def _with_figures(facts: BatchFacts, chunks: Rows) -> BatchWithFigures:
    with readable("a chunk"):
        figures = added_up(RowFigures.read(*each[3:5]) for each in chunks)
    open_, leased = (sum(1 for each in chunks if each[place]) for place in (1, 2))
    return BatchWithFigures(facts, figures, open_, leased)


# Changes: each locks the batch's own chunk and adds an entry to its chain

Clock = Callable[[], Timestamps]
_SET_STATE: Final = "UPDATE payments.batches SET state = %s, reason = %s WHERE batch = %s"
_RESUME_PAUSED: Final = (
    "UPDATE payments.batches SET resumes_as = 'paused' WHERE batch = %s AND resumes_as <> 'imported'"
)
_SET_RULES: Final = (
    "UPDATE payments.batches SET rules = %s, stopped = NULL, "
    "state = CASE state WHEN 'imported' THEN 'open' ELSE state END WHERE batch = %s"
)
_LOOK_NOW: Final = "UPDATE payments.chunks SET look_at = NULL WHERE batch = %s"
_NO_GRANTS: Final = "UPDATE payments.chunks SET granted_to = 0 WHERE batch = %s AND unsent > 0"
Decide = Callable[[Locked], Sequence[Statement] | None]
"""Decides, given the locked batch, what to change; None for nothing."""


async def plan(database: Database, batch: Batch, clock: Clock, rules: StopRules, *also: Statement) -> None:
    """Set the stop rules. The first time this lets workers begin.

    What was granted is granted anew, and rows in doubt are due for a look at once.
    """
    text = rules_text(rules)
    number = batch.batch
    granted = _chunks.locking_all(number), (_NO_GRANTS, (number,)), (_LOOK_NOW, (number,))
    statements = (*granted, (_SET_RULES, (text, number)), *also)
    await _change(database, batch, clock, "plan", text, lambda _: statements)


def accepting(batch: Batch, *, accepts: bool) -> Statement:
    """Make the statement that records whether the operator accepts a lossy standby."""
    return "UPDATE payments.batches SET lossy_standby = %s WHERE batch = %s", (accepts, batch.batch)


def stopping(batch: int, reason: str) -> Statement:
    """Make the statement that records why the stop rules let no further new row be taken."""
    return "UPDATE payments.batches SET stopped = %s WHERE batch = %s", (reason, batch)


async def pause(database: Database, batch: Batch, clock: Clock, reason: str) -> None:
    """Let no process begin to send a row. A batch that is not planned or closed stays so.

    A suspect one stays suspect, and is paused after its recovery. An open one whose chain cannot be read is
    paused without an entry.
    """

    def decide(locked: Locked) -> Sequence[Statement] | None:
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

    def decide(locked: Locked) -> Sequence[Statement] | None:
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

    async def work(transaction: Transaction) -> Entered | None:
        locking = _chunks.locking(batch.batch, [WHOLE])
        found, chunks = await transaction.read(locking, _chunks.reading(batch.batch, "AND c.chunk > 0"))
        locked, root = Locked.of(found), _chunks.Root()
        done[:] = [locked.state == BatchState.OPEN and locked.is_here]  # else commits may be lost
        for chunk in _chunks.read(chunks):
            done[0] = done[0] and not chunk.figures.count(*OPEN)
            root.add(chunk)
        if not done[0]:
            return None
        transaction.write((_SET_STATE, (BatchState.CLOSED.value, None, batch.batch)))
        return noted(transaction, batch, locked, clock, "root", json.dumps({"root": root.hex, **facts}))

    await commit(database, batch, work)
    return done[0]


async def note_extra(database: Database, batch: Batch, clock: Clock, extra: ExtraTotals) -> None:
    """Record the extra payouts that a whole reading of the list has shown; not while commits may be lost."""

    async def work(transaction: Transaction) -> Entered | None:
        locking = _chunks.locking(batch.batch, [WHOLE])
        found, stored = await transaction.read(locking, by_id(batch.batch_id))
        locked, facts = Locked.of(found), facts_of(stored[0])
        if not locked.is_here:
            return None
        header = attrs.evolve(facts.header, extra=extra)
        text = facts_text(header, batch, facts.chunks)
        whole = noted(transaction, batch, locked, clock, "header", text)
        transaction.write(rebinding(batch.batch, header, whole.entry.number))
        return whole

    await commit(database, batch, work)


def reopening(batch: int, chunks: Iterable[int]) -> tuple[Statement, Statement]:
    """Make statements for rows that an operator changed: their chunks are granted anew."""
    return (
        (
            "UPDATE payments.batches SET stopped = NULL, state = CASE state WHEN 'closed' THEN 'open' "
            "ELSE state END WHERE batch = %s",
            (batch,),
        ),
        (
            "UPDATE payments.chunks SET granted_to = 0 WHERE batch = %s AND chunk = ANY(%s)",
            (batch, arrays.int4s(sorted(chunks))),
        ),
    )


def noted(
    transaction: Transaction, batch: Batch, locked: Locked, clock: Clock, kind: str, text: str
) -> Entered:
    """Add an entry to the chain of a locked batch, and record the standbys that may lack it."""
    at = attrs.evolve(clock(), wall=locked.wall)
    whole = _chunks.entered(batch, locked.chunks[WHOLE], kind, at, text)
    _chunks.write(transaction, batch, [whole])
    transaction.write(observing([batch.batch]))
    return whole


async def _change(
    database: Database, batch: Batch, clock: Clock, kind: str, text: str, decide: Decide
) -> None:
    async def work(transaction: Transaction) -> Entered | None:
        (found,) = await transaction.read(_chunks.locking(batch.batch, [WHOLE]))
        locked = Locked.of(found)
        statements = decide(locked)
        if statements is None:
            return None
        for statement in statements:
            transaction.write(statement)
        return noted(transaction, batch, locked, clock, kind, text)

    await commit(database, batch, work)


async def commit(
    database: Database, batch: Batch, work: Callable[[Transaction], Awaitable[Entered | None]]
) -> None:
    """Run work that adds an entry to the batch's chain, or changes nothing. Raises LedgerError."""
    last: list[Entered] = []

    async def run(transaction: Transaction) -> None:
        entered = await work(transaction)
        last[:] = [] if entered is None else [entered]

    async def committed(transaction: Transaction) -> bool:
        return await _chunks.is_stored(transaction, batch.batch, last)

    try:
        await database.commit(run, committed)
        return
    except UnreadableRecord as error:
        finding = str(error)
    await found(database, batch.batch_id)
    raise LedgerDamaged(f"{database.label}, batch {batch.batch_id}", [finding])


def rebinding(batch: int, header: Header, described_in: int) -> Statement:
    """Make the statement that stores another binding, with the entry that carries its facts."""
    binding = header.binding
    return (
        "UPDATE payments.batches SET key_fingerprint = %s, input_hash = %s, input_stat = %s, totals = %s, "
        "extra = %s, described_in = %s, "
        "keys = CASE WHEN %s = ANY(keys) THEN keys ELSE array_append(keys, %s) END WHERE batch = %s",
        (
            *(binding.key_fingerprint, binding.input_hash, binding.input_stat, amounts_text(header)),
            *(totals_text(header.extra), described_in),
            *(binding.key_fingerprint, binding.key_fingerprint, batch),
        ),
    )
