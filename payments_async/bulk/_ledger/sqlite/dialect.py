"""A file's tables (CREATE TABLE), the shared statements as SQLite takes them, and those that it alone has."""

from __future__ import annotations

import re
from typing import Any, Final

import attrs

from .. import tables
from ..statements import (
    BATCH_COLUMNS,
    CHUNK_PLACE,
    CHUNK_VALUES,
    ENTRY,
    SHARED_NAMES,
    STATE_VALUES,
    Copying,
    Statements,
    inserting,
)
from ..tables import BATCHES, CHUNKS, ENTRIES, ROW_STATES, ROWS, Table

_TYPES: Final = {
    **dict.fromkeys(("int2", "int4", "int8"), "INTEGER"),
    "float8": "DOUBLE",
    "bool": "BOOLEAN",
    "bytea": "BLOB",
    "text": "TEXT",
}


def _making(name: str, table: Table) -> str:
    """Make the statement that creates a table. A key of one number is SQLite's own of a table row."""
    ending = " WITHOUT ROWID" if "," in table.key else ""
    return f"CREATE TABLE IF NOT EXISTS {name} ({table.declared(_TYPES)}, PRIMARY KEY ({table.key})){ending}"


TABLES: Final = (
    _making("batches", BATCHES),
    _making("chunks", CHUNKS),
    _making("entries", ENTRIES),
    _making("rows", ROWS),
    _making("row_states", ROW_STATES),
)
_FIGURES: Final = {**tables.FIGURES, "attempts": tables.ATTEMPTS}
FIGURES: Final = tuple(_making(name, table) for name, table in _FIGURES.items())
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


_SET: Final = ", ".join(f"{name} = ?" for name in STATE_VALUES)
_ADD_ROW: Final = Copying(in_sqlite(inserting("rows", ROWS.columns)))
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
    import_states=Copying(in_sqlite(inserting("row_states", (*STATE_VALUES, "number")))),
    add_rows=_ADD_ROW,
    add_chunks=Copying(in_sqlite(inserting("chunks", (*CHUNK_PLACE, *CHUNK_VALUES)))),
    add_entries=Copying(in_sqlite(inserting("entries", ENTRIES.columns))),
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
ADD_BATCH: Final = f"""
    INSERT INTO batches ({BATCHES.names}) VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, 0, '{{}}', '{{}}', 0, 0, 1,
        randomblob(32))
"""
THE_BATCH: Final = f"SELECT {BATCH_COLUMNS} FROM batches b"
LAST_ENTRIES: Final = in_sqlite(f"{ENTRY} WHERE batch = 1 AND chunk = %s AND number > %s ORDER BY number")
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
