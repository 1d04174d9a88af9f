"""The ledger's tables, for both databases. Amounts are text: a REAL would lose cents.

Importing this imports SQLAlchemy, which takes half a second: it is done when a ledger is opened.
"""

from __future__ import annotations

from typing import Final

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
"""The number of this form. A file with a higher one is refused; a change of the tables is a new number."""

METADATA: Final = MetaData()

HEADER: Final = Table(
    "header",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("schema", Integer, nullable=False),
    Column("batch_id", Text, nullable=False),
    Column("environment", Text, nullable=False),
    Column("base_url", Text, nullable=False),
    Column("key_fingerprint", Text, nullable=False),
    Column("input_hash", Text, nullable=False),
    Column("input_stat", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("client_version", Text, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("totals", Text, nullable=False),
    Column("described_in", Integer, nullable=False),  # the entry that carries these facts
    Column("head", Integer, nullable=False),  # the last entry: a chain that was cut short is noticed
    Column("head_hash", LargeBinary, nullable=False),
)

ROWS: Final = Table(
    "rows",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("line", Integer),
    Column("row_key", Text, nullable=False),
    Column("reference", Text, nullable=False),
    Column("amount", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("body_hash", Text, nullable=False),
    Column("idempotency_key", Text, nullable=False),
    Column("metadata", Text),
    Column("state", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("intents", Integer, nullable=False),
    Column("cleared", Integer, nullable=False),
    Column("payout_id", Text, nullable=False),
    Column("service_status", Text),
    Column("final", Boolean, nullable=False),
    Column("failure_code", Text),
    Column("failure_message", Text),
    Column("first_intent", Integer),
    Column("key_intent", Integer),
    Column("last_intent", Integer),
    Column("changed_in", Integer, nullable=False),
    Column("rank", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False),
)

TOTALS: Final = Table(
    "totals",
    METADATA,
    Column("state", Text, primary_key=True),
    Column("currency", Text, primary_key=True),
    Column("rows", Integer, nullable=False),
    Column("amount", Text, nullable=False),
)

ENTRIES: Final = Table(
    "entries",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("wall", Double, nullable=False),
    Column("monotonic", Double, nullable=False),
    Column("session", Text, nullable=False),
    Column("server", Double),
    Column("kind", Text, nullable=False),
    Column("rows_digest", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("changes", Text, nullable=False),  # last, so that reading the others does not read this
)

TABLES: Final = (HEADER, ROWS, TOTALS, ENTRIES)

UNIQUE: Final = (
    Index("row_keys", ROWS.c.row_key, unique=True),
    Index("row_references", ROWS.c.reference, unique=True),
)
FOLLOWED: Final = and_(ROWS.c.state == literal_column("'CREATED'"), ROWS.c.final == false())
"""Payouts that were made and may still change. In literals, as an index over some rows needs them."""
ENDED: Final = and_(ROWS.c.state == literal_column("'CREATED'"), ROWS.c.final == true())
"""Payouts that are over."""
RETRIED: Final = ROWS.c.generation > literal_column("0")
"""Rows that were begun anew, which are few."""

_FOLLOWING: Final = (ROWS.c.state, ROWS.c.final, ROWS.c.number, ROWS.c.first_intent)
_ENDING: Final = (ROWS.c.state, ROWS.c.final, ROWS.c.service_status, ROWS.c.failure_code)
WORK: Final = (
    Index("ended", *_ENDING, sqlite_where=ENDED, postgresql_where=ENDED),
    Index("retried", ROWS.c.generation, sqlite_where=RETRIED, postgresql_where=RETRIED),
    Index("by_state", ROWS.c.state, ROWS.c.number),
    Index("followed", *_FOLLOWING, sqlite_where=FOLLOWED, postgresql_where=FOLLOWED),
)
"""Indexes are made once all rows are in, which is faster and tells duplicates all together."""
