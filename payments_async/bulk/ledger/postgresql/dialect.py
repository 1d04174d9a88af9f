"""PostgreSQL's own statements: what locks, what takes many rows at once, and what copies without a log."""

from __future__ import annotations

import hashlib
from typing import Final

from ..statements import Copying, Statement, Statements

HERE: Final = "b.store = current_setting('payments.store') AND b.tables = b.tableoid::bigint"
"""Whether a batch's last commit went to the store that the session works on (`failover`)."""


def name_hash(name: str) -> bytes:
    """The hash under which a key or reference is unique: no error message shows more."""
    return hashlib.sha256(name.encode()).digest()


_ROW_COLUMNS: Final = (
    "number, version, line, row_key, reference, amount, currency, method, body, body_hash, idempotency_key, "
    "metadata, unique_key, unique_reference"
)
_ROW_TYPES: Final = (
    *("int4", "int2", "int4", "text", "text", "text", "text", "text", "bytea", "text", "text"),
    *("text", "bytea", "bytea"),
)
_COPY_ROWS: Final = f"COPY payments.rows_{{batch:016x}} ({_ROW_COLUMNS}) FROM STDIN"
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
    set_states="""
        UPDATE payments.row_states_{batch:016x} s SET state = u.state, generation = u.generation,
            revision = u.revision, epoch = u.epoch, intents = u.intents, cleared = u.cleared,
            payout_id = u.payout_id, service_status = u.service_status, payout_end = u.payout_end,
            had_arrived = u.had_arrived, earlier_arrived = u.earlier_arrived,
            payout_money = u.payout_money, failure_code = u.failure_code, failure_message = u.failure_message,
            first_intent = u.first_intent, key_intent = u.key_intent, last_intent = u.last_intent,
            changed_in = u.changed_in, version = u.version, idempotency_key = u.idempotency_key,
            rank = u.rank, digest = u.digest
        FROM unnest(%b::text[], %b::int4[], %b::int4[], %b::int4[], %b::int4[], %b::int4[], %b::text[],
            %b::text[], %b::text[], %b::bool[], %b::bool[], %b::text[], %b::text[], %b::text[], %b::int4[],
            %b::int4[], %b::int4[], %b::int4[], %b::int2[], %b::text[], %b::int8[], %b::bytea[], %b::int4[])
        AS u(state, generation, revision, epoch, intents, cleared, payout_id, service_status, payout_end,
            had_arrived, earlier_arrived, payout_money, failure_code, failure_message, first_intent,
            key_intent, last_intent, changed_in, version, idempotency_key, rank, digest, number)
        WHERE s.number = u.number
    """,
    import_rows=Copying(f"{_COPY_ROWS} (FORMAT binary, FREEZE)", _ROW_TYPES),
    import_states=Copying(
        """
        COPY payments.row_states_{batch:016x} (state, generation, revision, epoch, intents, cleared,
            payout_id, service_status, payout_end, had_arrived, earlier_arrived, payout_money,
            failure_code, failure_message, first_intent, key_intent, last_intent, changed_in, version,
            idempotency_key, rank, digest, number)
        FROM STDIN (FORMAT binary, FREEZE)
        """,
        (
            *("text", "int4", "int4", "int4", "int4", "int4", "text", "text", "text", "bool", "bool"),
            *(
                "text",
                "text",
                "text",
                "int4",
                "int4",
                "int4",
                "int4",
                "int2",
                "text",
                "int8",
                "bytea",
                "int4",
            ),
        ),
    ),
    add_rows=Copying(f"{_COPY_ROWS} (FORMAT binary)", _ROW_TYPES),
    add_chunks=Copying(
        """
        COPY payments.chunks (batch, chunk, first, last, granted_to, entries, head, digest, unsent,
            in_flight, in_doubt, created, refused, not_final, generation, totals)
        FROM STDIN (FORMAT binary)
        """,
        (
            *("int8", "int4", "int4", "int4", "int4", "int4", "bytea", "bytea", "int4", "int4"),
            *("int4", "int4", "int4", "int4", "int4", "text"),
        ),
    ),
    add_entries=Copying(
        """
        COPY payments.entries (batch, chunk, number, wall, monotonic, session, server, kind, lease,
            rows_digest, hash, changes)
        FROM STDIN (FORMAT binary)
        """,
        (
            *("int8", "int4", "int4", "float8", "float8", "text", "float8", "text", "bytea"),
            *("bytea", "bytea", "text"),
        ),
    ),
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
