"""What receives a server's commits: asked in SQL, so that a command records it with its own commit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...protocol.machines import Standbys
from ..statements import Statement
from .dialect import HERE
from .driver.database import Database

_FOUND: Final = (
    "SELECT CASE WHEN count(*) = 0 THEN 'none' WHEN bool_and(coalesce(s.sync_state, 'hidden') "
    "IN ('sync', 'quorum') AND current_setting('synchronous_commit') IN ('on', 'remote_apply')) "
    "THEN 'synchronous' ELSE 'asynchronous' END AS seen "
    # without backups and readers of single tables
    "FROM pg_stat_replication s LEFT JOIN pg_replication_slots r ON r.active_pid = s.pid "
    "WHERE coalesce(r.slot_type, 'physical') = 'physical' AND coalesce(s.state, 'streaming') = 'streaming'"
)


async def standbys(database: Database) -> Standbys:
    """Find out what receives the server's commits. Raises LedgerError."""
    (((found,),),) = await database.read((_FOUND, ()))
    return Standbys(found)


def observing(batches: Iterable[int]) -> Statement:
    """Make the statement that records which standbys there are. An asynchronous one stays on record."""
    return (
        f"UPDATE payments.batches b SET standbys = f.seen FROM ({_FOUND}) f WHERE b.batch = ANY(%b::int8[]) "
        f"AND {HERE} AND b.standbys <> f.seen AND b.standbys <> 'asynchronous'",
        (sorted(batches),),
    )
