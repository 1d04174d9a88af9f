"""Finds out whether a batch has lost commits, by a fail-over or a restored backup, and recovers it.

A session knows the server that it works on, and a batch the one of its last commit. Where they differ, work
stops (`ServerChanged`) and `judge` decides: the new server is recorded, or the batch is suspect. Then all its
leases are void, and no intent is recorded until the operator has recovered the batch (`Recovery`). New leases
are granted 15 seconds later at the earliest, when the holders of void ones have stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from ..._protocol import machines
from ..._protocol.clocks import Timestamps
from ..._protocol.machines import (
    BatchState,
    Loss,
    LossState,
    OperatorCommand,
    OwnCommits,
    ServerIdentity,
    Standbys,
    loss_of,
)
from ...ledger_errors import LedgerUnavailable
from ..chunks import BATCH_CHUNK, Batch, ChunkWrite, LockedChunks, locking_chunks, of_batch
from ..statements import Rows, Statement
from ..stored_rows import readable
from ..transactions import Transaction
from .batches import Clock, commit, standbys, with_note
from .database import Database
from .dialect import locking_all

_STORE: Final = (
    "SELECT b.store, b.tables, b.tableoid::bigint, current_setting('payments.store'), b.standbys, b.losses "
    "FROM payments.batches b WHERE b.batch = %s"
)
_OWN: Final = (
    "SELECT count(*), count(e.hash) "
    "FROM unnest(%b::int4[], %b::int4[], %b::bytea[]) AS u(chunk, number, hash) "
    "LEFT JOIN payments.entries_{batch:016x} e ON e.batch = %s AND e.chunk = u.chunk "
    "AND e.number = u.number AND e.hash = u.hash"
)
_MOVE: Final = (
    "UPDATE payments.batches SET store = current_setting('payments.store'), tables = tableoid::bigint "
    "WHERE batch = %s"
)
_EXTEND: Final = (
    "UPDATE payments.chunks SET expires = clock_timestamp() + %s * interval '1 s' "
    "WHERE batch = %s AND expires IS NOT NULL"
)
"""Lets leases end on this server's clock, whatever the last one's showed."""
_SUSPECT: Final = (
    "UPDATE payments.batches SET state = 'suspect', reason = %s, losses = losses + 1, lost_in = %s, "
    "resumes_as = CASE state WHEN 'suspect' THEN resumes_as WHEN 'closed' THEN 'open' ELSE state END "
    "WHERE batch = %s"
)
_VOID: Final = (
    "UPDATE payments.chunks SET lease = NULL, holder = NULL, "
    "expires = clock_timestamp() + %s * interval '1 s' WHERE batch = %s"
)
"""Ends leases. New ones wait for holders that know nothing of that, even those whose grants are lost."""

LOSSY: Final = (
    "the database has a standby that gets commits asynchronously: a fail-over may lose the last. Make it "
    "synchronous (synchronous_standby_names; `GRANT pg_monitor` if this user cannot see that it is), or "
    "accept that once (--lossy-standby, lossy_standby=True)"
)
UNPROVEN: Final = (
    "commits were lost, and no reading of the service's list has proven which: `payments payouts recover`, "
    "which says when that can be"
)


class ServerChanged(Exception):
    """The batch's last commit went to another server than this session's: `judge` it and repeat the work."""


@attrs.define
class LastEntries:
    """The last chain entries that this process has committed, after the latest loss that is known."""

    losses: int = 0
    """How often the batch had lost commits when they were made."""
    ends: dict[int, tuple[int, bytes]] = attrs.field(factory=dict)
    """{chunk: (number, hash)}."""
    connection: int = 1
    """The connection, counted, on which they were made or looked for last."""

    def are_unchecked(self, database: Database) -> bool:
        """True if these were not looked for since the database was connected to."""
        return bool(self.ends) and self.connection != database.connections

    def keep(self, writes: Iterable[ChunkWrite], *, losses: int, connection: int) -> None:
        """Keep the entries of a commit."""
        if losses != self.losses:
            self.losses = losses
            self.ends.clear()
        if not self.ends:
            self.connection = connection
        self.ends.update({each.chunk.number: (each.entry.number, each.entry.hash) for each in writes})


async def judge(
    database: Database, batch: Batch, clock: Clock, last: LastEntries | None = None
) -> Loss | None:
    """Compare the servers and the process's own commits, and record what follows.

    That is nothing, the new server, or that the batch is suspect. Raises LedgerError.
    """
    decided: list[Loss | None] = []
    last = last or LastEntries()

    async def work(transaction: Transaction) -> ChunkWrite | None:
        last.connection = database.connections
        locking = locking_chunks(transaction, batch.batch, [BATCH_CHUNK])
        locked, found, own = await transaction.read(locking, (_STORE, (batch.batch,)), _own(batch, last))
        whole = LockedChunks.of(locked)
        before, here, standby, losses = _read(found)
        decided[:] = [loss_of(before, here, standby, _found(own, last, losses))]
        if decided[0] is not None:
            text = _text(before, here, decided[0].name)
            return mark(transaction, batch, whole, clock, decided[0], text)
        if whole.is_here:
            return None
        transaction.write(locking_all(batch.batch))
        transaction.write((_EXTEND, (machines.LEASE, batch.batch)))
        transaction.write((_MOVE, (batch.batch,)))
        return with_note(transaction, batch, whole, clock, "server", _text(before, here))

    await commit(database, batch, work)
    return decided[0]


def _read(found: Rows) -> tuple[ServerIdentity, ServerIdentity, Standbys, int]:
    """Read the server of the batch's last commit, this session's, the standbys of then and the losses.

    Raises UnreadableRecord.
    """
    with readable("the server of a batch"):
        ((store, tables, tables_here, here, standby, losses),) = found
        return (
            ServerIdentity.read(store, tables),
            ServerIdentity.read(here, tables_here),
            Standbys(standby),
            losses,
        )


def _own(batch: Batch, last: LastEntries) -> Statement:
    numbers, hashes = [number for number, _ in last.ends.values()], [each for _, each in last.ends.values()]
    return of_batch(batch.batch, _OWN, list(last.ends), numbers, hashes, batch.batch)


def _found(own: Rows, last: LastEntries, losses: int) -> OwnCommits:
    ((asked, there),) = own
    if not asked or losses != last.losses:
        return OwnCommits.NONE
    return OwnCommits.THERE if there == asked else OwnCommits.MISSING


def _text(before: ServerIdentity, here: ServerIdentity, loss: str | None = None) -> str:
    return json.dumps({"loss": loss, "from": attrs.asdict(before), "to": attrs.asdict(here)})


def mark(
    transaction: Transaction, batch: Batch, locked: LockedChunks, clock: Clock, loss: Loss, text: str
) -> ChunkWrite:
    """Mark a locked batch as suspect: its leases are void, and it has one loss more."""
    transaction.write(locking_all(batch.batch))
    write = with_note(transaction, batch, locked, clock, "loss", text)
    transaction.write((_VOID, (machines.LEASE, batch.batch)))
    transaction.write((_MOVE, (batch.batch,)))
    transaction.write((_SUSPECT, (loss.value, write.entry.number, batch.batch)))
    return write


_LOSS: Final = (
    "SELECT b.state, b.reason, b.losses, e.wall, e.monotonic, e.session, e.server FROM payments.batches b "
    "LEFT JOIN payments.entries_{batch:016x} e ON e.batch = b.batch AND e.chunk = 0 AND e.number = b.lost_in "
    "WHERE b.batch = %s"
)
_COMMANDS: Final = (
    "SELECT kind, wall, monotonic, session, server, changes FROM payments.entries_{batch:016x} "
    "WHERE batch = %s AND chunk = 0 AND kind NOT IN ('header', 'server', 'loss', 'recover', 'root') "
    "ORDER BY number"
)
_DATE: Final = "UPDATE payments.batches SET lost_in = %s WHERE batch = %s"
_PROVEN: Final = "UPDATE payments.batches SET lost_in = NULL WHERE batch = %s"
_CONFIRMED: Final = (
    "UPDATE payments.batches SET state = resumes_as, resumes_as = NULL, reason = NULL, standbys = %s "
    "WHERE batch = %s AND state = 'suspect'"
)


@attrs.frozen
class Recovery:
    """The recovery of one batch. Every method may raise LedgerError."""

    database: Database
    batch: Batch
    clock: Clock

    async def begin(self, *, by_hand: bool) -> LossState | None:
        """Read what is known of a loss; None when there is none. `by_hand`: there is one now."""

        async def work(transaction: Transaction) -> ChunkWrite | None:
            locking = locking_chunks(transaction, self.batch.batch, [BATCH_CHUNK])
            found, loss = await transaction.read(locking, self._about(_LOSS))
            locked, lost = LockedChunks.of(found), _lost(loss)
            if by_hand:  # also of a batch that has lost some already: an older copy may be of before that
                return mark(transaction, self.batch, locked, self.clock, Loss.BY_HAND, "{}")
            if lost is None or lost.server is not None or self.clock().server is None:
                return None
            # the loss gets a moment on the service's clock: it alone tells later sessions how old that is
            write = with_note(transaction, self.batch, locked, self.clock, "recover", "{}")
            transaction.write((_DATE, (write.entry.number, self.batch.batch)))
            return write

        await commit(self.database, self.batch, work)
        return await self._state()

    async def end(self, state: LossState, *, confirmed: bool, proven: bool) -> None:
        """Record what was found. Raises LedgerUnavailable when more commits were lost meanwhile."""
        seen_now = await standbys(self.database)
        text = json.dumps({"confirmed": confirmed, "proven": proven})

        async def work(transaction: Transaction) -> ChunkWrite | None:
            (found,) = await transaction.read(locking_chunks(transaction, self.batch.batch, [BATCH_CHUNK]))
            locked = LockedChunks.of(found)
            if locked.losses != state.losses or not locked.is_here:
                raise LedgerUnavailable(
                    self.database.label, "commits were lost again meanwhile: recover again"
                )
            if proven:
                transaction.write((_PROVEN, (self.batch.batch,)))
            if confirmed:
                transaction.write((_CONFIRMED, (seen_now.value, self.batch.batch)))
            return with_note(transaction, self.batch, locked, self.clock, "recover", text)

        await commit(self.database, self.batch, work)

    def _about(self, sql: str) -> Statement:
        return of_batch(self.batch.batch, sql, self.batch.batch)

    async def _state(self) -> LossState | None:
        loss, commands = await self.database.read(self._about(_LOSS), self._about(_COMMANDS))
        with readable("an entry"):
            state, reason, losses, *_ = loss[0]
            is_suspect, lost = state == BatchState.SUSPECT, _lost(loss)
            if not is_suspect and lost is None:
                return None
            (_, *imported, _), *_ = commands
            return LossState(
                reason or "commits were lost",
                is_suspect,
                lost,
                losses,
                Timestamps(*imported),
                tuple(map(_command, commands)),
            )


def _lost(found: Rows) -> Timestamps | None:
    """Read the moment after which nothing was lost any more; None when all is proven."""
    *_, wall, monotonic, session, server = found[0]
    return None if session is None else Timestamps(wall, monotonic, session, server)


def _command(values: Sequence[Any]) -> OperatorCommand:
    kind, wall, *_, changes = values
    facts = json.loads(changes)
    return OperatorCommand(kind, wall, int(facts.get("rows", 0)) if isinstance(facts, dict) else 0)
