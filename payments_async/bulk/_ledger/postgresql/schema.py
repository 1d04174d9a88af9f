"""The tables, as SQL text.

Two tables are made for each batch, in the transaction of its import: `rows_…`, which is never updated, and
`row_states_…`, which is narrow and has no index on what changes. The only constraint on
their data is that hashes are unique: PostgreSQL writes a row that breaks a constraint into its log. Amounts
are text, for exactness.
"""

from __future__ import annotations

from typing import Final

from ..tables import BATCHES, CHUNKS, ENTRIES, FIGURES, ROW_STATES, ROWS, Table

SCHEMA: Final = 6
"""The version of the tables. A database with another one is refused."""


def _making(name: str, table: Table, *also: str, half: bool = True) -> str:
    """Make the statement that creates a table. `half`: half of each page stays free, for updates."""
    columns = ", ".join((table.declared(), *also, f"PRIMARY KEY ({table.key})"))
    return f"CREATE TABLE payments.{name} ({columns}){' WITH (fillfactor = 50)' if half else ''}"


_STAGE: Final = (
    "stage int2 GENERATED ALWAYS AS (CASE WHEN lease IS NOT NULL OR in_flight > 0 THEN 1 "
    "WHEN unsent > 0 THEN 2 WHEN in_doubt > 0 THEN 0 END) STORED"
)
"""What is left of a chunk: 0 rows in doubt, 2 new rows, 1 either, and it has or had a holder; NULL nothing.

No commit under a lease changes it. An index on what those change would cost each of them an entry of its own.
"""
_BY_STAGE: Final = (
    "CREATE INDEX chunks_by_stage ON payments.chunks (batch, stage, chunk) WHERE stage IS NOT NULL"
)
_FIGURES: Final = tuple(_making(name, table) for name, table in FIGURES.items())
UPGRADES: Final[dict[int, tuple[str, ...]]] = {
    1: _FIGURES,
    2: ("ALTER TABLE payments.workers ADD COLUMN trouble text",),
    3: (
        "ALTER TABLE payments.chunks DROP COLUMN finals",
        "ALTER TABLE payments.chunks RENAME COLUMN awaited TO not_final",
        "ALTER TABLE payments.batches ADD COLUMN extra text NOT NULL DEFAULT '{}'",
    ),
    4: (f"ALTER TABLE payments.chunks ADD COLUMN {_STAGE}", _BY_STAGE),
    5: ("ALTER TABLE payments.batches ADD COLUMN hash_key bytea NOT NULL DEFAULT ''",),
}
"""{version: statements that bring tables of this version to the next one's form}."""

TABLES: Final = (
    "CREATE SCHEMA IF NOT EXISTS payments",
    """CREATE TABLE payments.meta (
        version integer NOT NULL,
        made_by text NOT NULL,
        made_at timestamptz NOT NULL DEFAULT clock_timestamp())""",
    # the number is random: after a fail-over a sequence would give one again
    _making(
        "batches",
        BATCHES,
        "keys text[] NOT NULL",
        "state text NOT NULL",
        "reason text",
        "rules text NOT NULL",
        "stopped text",
        "store text NOT NULL DEFAULT current_setting('payments.store')",
        "tables bigint NOT NULL DEFAULT to_regclass('payments.batches')::oid::bigint",
        "standbys text NOT NULL DEFAULT 'none'",
        "lossy_standby boolean NOT NULL DEFAULT false",
        "losses integer NOT NULL DEFAULT 0",
        "lost_in integer",
        "resumes_as text",
        "UNIQUE (batch_id)",
        half=False,
    ),
    "CREATE INDEX batches_by_input ON payments.batches (input_hash)",
    _making("chunks", CHUNKS, "holder bytea", "expires timestamptz", "look_at timestamptz", _STAGE),
    _BY_STAGE,
    _making("entries", ENTRIES, half=False),
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
    rows, states = (table.declared().replace(" NOT NULL", "") for table in (ROWS, ROW_STATES))
    return (
        f"CREATE TABLE {rows_table(batch)} ({rows})",
        f"CREATE TABLE {states_table(batch)} ({states}) WITH (fillfactor = {_FILL})",
    )
