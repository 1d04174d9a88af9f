"""Grants leases of free chunks, as far as their batch's stop rules allow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Final, NamedTuple

import attrs

from ..._protocol import machines
from ..._protocol.machines import BatchState, own_end
from ..._protocol.outcomes import Outcome, Sums
from ..._protocol.stop_rules import StopRules, allows_any, stop_reason
from ...ledger_errors import LeaseLost
from ..chunks import (
    Batch,
    Chunk,
    ChunkWrite,
    LockedChunks,
    is_stored,
    locking_chunks,
    read_chunks,
    with_entry,
    write_chunks,
)
from ..stored_rows import undamaged
from ..transactions import Transaction
from .batches import read_rules, stopping
from .database import Database
from .dialect import HERE
from .leases import Lease, Work
from .schema import table_of
from .work import IS_DUE
from .worker_registry import Worker

NewRows = Sequence[tuple[int, str, Decimal]]
"""Number, currency and amount of new rows, in the order of their numbers."""
Taken = Sums[tuple[Outcome, str]]
"""Rows that were or may be taken, with their sums."""
_FIND: Final = (
    "SELECT c.chunk FROM payments.chunks c JOIN payments.batches b ON b.batch = c.batch "
    f"WHERE c.batch = %s AND %s = ANY(b.keys) AND (%s::int IS NULL OR c.chunk = %s) AND {HERE} "
    "AND {condition} "
    "ORDER BY c.chunk FOR UPDATE OF c SKIP LOCKED"
)
_LOCK_BATCH: Final = "SELECT rules, state, stopped FROM payments.batches WHERE batch = %s FOR UPDATE"
_NEW_ROWS: Final = (
    "SELECT s.number, r.currency, r.amount FROM {states} s "
    "JOIN {rows} r ON r.number = s.number AND r.version = s.version "
    "WHERE s.number BETWEEN %s AND %s AND s.state = 'NEW' ORDER BY s.number"
)
_ALLOW: Final = "UPDATE payments.chunks SET granted_to = %s WHERE batch = %s AND chunk = %s"
_GRANT: Final = (
    "UPDATE payments.chunks SET lease = %s, holder = %s, granted_to = %s, "
    "expires = clock_timestamp() + %s * interval '1 s' WHERE batch = %s AND chunk = %s"
)


async def grant(
    database: Database, worker: Worker, batch: Batch, *, kind: Work = Work.SEND, chunk: int | None = None
) -> list[Lease]:
    """Ask for a lease of a free chunk of a batch, for a worker whose key is proven; for `LOOK`, of all due.

    Returns none when there is nothing to do now. Raises LedgerDamaged, and LedgerError.
    """
    granting = _Granting(database, worker, batch, kind)
    with undamaged(f"{database.label}, batch {batch.batch_id}"):
        return await database.commit(partial(granting.grant, chunk=chunk), granting.is_granted)


@attrs.define
class _Granting:
    """One request for leases."""

    database: Database
    worker: Worker
    batch: Batch
    kind: Work
    _last: list[ChunkWrite] = attrs.field(factory=list)

    async def grant(self, transaction: Transaction, chunk: int | None) -> list[Lease]:
        """Find free chunks and grant their leases, each with an entry of its chain."""
        self._last = []
        asked = self.database.runtime.boottime()
        if asked is None:
            raise LeaseLost(
                self.database.label, "this machine has no clock that counts while it is suspended"
            )
        number = self.batch.batch
        sql = _FIND.format(condition=IS_DUE[self.kind])
        (free,) = await transaction.read((sql, (number, self.worker.account.key, chunk, chunk)))
        if not free:
            return []
        chunks = [each for (each,) in free]
        ((rules, state, stopped),), found = await transaction.read(
            (_LOCK_BATCH, (number,)), locking_chunks(transaction, number, chunks)
        )
        if state != BatchState.OPEN:
            return []
        batch, locked = self.batch, LockedChunks.of(found)
        limits = _Limits(transaction, batch, read_rules(rules), stopped)
        granted = []
        for found_chunk in locked.chunks.values():
            allowed, claimable = Allowance(found_chunk.granted_to, stopped), 0
            if self.kind is Work.SEND:
                allowed, claimable = await limits.allowed(found_chunk)
            if self.kind is not Work.SEND or claimable or found_chunk.figures.count(Outcome.UNDER_WAY):
                granted.append(self._write(transaction, batch, found_chunk, allowed, locked.wall))
            else:
                transaction.write((_ALLOW, (0, number, found_chunk.number)))
        if granted:
            write_chunks(transaction, batch, granted)
        self._last = granted
        return [self._lease(batch, each, asked) for each in granted]

    def _write(
        self, transaction: Transaction, batch: Batch, chunk: Chunk, allowed: Allowance, wall: float
    ) -> ChunkWrite:
        lease = self.database.runtime.token(16)
        worker = self.worker
        facts = {"worker": worker.id.hex(), "host": worker.host, "pid": worker.pid, "for": self.kind}
        text = json.dumps({**facts, "granted_to": allowed.granted_to})
        place = (batch.batch, chunk.number)
        transaction.write((_GRANT, (lease, worker.id, allowed.granted_to, machines.LEASE, *place)))
        at = worker.moment(self.database, wall)
        granted = attrs.evolve(chunk, lease=lease, granted_to=allowed.granted_to)
        return with_entry(batch, granted, "lease", at, text, lease)

    def _lease(self, batch: Batch, write: ChunkWrite, asked: float) -> Lease:
        chunk = write.chunk
        return Lease(
            batch=batch,
            kind=self.kind,
            chunk=chunk.number,
            id=chunk.lease or b"",
            first=chunk.first,
            last=chunk.last,
            granted_to=chunk.granted_to,
            begun_in=chunk.entries,
            ends=own_end(asked),
            now=self.database.runtime.boottime,
        )

    async def is_granted(self, transaction: Transaction) -> bool:
        """Find out whether the last attempt was committed."""
        return await is_stored(transaction, self.batch.batch, self._last)


@attrs.frozen
class _Limits:
    """What the stop rules of a locked batch let be taken."""

    transaction: Transaction
    batch: Batch
    rules: StopRules
    stopped: str | None

    async def allowed(self, chunk: Chunk) -> tuple[Allowance, int]:
        """Decide how far a chunk's new rows may be taken, and count those. Stores why no more may be."""
        unsent = chunk.figures.count(Outcome.NOT_STARTED)
        if self.stopped is not None:  # what was granted before stays so
            new = await self._new(chunk, chunk.granted_to)
            return Allowance(chunk.granted_to, self.stopped), len(new)
        if not unsent or not limits_rows(self.rules):
            return Allowance(chunk.last, None), unsent
        new = await self._new(chunk, chunk.last)
        allowed = allowance(self.rules, await self._taken(chunk), chunk, new)
        if allowed.stopped is not None:
            self.transaction.write(stopping(self.batch.batch, allowed.stopped))
        return allowed, sum(number <= allowed.granted_to for number, _, _ in new)

    async def _taken(self, chunk: Chunk) -> Taken:
        """Add up what was promised of other chunks, and what was taken of this one."""
        (found,) = await self.transaction.read((self.transaction.sql.chunks, (self.batch.batch,)))
        taken = Taken()
        promise(taken, attrs.evolve(chunk, granted_to=0))
        for other in read_chunks(found):
            if other.number != chunk.number:
                promise(taken, other)
        return taken

    async def _new(self, chunk: Chunk, until: int) -> NewRows:
        batch = self.batch.batch
        sql = _NEW_ROWS.format(states=table_of("row_states", batch), rows=table_of("rows", batch))
        (found,) = await self.transaction.read((sql, (chunk.first, until)))
        return [(number, currency, Decimal(amount)) for number, currency, amount in found]


# What the stop rules allow. Pure


class Allowance(NamedTuple):
    """What may be taken of a chunk."""

    granted_to: int
    """The highest row number; 0 when no row may be taken."""
    stopped: str | None
    """The reason why no further row of the batch may be taken; None while they may."""


def limits_rows(rules: StopRules) -> bool:
    """True if the rules limit which rows are taken before any outcome is known."""
    return rules.max_amount is not None or rules.max_rows is not None


def promise(taken: Taken, chunk: Chunk) -> None:
    """Add a chunk's rows that were or may be taken, of any outcome, as if all were under way.

    A chunk of which only a part was granted has stopped the batch: no other is granted beside it.
    """
    untaken = {Outcome.CANCELLED} if chunk.granted_to else {Outcome.CANCELLED, Outcome.NOT_STARTED}
    for (outcome, currency), (rows, amount) in chunk.figures.totals.items():
        if outcome not in untaken:
            taken.add((Outcome.UNDER_WAY, currency), amount, rows)


def allowance(rules: StopRules, taken: Taken, chunk: Chunk, new: NewRows) -> Allowance:
    """Find the last of a chunk's first new rows that the rules allow, and add those to what is taken.

    `taken`: all that was promised elsewhere, and this chunk's rows that are not new.
    """
    limits, both = StopRules(rules.max_amount, rules.max_rows), Sums(taken.totals)
    for _, currency, amount in new:
        both.add((Outcome.UNDER_WAY, currency), amount)
    if allows_any(limits, both.totals, 0):
        return Allowance(chunk.last, None)
    granted_to = 0
    for number, currency, amount in new:
        if reason := stop_reason(limits, taken.totals, amount=amount, currency=currency):
            return Allowance(granted_to, reason)
        granted_to = number
        taken.add((Outcome.UNDER_WAY, currency), amount)
    return Allowance(chunk.last, None)
