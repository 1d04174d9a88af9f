"""The SQL of the tables that both databases have, as PostgreSQL writes it: `sqlite/dialect.py` adapts it.

`%s` is a value, `%b::type[]` a list. A batch has tables of its own, with its number in their names: `rows_…`
has what is sent, one row for each version of it, `row_states_…` what changes while it is paid, `entries_…`
its chains, and `attempts_…` attempts of rows. `chunks.of_batch` puts the number in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import attrs

from .stored_rows import CONTENT, STATE
from .tables import BATCHES, CHUNKS, ENTRIES, SERIES

Statement = tuple[str, Sequence[Any]]
"""SQL and its values."""
Rows = list[tuple[Any, ...]]
PAGE: Final = 500
"""Rows of a page."""
LAST_NUMBER: Final = 2**31 - 1
"""The highest number that a row can have."""

_STATES: Final = "payments.row_states_{batch:016x}"
_CONTENTS: Final = "payments.rows_{batch:016x}"
_ENTRIES: Final = "payments.entries_{batch:016x}"
_ATTEMPTS: Final = "payments.attempts_{batch:016x}"
_KEY: Final = "coalesce(s.idempotency_key, r.idempotency_key)"
_CONTENT_COLUMNS: Final = ", ".join(_KEY if name == "idempotency_key" else f"r.{name}" for name in CONTENT)
_STATE_COLUMNS: Final = ", ".join(f"s.{name}" for name in STATE)
_ROW: Final = f"""
    SELECT {_CONTENT_COLUMNS}, {_STATE_COLUMNS}, s.version, s.idempotency_key, s.rank, s.digest
    FROM {_STATES} s JOIN {_CONTENTS} r ON r.number = s.number AND r.version = s.version
"""
"""Reads what `stored_rows.stored_row` takes."""
_CHUNK: Final = """
    SELECT c.chunk, c.first, c.last, c.granted_to, c.lease, c.entries, c.head, c.digest, c.totals,
        c.generation
    FROM payments.chunks c
"""
"""Reads what `chunks.chunk_of` takes."""
ENTRY: Final = f"""
    SELECT number, wall, monotonic, session, server, kind, changes, rows_digest, hash, lease
    FROM {_ENTRIES}
"""
"""Reads what `chunks.entry_of` takes."""
BATCH_COLUMNS: Final = ", ".join(f"b.{name}" for name in BATCHES.columns)
"""What `batches.batch_of` takes."""
CHUNK_PLACE: Final = ("batch", "chunk", "first", "last", "granted_to")
CHUNK_VALUES: Final = tuple(name for name in CHUNKS.columns if name not in (*CHUNK_PLACE, "lease"))
"""The columns of a chunk that a commit changes: `chunks.stored_values`."""
STATE_VALUES: Final = (*STATE, "version", "idempotency_key", "rank", "digest")
"""The columns of a row's state that a commit changes; then comes its number (`stored_rows.changed`)."""


def inserting(table: str, columns: Collection[str]) -> str:
    """Make the statement that inserts one row into a table."""
    marks = ", ".join("%s" for _ in columns)
    return f"INSERT INTO payments.{table} ({', '.join(columns)}) VALUES ({marks})"


@attrs.frozen
class Copying:
    """How rows are inserted in bulk."""

    sql: str
    types: tuple[str, ...] = ()
    """The types of the values, where they have to be named."""

    def of_batch(self, batch: int) -> Copying:
        """The same, into a table of this batch."""
        return Copying(self.sql.format(batch=batch), self.types)


def _sharing(column: str) -> tuple[str, str]:
    """Count the values of a column that rows share; find the first of them, each with its first two rows."""
    ranked = f"""
        SELECT {column} AS value, number, line, lag(number) OVER same AS before,
            lag(line) OVER same AS line_before, row_number() OVER same AS place
        FROM {_CONTENTS} WINDOW same AS (PARTITION BY {column} ORDER BY number)
    """
    return (
        f"SELECT count(*) FROM ({ranked}) ranked WHERE place = 2",
        "SELECT value, number, line, before, line_before "
        f"FROM ({ranked}) ranked WHERE place = 2 ORDER BY before LIMIT %s",
    )


SHARED_NAMES: Final = {name: _sharing(name) for name in ("row_key", "reference")}


@attrs.frozen(kw_only=True)
class Statements:
    """The statements of one kind of database."""

    # what each database says in its own way

    named: Callable[[str], str | bytes]
    """What a key or a reference is unique by."""
    lanes: int
    """How many series the figures of runs are kept in: processes of different ones do not wait."""
    lock_chunks: str
    """Locks chunks; reads what `chunks.LockedChunks.of` takes."""
    set_states: str
    """Takes the values that `stored_rows.changed` makes."""
    import_rows: Copying
    """Takes `stored_rows.content`."""
    import_states: Copying
    """Takes `stored_rows.fresh_state`."""
    add_rows: Copying
    """As `import_rows`, into tables that have been there before."""
    add_chunks: Copying
    """Takes place and bounds of a chunk, then `chunks.stored_values`."""
    add_entries: Copying
    """Takes `chunks.entry_values`."""
    unique_indexes: tuple[str, ...]
    """Made once all rows are imported, which is faster; the two that rows may break."""
    indexes: tuple[str, ...]
    """What is made after these."""
    keep_key: tuple[str, ...] = ()
    """What follows when a batch gets another key."""

    # rows

    rows_after: str = f"{_ROW} WHERE s.number > %s AND s.number <= %s ORDER BY s.number LIMIT %s"
    rows_in_state: str = f"""
        {_ROW} WHERE s.number > %s AND s.number <= %s AND s.state = %s ORDER BY s.number LIMIT %s
    """
    numbers_in_state: str = f"""
        SELECT number FROM {_STATES} WHERE number > %s AND number <= %s AND state = %s
        ORDER BY number LIMIT %s
    """
    rows_left: str = f"""
        {_ROW} WHERE s.number > %s AND s.number <= %s AND s.state = %s AND s.changed_in <= %s
        ORDER BY s.number LIMIT %s
    """
    rows_unpaid: str = f"""
        {_ROW} WHERE s.number > %s AND s.number <= %s AND s.payout_end IN ('failed', 'unclear')
        ORDER BY s.number LIMIT %s
    """
    rows_claimable: str = f"""
        {_ROW} WHERE s.number > %s AND s.number <= (
            SELECT c.granted_to FROM payments.chunks c WHERE c.batch = %s AND c.chunk = %s
        ) AND s.state = 'NEW' ORDER BY s.number LIMIT %s
    """
    rows_numbered: str = f"{_ROW} WHERE s.number = ANY(%b::int4[]) ORDER BY s.number"
    row_digests: str = f"SELECT number, rank, digest FROM {_STATES} WHERE number = ANY(%b::int4[])"
    rows_by_keys: str = f"""
        {_ROW} WHERE s.number IN (
            SELECT k.number FROM {_CONTENTS} k WHERE k.unique_key = ANY(%b::bytea[])
        ) ORDER BY s.number
    """
    rows_by_references: str = f"""
        {_ROW} WHERE s.number IN (
            SELECT k.number FROM {_CONTENTS} k WHERE k.unique_reference = ANY(%b::bytea[])
        ) ORDER BY s.number
    """
    """The rows that have, or had, one of these references."""
    last_in_state: str = f"""
        {_ROW} WHERE s.number = (
            SELECT max(n.number) FROM {_STATES} n WHERE n.number BETWEEN %s AND %s AND n.state = %s
        )
    """
    used: str = f"""
        SELECT 1 FROM {_STATES}
        WHERE first_intent IS NOT NULL OR state <> 'NEW' OR generation > 0 LIMIT 1
    """
    awaited: str = f"""
        WITH awaited AS (
            SELECT s.first_intent FROM {_STATES} s
            WHERE s.number BETWEEN %s AND %s AND s.state = 'CREATED' AND s.payout_end = 'open'
        )
        SELECT (SELECT count(*) FROM awaited), min(e.server), count(*) = count(e.server)
        FROM {_ENTRIES} e
        WHERE e.batch = %s AND e.chunk = %s AND e.number IN (SELECT first_intent FROM awaited)
    """
    shared_names: Mapping[str, tuple[str, str]] = attrs.field(factory=lambda: SHARED_NAMES)
    """{column: how many values of it rows share, and the first of these}."""

    # chunks and their chains

    chunks: str = f"{_CHUNK} WHERE c.batch = %s AND c.chunk > 0 ORDER BY c.chunk"
    chunks_numbered: str = f"{_CHUNK} WHERE c.batch = %s AND c.chunk = ANY(%b::int4[]) ORDER BY c.chunk"
    chunk_counts: str = f"""
        SELECT {", ".join(CHUNK_VALUES)} FROM payments.chunks WHERE batch = %s AND chunk = %s
    """
    set_chunk: str = f"""
        UPDATE payments.chunks SET {", ".join(f"{name} = %s" for name in CHUNK_VALUES)}
        WHERE batch = %s AND chunk = %s
    """
    append: str = inserting("entries_{batch:016x}", ENTRIES.columns)
    entries_after: str = f"{ENTRY} WHERE batch = %s AND chunk = %s AND number > %s ORDER BY number LIMIT %s"
    entries_of_row: str = f"""
        SELECT wall, server, changes FROM {_ENTRIES}
        WHERE batch = %s AND chunk = %s AND number > %s AND number <= %s AND changes LIKE %s ORDER BY number
    """
    count_entries: str = f"""
        SELECT count(*) FROM {_ENTRIES}
        WHERE batch = %s AND chunk = ANY(%b::int4[]) AND hash = ANY(%b::bytea[])
    """
    moments: str = f"""
        SELECT chunk, number, wall, monotonic, session, server FROM {_ENTRIES}
        WHERE batch = %s AND chunk = %s AND number = ANY(%b::int4[])
    """
    first_send: str = f"""
        SELECT min(server), count(*) = count(server) FROM {_ENTRIES}
        WHERE batch = %s AND kind IN ('claim', 'resend')
    """
    chunk_names: str = f"""
        SELECT chunk FROM payments.chunks WHERE batch = %s
        UNION SELECT chunk FROM {_ENTRIES} WHERE batch = %s ORDER BY chunk
    """

    # the batch

    batch: str = f"SELECT {BATCH_COLUMNS} FROM payments.batches b WHERE b.batch_id = %s"
    hash_key: str = "SELECT hash_key FROM payments.batches WHERE batch = %s"
    describe: str = """
        UPDATE payments.batches SET created_at = %s, rows = %s, totals = %s, chunk_size = %s, chunks = %s
        WHERE batch = %s
    """
    rebind: str = """
        UPDATE payments.batches SET key_fingerprint = %s, input_hash = %s, input_stat = %s, totals = %s,
            extra = %s, described_in = %s
        WHERE batch = %s
    """

    # the figures of runs

    add_bucket: str = f"""
        {inserting("series AS s", SERIES.columns)}
        ON CONFLICT (batch, lane, at, seconds) DO UPDATE SET
            created = s.created + excluded.created, refused = s.refused + excluded.refused,
            failed = s.failed + excluded.failed, no_answer = s.no_answer + excluded.no_answer,
            allowed = CASE WHEN s.allowed >= excluded.allowed THEN s.allowed
                ELSE coalesce(excluded.allowed, s.allowed) END,
            closed = CASE WHEN s.closed + excluded.closed < s.seconds THEN s.closed + excluded.closed
                ELSE s.seconds END
    """
    count_buckets: str = "SELECT count(*) FROM payments.series WHERE batch = %s AND lane = %s"
    own_buckets: str = """
        SELECT at, seconds, created, refused, failed, no_answer, allowed, closed
        FROM payments.series WHERE batch = %s AND lane = %s
    """
    remove_buckets: str = "DELETE FROM payments.series WHERE batch = %s AND lane = %s"
    buckets: str = """
        SELECT at, seconds, created, refused, failed, no_answer, allowed, closed
        FROM payments.series WHERE batch = %s AND at >= %s
    """
    add_times: str = """
        INSERT INTO payments.answer_times AS t (batch, lane, class, answers) VALUES (%s, %s, %s, %s)
        ON CONFLICT (batch, lane, class) DO UPDATE SET answers = t.answers + excluded.answers
    """
    times: str = "SELECT class, answers FROM payments.answer_times WHERE batch = %s"
    set_attempts: str = f"""
        INSERT INTO {_ATTEMPTS} (batch, number, attempts) VALUES (%s, %s, %s)
        ON CONFLICT (batch, number) DO UPDATE SET attempts = excluded.attempts
    """
    attempts: str = f"""
        SELECT number, attempts FROM {_ATTEMPTS} WHERE batch = %s AND number = ANY(%b::int4[])
    """
    attempts_after: str = f"""
        SELECT number, attempts FROM {_ATTEMPTS} WHERE batch = %s AND number > %s
        ORDER BY number LIMIT 500
    """
