"""The tables, as SQL text.

Four tables are made for each batch, in the transaction of its import. To forget it is to drop them:
`rows_…`, which is never updated, `row_states_…`, which is narrow and has no index on what changes,
`entries_…` and `attempts_…`. The only constraint on rows is that hashes are unique: PostgreSQL writes a row
that breaks a constraint into its log. Amounts are text, for exactness.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..tables import ATTEMPTS, BATCHES, CHUNKS, ENTRIES, FIGURES, ROW_STATES, ROWS, Table

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
RIGHTS: Final[Mapping[str, str]] = {
    "rows": "SELECT, INSERT, UPDATE",
    "row_states": "SELECT, INSERT, UPDATE",
    "entries": "SELECT, INSERT",
    "attempts": "SELECT, INSERT, UPDATE",
}
"""{kind of table that each batch has: the rights on it of those who work on chunks}."""
_ENDINGS: Final = ("closed text", "certificate text", "forgotten text")
"""JSON: what the chain says of the last closing, the last certificate, what is kept of a forgotten batch."""
_REFERENCES: Final = """CREATE TABLE payments.forgotten_references (
    batch int8 NOT NULL,
    first bytea NOT NULL,
    hashes bytea NOT NULL,
    PRIMARY KEY (batch, first))"""
"""Sorted hashes of the references of forgotten batches, many to a table row, which begins with `first`."""
# the numbers of batches are in the tables' names, as `table_of` writes them
_TABLES_OF_BATCHES: Final = """DO $$
DECLARE
    one record;
    role record;
    name text;
BEGIN
    FOR one IN SELECT batch, lpad(to_hex(batch), 16, '0') AS number FROM payments.batches LOOP
        FOREACH name IN ARRAY ARRAY['entries', 'attempts'] LOOP
            EXECUTE 'CREATE TABLE payments.' || name || '_' || one.number
                || ' (LIKE payments.' || name || ' INCLUDING ALL)';
            EXECUTE 'INSERT INTO payments.' || name || '_' || one.number
                || ' SELECT * FROM payments.' || name || ' WHERE batch = ' || one.batch;
            FOR role IN SELECT DISTINCT r.rolname FROM pg_class c, aclexplode(c.relacl) a
                JOIN pg_roles r ON r.oid = a.grantee WHERE c.oid = 'payments.chunks'::regclass
                AND a.privilege_type = 'UPDATE' AND r.rolname <> current_user
            LOOP
                EXECUTE 'GRANT SELECT, INSERT' || CASE name WHEN 'attempts' THEN ', UPDATE' ELSE '' END
                    || ' ON payments.' || name || '_' || one.number || ' TO ' || quote_ident(role.rolname);
            END LOOP;
        END LOOP;
    END LOOP;
END $$"""
UPGRADES: Final[dict[int, tuple[str, ...]]] = {
    1: (*_FIGURES, _making("attempts", ATTEMPTS)),
    2: ("ALTER TABLE payments.workers ADD COLUMN trouble text",),
    3: (
        "ALTER TABLE payments.chunks DROP COLUMN finals",
        "ALTER TABLE payments.chunks RENAME COLUMN awaited TO not_final",
        "ALTER TABLE payments.batches ADD COLUMN extra text NOT NULL DEFAULT '{}'",
    ),
    4: (f"ALTER TABLE payments.chunks ADD COLUMN {_STAGE}", _BY_STAGE),
    5: (
        "ALTER TABLE payments.batches ADD COLUMN hash_key bytea NOT NULL DEFAULT ''",
        *(f"ALTER TABLE payments.batches ADD COLUMN {column}" for column in _ENDINGS),
        "UPDATE payments.batches b SET closed = (e.changes::jsonb || jsonb_build_object('at', e.wall))::text "
        "FROM (SELECT DISTINCT ON (batch) batch, wall, changes FROM payments.entries WHERE chunk = 0 "
        "AND kind = 'root' ORDER BY batch, number DESC) e WHERE e.batch = b.batch",
        _TABLES_OF_BATCHES,
        "DROP TABLE payments.entries, payments.attempts",
        _REFERENCES,
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
        *_ENDINGS,
        "UNIQUE (batch_id)",
        half=False,
    ),
    "CREATE INDEX batches_by_input ON payments.batches (input_hash)",
    _making("chunks", CHUNKS, "holder bytea", "expires timestamptz", "look_at timestamptz", _STAGE),
    _BY_STAGE,
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
    _REFERENCES,
)

_FILL: Final = 50
"""Percent of a page that the import fills with row states, so that most updates of a row stay on its page."""


def table_of(kind: str, batch: int) -> str:
    """The name of one of a batch's own tables (`RIGHTS` has their kinds)."""
    return f"payments.{kind}_{batch:016x}"


def dropping(batch: int) -> str:
    """Make the statement that drops a batch's own tables."""
    return f"DROP TABLE {', '.join(table_of(kind, batch) for kind in RIGHTS)}"


def batch_tables(batch: int) -> tuple[str, ...]:
    """Statements that make the tables of one batch, those of rows without their indexes (`dialect`)."""
    rows, states = (table.declared().replace(" NOT NULL", "") for table in (ROWS, ROW_STATES))
    return (
        f"CREATE TABLE {table_of('rows', batch)} ({rows})",
        f"CREATE TABLE {table_of('row_states', batch)} ({states}) WITH (fillfactor = {_FILL})",
        _making(f"entries_{batch:016x}", ENTRIES, half=False),
        _making(f"attempts_{batch:016x}", ATTEMPTS),
    )
