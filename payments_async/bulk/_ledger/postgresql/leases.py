"""Leases of chunks, as their holder knows them: they are renewed, and given back.

A renewal also teaches what the operator and the stop rules want. `granting` grants them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import Any, Final

import attrs

from ..._protocol import machines
from ..._protocol.machines import may_send, own_end
from ..._protocol.outcomes import Outcome
from ..._protocol.stop_rules import StopRules, stop_reason
from ..chunks import Batch, ChunkWrite, LockedChunks, locking_chunks, with_entry, write_chunks
from ..stored_rows import UnreadableRecord, undamaged
from ..transactions import Transaction
from .batches import commit_entries, hold_reason, read_rules, stopping
from .database import Database
from .dialect import HERE, NOTIFY, observing
from .failover import judge
from .session import NOW
from .worker_registry import Worker


class Work(StrEnum):
    """What a lease is asked for."""

    SEND = "send"
    """Rows that are new, or that a worker left in flight: one chunk."""
    LOOK = "look"
    """Rows in doubt that are due: all free chunks of one batch that have some and are otherwise done."""
    CLOSE = "close"
    """The closing of a batch all of whose rows are decided: its chunk 0."""


@attrs.define(eq=False)
class Lease:
    """The right to send a chunk's rows, for a while."""

    batch: Batch
    kind: Work
    """What it was asked for."""
    chunk: int
    id: bytes = attrs.field(repr=False)
    first: int
    """The number of the chunk's first row."""
    last: int
    granted_to: int
    """The highest row number that the stop rules let be taken."""
    begun_in: int
    """The entry of the chunk's chain that records it: rows changed up to there are of an earlier holder."""
    ends: float
    """When this worker stops under it, on its clock that counts suspension."""
    _now: Callable[[], float | None] = attrs.field(repr=False)
    is_lost: bool = False

    def is_valid(self) -> bool:
        """True if a request may begin. Asked right before its first byte."""
        now = self._now()
        return not self.is_lost and now is not None and may_send(self.ends, now)


_END: Final = (
    "UPDATE payments.chunks SET lease = NULL, holder = NULL, expires = NULL, "
    "look_at = clock_timestamp() + %s * interval '1 s' WHERE batch = %s AND chunk = %s"
)


async def give_back(
    database: Database, worker: Worker, leases: Iterable[Lease], *, look_after: float | None = None
) -> None:
    """End leases. Those that are another worker's by now are left.

    `look_after`: seconds until the chunks' rows in doubt are due for a look; None for at once.
    Raises LedgerError.
    """
    by_batch: dict[int, list[Lease]] = {}
    for lease in leases:
        by_batch.setdefault(lease.batch.batch, []).append(lease)
    for of_batch in by_batch.values():
        with undamaged(database.label):
            ending = partial(_ended, database, worker, of_batch, look_after)
            await commit_entries(database, of_batch[0].batch.batch, ending)
        for lease in of_batch:
            lease.is_lost = True


async def _ended(
    database: Database,
    worker: Worker,
    leases: Sequence[Lease],
    look_after: float | None,
    transaction: Transaction,
) -> list[ChunkWrite]:
    """End the leases of one batch that are still there, each with an entry of its chunk's chain."""
    batch, ids = leases[0].batch, {lease.chunk: lease.id for lease in leases}
    (found,) = await transaction.read(locking_chunks(transaction, batch.batch, ids))
    ended = list[ChunkWrite]()
    if not found:  # discarded meanwhile
        return ended
    locked = LockedChunks.of(found)
    for chunk in locked.chunks.values():
        if chunk.lease == ids[chunk.number]:
            at = worker.moment(database, locked.wall)
            ended.append(with_entry(batch, chunk, "ended", at, "{}", chunk.lease))
            transaction.write((_END, (look_after, batch.batch, chunk.number)))
    write_chunks(transaction, batch, ended)
    transaction.write(NOTIFY)
    return ended


# Renewal

_RENEW: Final = (
    "UPDATE payments.chunks c SET expires = clock_timestamp() + %s * interval '1 s' "
    "FROM unnest(%b::int8[], %b::int4[], %b::bytea[]) AS u(batch, chunk, lease), payments.batches b "
    "WHERE c.batch = u.batch AND c.chunk = u.chunk AND c.lease = u.lease AND c.expires > clock_timestamp() "
    f"AND b.batch = c.batch AND {HERE} RETURNING c.lease"
)
_STATES: Final = (
    f"SELECT b.batch, b.batch_id, b.chunk_size, b.hash_key, {HERE}, b.state, b.reason, b.stopped, b.rules "
    "FROM payments.batches b WHERE b.batch = ANY(%b::int8[]) ORDER BY b.batch"
)
_DECIDED: Final = (
    "SELECT coalesce(sum(created), 0)::int, coalesce(sum(refused), 0)::int "
    "FROM payments.chunks WHERE batch = %s"
)
_NO_NEW: Final = "UPDATE payments.chunks SET granted_to = 0 WHERE batch = %s AND unsent > 0"


@attrs.frozen
class Renewal:
    """What a worker learns when it renews its leases."""

    lost: tuple[Lease, ...]
    """Leases that are void: they had ended, another worker has the chunks, or the batch is suspect."""
    hold_reasons: Mapping[int, str]
    """{batch: why no row of it may be sent now}."""
    stopped: Mapping[int, str]
    """{batch: why the stop rules let no further new row be taken}."""
    drain: bool
    """True if the operator wants this worker to take no new chunk."""


async def renew(
    database: Database,
    worker: Worker,
    leases: Sequence[Lease],
    *,
    rows: int = 0,
    trouble: str | None = None,
) -> Renewal:
    """Renew leases, register the worker, and learn what the operator wants. Moves the leases' `ends`.

    A lease that has ended is lost, even if no other worker has the chunk: requests may wait since before.
    `rows`: how many rows it has sent in all. `trouble`: why it cannot use the service. Raises LedgerError.
    """
    renewing = _Renewing(database, worker, leases, rows, trouble)
    while True:
        renewal = await database.commit(renewing.renew)
        for batch in renewing.moved:
            await judge(database, batch, worker.clock(database))
        if not renewing.moved:
            break
    for lease in leases:
        lease.is_lost = lease.is_lost or lease.id not in renewing.renewed
        lease.ends = max(lease.ends, own_end(renewing.asked or 0.0))
    lost = tuple(lease for lease in leases if lease.id not in renewing.renewed)
    return attrs.evolve(renewal, lost=lost)


@attrs.define
class _Renewing:
    """One renewal."""

    database: Database
    worker: Worker
    leases: Sequence[Lease]
    rows: int
    trouble: str | None
    asked: float | None = None
    """When the last attempt was begun, on the clock that counts suspension."""
    renewed: set[bytes] = attrs.field(factory=set)
    """The leases that the last attempt renewed."""
    moved: list[Batch] = attrs.field(factory=list)
    """Batches whose last commit went to another server than this one."""

    async def renew(self, transaction: Transaction) -> Renewal:
        """Renew the leases of batches that are here."""
        self.asked = self.database.runtime.boottime()
        numbers = sorted({lease.batch.batch for lease in self.leases})
        ((now,),), renewed, found, ((drain,),) = await transaction.read(
            NOW,
            (_RENEW, (machines.LEASE, *_places(self.leases, self.asked))),
            (_STATES, (numbers,)),
            self.worker.seen(self.rows, self.trouble),
        )
        self.database.clock.note(now)
        self.renewed = {lease for (lease,) in renewed}
        self.moved.clear()
        holds, stopped = dict[int, str](), dict[int, str]()
        for batch, batch_id, size, key, is_here, state, reason, why, rules in found:
            if not is_here:
                self.moved.append(Batch(batch, batch_id, size, key))
            if (hold := hold_reason(state, reason)) is not None:
                holds[batch] = hold
            try:
                why = why or await _failure(transaction, batch, read_rules(rules))
            except UnreadableRecord as error:
                holds[batch] = str(error)
            if why is not None:
                stopped[batch] = why
        transaction.write(observing(numbers))
        return Renewal((), holds, stopped, bool(drain))


def _places(leases: Iterable[Lease], now: float | None) -> Sequence[Any]:
    """Batches, chunks and ids of the leases that have not ended for their holder."""
    valid = [lease for lease in leases if now is not None and may_send(lease.ends, now)]
    return (
        [lease.batch.batch for lease in valid],
        [lease.chunk for lease in valid],
        [lease.id for lease in valid],
    )


async def _failure(transaction: Transaction, batch: int, rules: StopRules) -> str | None:
    """Stop a batch of which more rows have failed than its rules allow. Returns the reason."""
    if rules.max_failure_rate is None:
        return None
    (((created, refused),),) = await transaction.read((_DECIDED, (batch,)))
    none, rules = Decimal(0), StopRules(max_failure_rate=rules.max_failure_rate)
    totals = {(Outcome.NOT_FINAL, ""): (created, none), (Outcome.REJECTED, ""): (refused, none)}
    reason = stop_reason(rules, totals, amount=none, currency="")
    if reason is not None:
        transaction.write((_NO_NEW, (batch,)))
        transaction.write(stopping(batch, reason))
    return reason
