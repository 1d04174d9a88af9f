"""The ledger's tables. Amounts are text: a REAL would lose cents.

Importing this imports SQLAlchemy, which takes half a second: import it where a ledger is opened.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    and_,
    false,
    literal_column,
    true,
)

SCHEMA: Final = 1
"""The schema version. A file with a higher one is refused; a change of the tables raises the number."""

METADATA: Final = MetaData()


def _columns(kind: Any, *names: str, nullable: bool = False) -> list[Column[Any]]:
    return [Column(name, kind, nullable=nullable) for name in names]


def _number_key(name: str) -> Column[int]:
    """A whole number that the program gives, in the primary key."""
    return Column(name, Integer, primary_key=True, autoincrement=False)


HEADER: Final = Table(
    "header",
    METADATA,
    _number_key("id"),
    *_columns(Integer, "schema"),
    *_columns(Text, "batch_id", "environment", "base_url", "key_fingerprint", "input_hash", "input_stat"),
    *_columns(Double, "created_at"),
    *_columns(Text, "client_version"),
    *_columns(Integer, "rows"),
    *_columns(Text, "totals"),
    # the entry that carries these facts; ledgers of schema 1 have it under this name
    Column("told_in", Integer, key="described_in", nullable=False),
    *_columns(Integer, "head"),  # the last entry: so that a chain that was cut short is detected
    *_columns(LargeBinary, "head_hash"),
)

ROWS: Final = Table(
    "rows",
    METADATA,
    _number_key("number"),
    *_columns(Integer, "line", nullable=True),
    *_columns(Text, "row_key", "reference", "amount", "currency", "method"),
    *_columns(LargeBinary, "body"),
    *_columns(Text, "body_hash", "idempotency_key"),
    *_columns(Text, "metadata", nullable=True),
    *_columns(Text, "state"),
    *_columns(Integer, "generation", "revision", "epoch", "intents", "cleared"),
    *_columns(Text, "payout_id"),
    *_columns(Text, "service_status", nullable=True),
    *_columns(Boolean, "final"),
    *_columns(Text, "failure_code", "failure_message", nullable=True),
    *_columns(Integer, "first_intent", "key_intent", "last_intent", nullable=True),
    *_columns(Integer, "changed_in"),
    *_columns(BigInteger, "rank"),
    *_columns(LargeBinary, "digest"),
)

TOTALS: Final = Table(
    "totals",
    METADATA,
    Column("state", Text, primary_key=True),
    Column("currency", Text, primary_key=True),
    *_columns(Integer, "rows"),
    *_columns(Text, "amount"),
)

ENTRIES: Final = Table(
    "entries",
    METADATA,
    _number_key("number"),
    *_columns(Double, "wall", "monotonic"),
    *_columns(Text, "session"),
    *_columns(Double, "server", nullable=True),
    *_columns(Text, "kind"),
    *_columns(LargeBinary, "rows_digest", "hash"),
    *_columns(Text, "changes"),  # last, so that reading the others does not read this
)

SERIES: Final = Table(
    "series",
    METADATA,
    _number_key("at"),
    _number_key("seconds"),
    *_columns(Integer, "created", "refused", "failed", "no_answer"),
    *_columns(Double, "limit", nullable=True),
    *_columns(Double, "closed"),
    sqlite_with_rowid=False,
)
"""The buckets of a `RunSeries`: figures, which no hash covers."""

ANSWER_TIMES: Final = Table(
    "answer_times",
    METADATA,
    _number_key("class"),
    *_columns(Integer, "answers"),
)
"""Its histogram; class -1 counts requests without an answer."""

ATTEMPTS: Final = Table(
    "attempts",
    METADATA,
    _number_key("number"),
    *_columns(Text, "attempts"),
)
"""Attempts of rows that were not created at once: `RowAttempts` as JSON text."""

TABLES: Final = (HEADER, ROWS, TOTALS, ENTRIES)
FIGURES: Final = (SERIES, ANSWER_TIMES, ATTEMPTS)
"""Made when the first figures are stored: they may be missing."""

UNIQUE: Final = (
    Index("row_keys", ROWS.c.row_key, unique=True),
    Index("row_references", ROWS.c.reference, unique=True),
)
FOLLOWED: Final = and_(ROWS.c.state == literal_column("'CREATED'"), ROWS.c.final == false())
"""Condition for payouts that are not final. It uses literals, as a partial index requires."""
ENDED: Final = and_(ROWS.c.state == literal_column("'CREATED'"), ROWS.c.final == true())
"""Condition for payouts that are final."""
RETRIED: Final = ROWS.c.generation > literal_column("0")
"""Condition for rows of a later generation, which are few."""

_FOLLOWING: Final = (ROWS.c.state, ROWS.c.final, ROWS.c.number, ROWS.c.first_intent)
_ENDING: Final = (ROWS.c.state, ROWS.c.final, ROWS.c.service_status, ROWS.c.failure_code)
WORK: Final = (
    Index("ended", *_ENDING, sqlite_where=ENDED, postgresql_where=ENDED),
    Index("retried", ROWS.c.generation, sqlite_where=RETRIED, postgresql_where=RETRIED),
    Index("by_state", ROWS.c.state, ROWS.c.number),
    Index("followed", *_FOLLOWING, sqlite_where=FOLLOWED, postgresql_where=FOLLOWED),
)
"""Indexes, made once all rows are imported: that is faster, and finds all duplicates at once."""
