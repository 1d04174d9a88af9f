"""A lease of a chunk, as its holder knows it; given back, it leaves an entry in the chunk's chain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final

import attrs

from ....protocol.machines import may_send
from ... import chunks as _chunks
from ...chunks import Batch, Entered
from ...database import Transaction
from ...rows import undamaged
from ..driver.database import Database
from .workers import Worker


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
    for number, of_batch in by_batch.items():
        ending = _Ending(database, worker, number, {lease.chunk: lease.id for lease in of_batch}, look_after)
        with undamaged(database.label):
            await database.commit(ending.end, ending.is_ended)
        for lease in of_batch:
            lease.is_lost = True


@attrs.define
class _Ending:
    """The end of leases of one batch."""

    database: Database
    worker: Worker
    number: int
    leases: Mapping[int, bytes]
    look_after: float | None
    _last: tuple[int, list[Entered]] = (0, [])

    async def end(self, transaction: Transaction) -> None:
        """End the leases that are still there, each with an entry of its chunk's chain."""
        self._last = (0, [])
        lock, found = await transaction.read(
            ("SELECT batch_id, chunk_size FROM payments.batches WHERE batch = %s", (self.number,)),
            _chunks.locking(transaction, self.number, self.leases),
        )
        if not found:
            return
        batch, locked = Batch(self.number, *lock[0]), _chunks.Locked.of(found)
        ended = []
        for chunk in locked.chunks.values():
            if chunk.lease == self.leases[chunk.number]:
                at = self.worker.moment(self.database, locked.wall)
                ended.append(_chunks.entered(batch, chunk, "ended", at, "{}", chunk.lease))
                transaction.write((_END, (self.look_after, self.number, chunk.number)))
        if ended:
            _chunks.write(transaction, batch, ended)
        self._last = (self.number, ended)

    async def is_ended(self, transaction: Transaction) -> bool:
        """Find out whether the last attempt was committed."""
        return await _chunks.is_stored(transaction, *self._last)
