"""The workers of a database: who they are, and what they last reported. Needs no right to read rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from ..._protocol.clocks import Timestamps
from ..._protocol.stop_rules import Account
from ...ledger_errors import LedgerRefused
from ..operators import ListedWorker
from ..statements import Statement
from .database import Database

_LISTED: Final = (
    "SELECT encode(w.id, 'hex'), w.host, w.pid, w.version, w.slots, w.rows, "
    "coalesce(w.pace, 0), w.drain, w.trouble, "
    "extract(epoch FROM clock_timestamp() - w.started)::float8, "
    "extract(epoch FROM clock_timestamp() - w.last_seen)::float8, "
    "coalesce(h.batches, '{}'), coalesce(h.chunks, '{}') FROM payments.workers w LEFT JOIN "
    # at one moment for both: a lease may end while they are read
    "(SELECT c.holder, array_agg(b.batch_id ORDER BY b.batch_id, c.chunk) AS batches, "
    "array_agg(c.chunk ORDER BY b.batch_id, c.chunk) AS chunks "
    "FROM payments.chunks c JOIN payments.batches b ON b.batch = c.batch "
    "WHERE c.expires > clock_timestamp() GROUP BY c.holder) h ON h.holder = w.id "
    "WHERE encode(w.id, 'hex') LIKE %s ORDER BY w.started, w.id"
)
_DRAIN: Final = "UPDATE payments.workers SET drain = true WHERE encode(id, 'hex') = %s"
_LEAVE: Final = (
    "DELETE FROM payments.workers WHERE id = %s OR last_seen < clock_timestamp() - interval '7 days'"
)
_SINCE: Final = "greatest(extract(epoch FROM clock_timestamp() - w.last_seen)::float8, 1)"
_RATE: Final = f"(excluded.rows - w.rows) * 60 / {_SINCE}"
_SEEN: Final = (
    "INSERT INTO payments.workers AS w (id, host, pid, version, slots, started, last_seen, rows, trouble) "
    "VALUES (%s, %s, %s, %s, %s, clock_timestamp(), clock_timestamp(), %s, %s) ON CONFLICT (id) DO UPDATE "
    "SET last_seen = clock_timestamp(), rows = excluded.rows, trouble = excluded.trouble, "
    # rows a minute, of which what is older than 20 s counts little
    f"pace = coalesce(w.pace + (1 - exp(-{_SINCE} / 20)) * ({_RATE} - w.pace), {_RATE}) RETURNING w.drain"
)


@attrs.frozen
class Worker:
    """A process that asks for leases."""

    id: bytes
    """Sixteen random bytes."""
    host: str
    pid: int
    version: str
    """That of this package."""
    slots: int
    """How many chunks it works on at a time; 0: an engine that calls the steps decides."""
    account: Account
    """The account that it pays from: it gets leases of no other's batches."""

    def moment(self, database: Database, wall: float) -> Timestamps:
        """Make a moment of this process of a time of the database's clock."""
        return Timestamps(wall, database.runtime.monotonic(), self.id.hex())

    def clock(self, database: Database) -> Callable[[], Timestamps]:
        """Make the clock of this process, whose time of day is the database's."""
        return lambda: self.moment(database, database.clock.now())

    def seen(self, rows: int, trouble: str | None = None) -> Statement:
        """Make the statement that registers the worker, and reads whether it should end."""
        return _SEEN, (self.id, self.host, self.pid, self.version, self.slots, rows, trouble)


async def listed(database: Database, prefix: str = "") -> list[ListedWorker]:
    """List workers, the oldest first; `prefix`: only those whose ids begin so. Raises LedgerError."""
    plain = prefix.lower()
    (found,) = await database.read((_LISTED, (f"{plain}%" if plain.isalnum() or not plain else "-",)))
    return [_worker(values) for values in found]


def _worker(values: Sequence[Any]) -> ListedWorker:
    *facts, batches, chunks = values
    return ListedWorker(*facts, leased_chunks=tuple(zip(batches, chunks, strict=True)))


async def drain(database: Database, prefix: str) -> ListedWorker:
    """Let a worker take no new chunk and end, within seconds. `prefix`: its id, or how it begins.

    Raises LedgerRefused unless it names exactly one worker.
    """
    found = await listed(database, prefix) if prefix else []
    if len(found) != 1:
        raise LedgerRefused(
            database.label, None, f"{len(found) or 'no'} workers have ids that begin with {prefix!r}"
        )
    await database.read((_DRAIN, (found[0].id,)))
    return found[0]


async def leave(database: Database, worker: bytes) -> None:
    """Remove a worker that ends, and those that have not reported for a week. Raises LedgerError."""
    await database.read((_LEAVE, (worker,)))
