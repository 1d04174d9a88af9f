"""The statements that PostgreSQL has in its own form: locks, lists of rows, and COPY, which logs no row."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Final

from ..statements import CHUNK_PLACE, CHUNK_VALUES, STATE_VALUES, Copying, Statement, Statements
from ..tables import CHUNKS, ENTRIES, ROW_STATES, ROWS, Table

HERE: Final = "b.store = current_setting('payments.store') AND b.tables = b.tableoid::bigint"
"""Whether a batch's last commit went to the server that the session works on (`failover`)."""

KEYED: Final = "sha256(b.hash_key || {})"
"""The keyed hash of a value of fixed length, under a batch's key, which is then in no statement."""


def name_hash(name: str) -> bytes:
    """The hash under which a key or reference is unique: no error message shows more."""
    return hashlib.sha256(name.encode()).digest()


def _copying(table: str, columns: Table, names: Collection[str], options: str = "FORMAT binary") -> Copying:
    """How a table's columns are copied, in the order of these names."""
    sql = f"COPY payments.{table} ({', '.join(names)}) FROM STDIN ({options})"
    return Copying(sql, columns.types(names))


_EMPTY: Final = "FORMAT binary, FREEZE"
"""For a table that the same transaction has made."""
_STATE: Final = (*STATE_VALUES, "number")
LISTEN: Final[Statement] = ("LISTEN payments_work", ())
NOTIFY: Final[Statement] = ("NOTIFY payments_work", ())
"""Wakes idle workers once it is committed, since there may be work for them."""
STANDBYS: Final = (
    "SELECT CASE WHEN count(*) = 0 THEN 'none' WHEN bool_and(coalesce(s.sync_state, 'hidden') "
    "IN ('sync', 'quorum') AND current_setting('synchronous_commit') IN ('on', 'remote_apply')) "
    "THEN 'synchronous' ELSE 'asynchronous' END AS seen "
    # without backups and readers of single tables
    "FROM pg_stat_replication s LEFT JOIN pg_replication_slots r ON r.active_pid = s.pid "
    "WHERE coalesce(r.slot_type, 'physical') = 'physical' AND coalesce(s.state, 'streaming') = 'streaming'"
)
"""What receives the server's commits: asked in SQL, so that a command records it with its own commit."""
SQL: Final = Statements(
    named=name_hash,
    lanes=16,
    lock_chunks=f"""
        SELECT extract(epoch FROM clock_timestamp())::float8, b.state, b.reason, {HERE}, b.losses,
            b.lost_in IS NOT NULL, c.chunk, c.first, c.last, c.granted_to, c.lease, c.entries, c.head,
            c.digest, c.totals, c.generation
        FROM payments.chunks c JOIN payments.batches b ON b.batch = c.batch
        WHERE c.batch = %s AND c.chunk = ANY(%b::int4[]) ORDER BY c.chunk FOR UPDATE OF c
    """,
    set_states=f"""
        UPDATE payments.row_states_{{batch:016x}} s
        SET {", ".join(f"{name} = u.{name}" for name in STATE_VALUES)}
        FROM unnest({", ".join(f"%b::{kind}[]" for kind in ROW_STATES.types(_STATE))})
        AS u({", ".join(_STATE)})
        WHERE s.number = u.number
    """,
    import_rows=_copying("rows_{batch:016x}", ROWS, ROWS.columns, _EMPTY),
    import_states=_copying("row_states_{batch:016x}", ROW_STATES, _STATE, _EMPTY),
    add_rows=_copying("rows_{batch:016x}", ROWS, ROWS.columns),
    add_chunks=_copying("chunks", CHUNKS, (*CHUNK_PLACE, *CHUNK_VALUES)),
    add_entries=_copying("entries_{batch:016x}", ENTRIES, ENTRIES.columns),
    unique_indexes=(
        "CREATE UNIQUE INDEX ON payments.rows_{batch:016x} (unique_key)",
        "CREATE UNIQUE INDEX ON payments.rows_{batch:016x} (unique_reference)",
    ),
    indexes=(
        "ALTER TABLE payments.rows_{batch:016x} ADD PRIMARY KEY (number, version)",
        "ALTER TABLE payments.row_states_{batch:016x} ADD PRIMARY KEY (number)",
        "ANALYZE payments.rows_{batch:016x}",
        "ANALYZE payments.row_states_{batch:016x}",
    ),
    keep_key=(
        """
        UPDATE payments.batches SET keys = array_append(keys, key_fingerprint)
        WHERE batch = %s AND key_fingerprint <> ALL(keys)
        """,
    ),
    buckets="""
        SELECT at, seconds, sum(created)::int8, sum(refused)::int8, sum(failed)::int8, sum(no_answer)::int8,
            max(allowed), least(sum(closed), seconds)::float8
        FROM payments.series WHERE batch = %s AND at >= %s GROUP BY at, seconds
    """,
    times="SELECT class, sum(answers)::int8 FROM payments.answer_times WHERE batch = %s GROUP BY class",
)


def locking_all(batch: int) -> Statement:
    """Make a statement that locks all chunks."""
    return "SELECT 1 FROM payments.chunks WHERE batch = %s ORDER BY chunk FOR UPDATE", (batch,)


def observing(batches: Iterable[int]) -> Statement:
    """Make the statement that records which standbys there are. An asynchronous one stays on record."""
    return (
        f"UPDATE payments.batches b SET standbys = f.seen FROM ({STANDBYS}) f "
        f"WHERE b.batch = ANY(%b::int8[]) AND {HERE} AND b.standbys <> f.seen "
        "AND b.standbys <> 'asynchronous'",
        (sorted(batches),),
    )
