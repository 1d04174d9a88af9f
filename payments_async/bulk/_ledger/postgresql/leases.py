"""A lease of a chunk, as its holder knows it; given back, it leaves an entry in the chunk's chain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import partial
from typing import Final

import attrs

from ..._protocol.machines import may_send
from ..chunks import Batch, ChunkWrite, LockedChunks, locking_chunks, with_entry, write_chunks
from ..stored_rows import undamaged
from ..transactions import Transaction
from .batches import commit_entries
from .database import Database
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
    return ended
