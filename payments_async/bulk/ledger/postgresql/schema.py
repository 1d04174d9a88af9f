"""The tables, as SQL text.

Two tables are made for each batch, in the transaction of its import: `rows_…`, which is never updated, and
`row_states_…`, which is narrow and has no index on what changes. On their data there is no constraint but
unique hashes: PostgreSQL shows the row that breaks one, in its log too. Amounts are text, for exactness.
"""

from __future__ import annotations

from typing import Final

SCHEMA: Final = 4
"""The version of the tables. A database with another one is refused."""

_FIGURES: Final = (
    # the buckets of a series: figures, which no hash covers
    """CREATE TABLE payments.series (
        batch bigint,
        lane smallint,
        at bigint,
        seconds integer,
        created integer NOT NULL,
        refused integer NOT NULL,
        failed integer NOT NULL,
        no_answer integer NOT NULL,
        allowed double precision,
        closed double precision NOT NULL,
        PRIMARY KEY (batch, lane, at, seconds)) WITH (fillfactor = 50)""",
    # the histogram; class -1 counts requests without an answer
    """CREATE TABLE payments.answer_times (
        batch bigint,
        lane smallint,
        class smallint,
        answers bigint NOT NULL,
        PRIMARY KEY (batch, lane, class)) WITH (fillfactor = 50)""",
    """CREATE TABLE payments.attempts (
        batch bigint,
        number integer,
        attempts text NOT NULL,
        PRIMARY KEY (batch, number)) WITH (fillfactor = 50)""",
)
FIGURES_TABLES: Final = ("series", "answer_times", "attempts")
"""The tables with figures of runs: the first two have nothing of single rows."""

UPGRADES: Final[dict[int, tuple[str, ...]]] = {
    1: _FIGURES,
    2: ("ALTER TABLE payments.workers ADD COLUMN trouble text",),
    3: (
        "ALTER TABLE payments.chunks DROP COLUMN finals",
        "ALTER TABLE payments.chunks RENAME COLUMN awaited TO not_final",
        "ALTER TABLE payments.batches ADD COLUMN extra text NOT NULL DEFAULT '{}'",
    ),
}
"""{version: statements that bring tables of this version to the next one's form}."""

TABLES: Final = (
    "CREATE SCHEMA IF NOT EXISTS payments",
    """CREATE TABLE payments.meta (
        version integer NOT NULL,
        made_by text NOT NULL,
        made_at timestamptz NOT NULL DEFAULT clock_timestamp())""",
    # the number is random: after a fail-over a sequence would give one again
    """CREATE TABLE payments.batches (
        batch bigint PRIMARY KEY,
        batch_id text NOT NULL UNIQUE,
        environment text NOT NULL,
        base_url text NOT NULL,
        key_fingerprint text NOT NULL,
        keys text[] NOT NULL,
        input_hash text NOT NULL,
        input_stat text NOT NULL,
        created_at double precision NOT NULL,
        client_version text NOT NULL,
        schema integer NOT NULL,
        rows integer NOT NULL,
        totals text NOT NULL,
        extra text NOT NULL DEFAULT '{}',
        chunk_size integer NOT NULL,
        chunks integer NOT NULL,
        described_in integer NOT NULL,
        state text NOT NULL,
        reason text,
        rules text NOT NULL,
        stopped text,
        store text NOT NULL DEFAULT current_setting('payments.store'),
        tables bigint NOT NULL DEFAULT to_regclass('payments.batches')::oid::bigint,
        standbys text NOT NULL DEFAULT 'none',
        lossy_standby boolean NOT NULL DEFAULT false,
        losses integer NOT NULL DEFAULT 0,
        lost_in integer,
        resumes_as text)""",
    "CREATE INDEX batches_by_input ON payments.batches (input_hash)",
    # no index but the key, and half of each page free, so that an update stays on its page
    """CREATE TABLE payments.chunks (
        batch bigint,
        chunk integer,
        first integer NOT NULL,
        last integer NOT NULL,
        granted_to integer NOT NULL,
        lease bytea,
        holder bytea,
        expires timestamptz,
        look_at timestamptz,
        entries integer NOT NULL,
        head bytea NOT NULL,
        digest bytea NOT NULL,
        unsent integer NOT NULL,
        in_flight integer NOT NULL,
        in_doubt integer NOT NULL,
        created integer NOT NULL,
        refused integer NOT NULL,
        not_final integer NOT NULL,
        generation integer NOT NULL,
        totals text NOT NULL,
        PRIMARY KEY (batch, chunk)) WITH (fillfactor = 50)""",
    """CREATE TABLE payments.entries (
        batch bigint,
        chunk integer,
        number integer,
        wall double precision NOT NULL,
        monotonic double precision NOT NULL,
        session text NOT NULL,
        server double precision,
        kind text NOT NULL,
        lease bytea,
        rows_digest bytea NOT NULL,
        hash bytea NOT NULL,
        changes text NOT NULL,
        PRIMARY KEY (batch, chunk, number))""",
    """CREATE TABLE payments.workers (
        id bytea PRIMARY KEY,
        host text NOT NULL,
        pid integer NOT NULL,
        version text NOT NULL,
        slots integer NOT NULL,
        started timestamptz NOT NULL,
        last_seen timestamptz NOT NULL,
        rows bigint NOT NULL,
        pace double precision,
        drain boolean NOT NULL DEFAULT false,
        trouble text) WITH (fillfactor = 50)""",
    *_FIGURES,
)

_FILL: Final = 50
"""Percent of a page that the import fills with row states, so that most updates of a row stay on its page."""


def rows_table(batch: int) -> str:
    """The name of the table with a batch's rows."""
    return f"payments.rows_{batch:016x}"


def states_table(batch: int) -> str:
    """The name of the table with the states of a batch's rows."""
    return f"payments.row_states_{batch:016x}"


def batch_tables(batch: int) -> tuple[str, ...]:
    """Statements that make the tables of one batch, without their indexes (`dialect`)."""
    return (
        f"""CREATE TABLE {rows_table(batch)} (
            number integer,
            version smallint,
            line integer,
            row_key text,
            reference text,
            amount text,
            currency text,
            method text,
            body bytea,
            body_hash text,
            idempotency_key text,
            metadata text,
            unique_key bytea,
            unique_reference bytea)""",
        f"""CREATE TABLE {states_table(batch)} (
            number integer,
            version smallint,
            state text,
            generation integer,
            revision integer,
            epoch integer,
            intents integer,
            cleared integer,
            payout_id text,
            service_status text,
            payout_end text,
            had_arrived boolean,
            earlier_arrived boolean,
            payout_money text,
            failure_code text,
            failure_message text,
            first_intent integer,
            key_intent integer,
            last_intent integer,
            changed_in integer,
            idempotency_key text,
            rank bigint,
            digest bytea) WITH (fillfactor = {_FILL})""",
    )
