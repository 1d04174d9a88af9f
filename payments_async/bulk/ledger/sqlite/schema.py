"""The ledger's tables. Amounts are text: a REAL would lose cents."""

from __future__ import annotations

from typing import Final

SCHEMA: Final = 4
"""The schema version. A file with another one is refused; a change of the tables raises the number."""

TABLES: Final = (
    # `told_in`: the entry that carries these facts; `head`: the last one, so that a chain that was cut
    # short is detected
    """
    CREATE TABLE header (
        id INTEGER NOT NULL,
        schema INTEGER NOT NULL,
        batch_id TEXT NOT NULL,
        environment TEXT NOT NULL,
        base_url TEXT NOT NULL,
        key_fingerprint TEXT NOT NULL,
        input_hash TEXT NOT NULL,
        input_stat TEXT NOT NULL,
        created_at DOUBLE NOT NULL,
        client_version TEXT NOT NULL,
        rows INTEGER NOT NULL,
        totals TEXT NOT NULL,
        extra TEXT NOT NULL,
        told_in INTEGER NOT NULL,
        head INTEGER NOT NULL,
        head_hash BLOB NOT NULL,
        PRIMARY KEY (id)
    )
    """,
    """
    CREATE TABLE rows (
        number INTEGER NOT NULL,
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
        rank BIGINT NOT NULL,
        digest BLOB NOT NULL,
        PRIMARY KEY (number)
    )
    """,
    """
    CREATE TABLE totals (
        outcome TEXT NOT NULL,
        currency TEXT NOT NULL,
        rows INTEGER NOT NULL,
        amount TEXT NOT NULL,
        PRIMARY KEY (outcome, currency)
    )
    """,
    # `changes` last, so that reading the others does not read this
    """
    CREATE TABLE entries (
        number INTEGER NOT NULL,
        wall DOUBLE NOT NULL,
        monotonic DOUBLE NOT NULL,
        session TEXT NOT NULL,
        server DOUBLE,
        kind TEXT NOT NULL,
        rows_digest BLOB NOT NULL,
        hash BLOB NOT NULL,
        changes TEXT NOT NULL,
        PRIMARY KEY (number)
    )
    """,
)
FIGURES: Final = (
    # the buckets of a `RunSeries`: figures, which no hash covers
    """
    CREATE TABLE IF NOT EXISTS series (
        at INTEGER NOT NULL,
        seconds INTEGER NOT NULL,
        created INTEGER NOT NULL,
        refused INTEGER NOT NULL,
        failed INTEGER NOT NULL,
        no_answer INTEGER NOT NULL,
        "limit" DOUBLE,
        closed DOUBLE NOT NULL,
        PRIMARY KEY (at, seconds)
    ) WITHOUT ROWID
    """,
    # its histogram; class -1 counts requests without an answer
    """
    CREATE TABLE IF NOT EXISTS answer_times (
        class INTEGER NOT NULL,
        answers INTEGER NOT NULL,
        PRIMARY KEY (class)
    )
    """,
    # attempts of rows that were not created at once: `RowAttempts` as JSON text
    """
    CREATE TABLE IF NOT EXISTS attempts (
        number INTEGER NOT NULL,
        attempts TEXT NOT NULL,
        PRIMARY KEY (number)
    )
    """,
)
"""Made when the first figures are stored: they may be missing."""

INDEXES: Final = (
    "CREATE UNIQUE INDEX row_keys ON rows (row_key)",
    "CREATE UNIQUE INDEX row_references ON rows (reference)",
    "CREATE INDEX failed ON rows (number) WHERE payout_end = 'failed'",
    "CREATE INDEX retried ON rows (generation) WHERE generation > 0",
    "CREATE INDEX by_state ON rows (state, number)",
    """
    CREATE INDEX followed ON rows (number, first_intent)
    WHERE state = 'CREATED' AND payout_end = 'open'
    """,
)
"""Made once all rows are imported: that is faster, and finds all duplicates at once."""
