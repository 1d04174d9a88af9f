"""SQLite's words: the tables of a file, and the shared statements as SQLite takes them."""

from __future__ import annotations

import re
from typing import Any, Final

import attrs

from ..rows import STATE
from ..statements import BATCH_COLUMNS, SHARED_NAMES, Copying, Statements

TABLES: Final = (
    """
    CREATE TABLE batches (
        batch INTEGER PRIMARY KEY,
        batch_id TEXT NOT NULL,
        environment TEXT NOT NULL,
        base_url TEXT NOT NULL,
        key_fingerprint TEXT NOT NULL,
        input_hash TEXT NOT NULL,
        input_stat TEXT NOT NULL,
        created_at DOUBLE NOT NULL,
        client_version TEXT NOT NULL,
        schema INTEGER NOT NULL,
        rows INTEGER NOT NULL,
        totals TEXT NOT NULL,
        extra TEXT NOT NULL,
        chunk_size INTEGER NOT NULL,
        chunks INTEGER NOT NULL,
        described_in INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE chunks (
        batch INTEGER NOT NULL,
        chunk INTEGER NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        granted_to INTEGER NOT NULL,
        lease BLOB,
        entries INTEGER NOT NULL,
        head BLOB NOT NULL,
        digest BLOB NOT NULL,
        unsent INTEGER NOT NULL,
        in_flight INTEGER NOT NULL,
        in_doubt INTEGER NOT NULL,
        created INTEGER NOT NULL,
        refused INTEGER NOT NULL,
        not_final INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        totals TEXT NOT NULL,
        PRIMARY KEY (batch, chunk)
    ) WITHOUT ROWID
    """,
    # `changes` last, so that reading the others does not read this
    """
    CREATE TABLE entries (
        batch INTEGER NOT NULL,
        chunk INTEGER NOT NULL,
        number INTEGER NOT NULL,
        wall DOUBLE NOT NULL,
        monotonic DOUBLE NOT NULL,
        session TEXT NOT NULL,
        server DOUBLE,
        kind TEXT NOT NULL,
        lease BLOB,
        rows_digest BLOB NOT NULL,
        hash BLOB NOT NULL,
        changes TEXT NOT NULL,
        PRIMARY KEY (batch, chunk, number)
    ) WITHOUT ROWID
    """,
    # amounts are text: a REAL would lose cents
    """
    CREATE TABLE rows (
        number INTEGER NOT NULL,
        version INTEGER NOT NULL,
        line INTEGER,
        row_key TEXT NOT NULL,
        reference TEXT NOT NULL,
        amount TEXT NOT NULL,
        currency TEXT NOT NULL,
        method TEXT NOT NULL,
        body BLOB NOT NULL,
        body_hash TEXT NOT NULL,
        idempotency_key TEXT NOT NULL,
        metadata TEXT,
        unique_key TEXT,
        unique_reference TEXT,
        PRIMARY KEY (number, version)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE row_states (
        number INTEGER PRIMARY KEY,
        version INTEGER NOT NULL,
        state TEXT NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        intents INTEGER NOT NULL,
        cleared INTEGER NOT NULL,
        payout_id TEXT NOT NULL,
        service_status TEXT,
        payout_end TEXT NOT NULL,
        had_arrived BOOLEAN NOT NULL,
        earlier_arrived BOOLEAN NOT NULL,
        payout_money TEXT,
        failure_code TEXT,
        failure_message TEXT,
        first_intent INTEGER,
        key_intent INTEGER,
        last_intent INTEGER,
        changed_in INTEGER NOT NULL,
        idempotency_key TEXT,
        rank BIGINT NOT NULL,
        digest BLOB NOT NULL
    )
    """,
)
FIGURES: Final = (
    # the buckets of a series: figures, which no hash covers
    """
    CREATE TABLE IF NOT EXISTS series (
        batch INTEGER NOT NULL,
        lane INTEGER NOT NULL,
        at INTEGER NOT NULL,
        seconds INTEGER NOT NULL,
        created INTEGER NOT NULL,
        refused INTEGER NOT NULL,
        failed INTEGER NOT NULL,
        no_answer INTEGER NOT NULL,
        allowed DOUBLE,
        closed DOUBLE NOT NULL,
        PRIMARY KEY (batch, lane, at, seconds)
    ) WITHOUT ROWID
    """,
    # the histogram; class -1 counts requests without an answer
    """
    CREATE TABLE IF NOT EXISTS answer_times (
        batch INTEGER NOT NULL,
        lane INTEGER NOT NULL,
        class INTEGER NOT NULL,
        answers INTEGER NOT NULL,
        PRIMARY KEY (batch, lane, class)
    ) WITHOUT ROWID
    """,
    # attempts of rows that were not created at once: `RowAttempts` as JSON text
    """
    CREATE TABLE IF NOT EXISTS attempts (
        batch INTEGER NOT NULL,
        number INTEGER NOT NULL,
        attempts TEXT NOT NULL,
        PRIMARY KEY (batch, number)
    ) WITHOUT ROWID
    """,
)
"""They may be missing: then they are made anew."""


def in_sqlite(sql: str) -> str:
    """Adapt a statement: a file has no schema and no second batch, and takes a list as JSON text."""
    sql = sql.replace("payments.", "").replace("_{batch:016x}", "")
    sql = re.sub(r"= ANY\(%b::\w+\[\]\)", "IN (SELECT value FROM json_each(?))", sql)
    return sql.replace("%s", "?")


def _shared() -> dict[str, Any]:
    """The statements that are the same in both databases."""
    found = {field.name: field.default for field in attrs.fields(Statements)}
    shared: dict[str, Any] = {name: in_sqlite(sql) for name, sql in found.items() if isinstance(sql, str)}
    names = {name: (in_sqlite(count), in_sqlite(first)) for name, (count, first) in SHARED_NAMES.items()}
    return {**shared, "shared_names": names}


_SET: Final = ", ".join(f"{name} = ?" for name in (*STATE, "version", "idempotency_key", "rank", "digest"))
_STATES: Final = ", ".join((*STATE, "version", "idempotency_key", "rank", "digest", "number"))
_ADD_ROW: Final = Copying("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
SQL: Final = Statements(
    **_shared(),
    named=str,
    lanes=1,
    lock_chunks="""
        SELECT 0.0, 'open', NULL, 1, 0, 0, chunk, first, last, granted_to, lease, entries, head, digest,
            totals, generation
        FROM chunks WHERE batch = ? AND chunk IN (SELECT value FROM json_each(?)) ORDER BY chunk
    """,
    set_states=f"UPDATE row_states SET {_SET} WHERE number = ?",
    import_rows=_ADD_ROW,
    import_states=Copying(
        f"INSERT INTO row_states ({_STATES}) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    ),
    add_rows=_ADD_ROW,
    add_chunks=Copying(
        """
        INSERT INTO chunks (batch, chunk, first, last, granted_to, entries, head, digest, unsent, in_flight,
            in_doubt, created, refused, not_final, generation, totals)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
    ),
    add_entries=Copying(
        """
        INSERT INTO entries (batch, chunk, number, wall, monotonic, session, server, kind, lease,
            rows_digest, hash, changes)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
    ),
    unique_indexes=(
        "CREATE UNIQUE INDEX row_keys ON rows (unique_key)",
        "CREATE UNIQUE INDEX row_references ON rows (unique_reference)",
    ),
    indexes=(
        "CREATE INDEX unpaid ON row_states (number) WHERE payout_end IN ('failed', 'unclear')",
        """
        CREATE INDEX followed ON row_states (number, first_intent)
        WHERE state = 'CREATED' AND payout_end = 'open'
        """,
    ),
)
ADD_BATCH: Final = """
    INSERT INTO batches (batch, batch_id, environment, base_url, key_fingerprint, input_hash, input_stat,
        client_version, schema, created_at, rows, totals, extra, chunk_size, chunks, described_in)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, '{}', '{}', 0, 0, 1)
"""
THE_BATCH: Final = f"SELECT {BATCH_COLUMNS} FROM batches b"
LAST_ENTRIES: Final = """
    SELECT number, wall, monotonic, session, server, kind, changes, rows_digest, hash, lease
    FROM entries WHERE batch = 1 AND chunk = ? AND number > ? ORDER BY number
"""
"""The end of a chain; reads what `chunks.entry_of` takes."""
RUNS: Final = """
    SELECT session, max(number), min(wall) FILTER (WHERE kind IN ('claim', 'resend')) AS began, max(wall)
    FROM entries WHERE batch = 1 AND chunk = 1 GROUP BY session HAVING began IS NOT NULL ORDER BY max(number)
"""
"""The runs that sent a row: session, last entry, when they began and ended."""
LEFT_IN_FLIGHT: Final = """
    SELECT count(*) FROM (
        SELECT json_extract(row.value, '$[1]') AS state, max(entry.number)
        FROM (
            SELECT number, changes FROM entries
            WHERE batch = 1 AND chunk = 1 AND number <= ? AND session = ? AND kind <> 'import'
            ORDER BY number DESC LIMIT 64
        ) AS entry, json_each(entry.changes) AS row
        GROUP BY json_extract(row.value, '$[0]')
    ) WHERE state = 'IN_FLIGHT'
"""
"""Counts rows that the last entries of a session leave in flight: it was killed or cut off."""
OF_FORM: Final = {"batches": "SELECT schema FROM batches", "header": "SELECT schema FROM header"}
"""{table: the number of its ledger's form}: up to number 3 it was another table."""
TABLE_NAMES: Final = "SELECT name FROM sqlite_master WHERE type = 'table'"
