"""The tables that both databases have: each column with its type, once. Amounts are text, for exactness.

Types are PostgreSQL's. Only a column whose type ends with NULL may have no value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs


@attrs.frozen
class Table:
    """The columns of a table, in their order."""

    key: str
    """The columns of its primary key."""
    columns: Mapping[str, str]
    """{name: type}."""

    @property
    def names(self) -> str:
        """The columns' names, as a list in SQL."""
        return ", ".join(self.columns)

    def types(self, names: Iterable[str]) -> tuple[str, ...]:
        """The types of these columns."""
        return tuple(self.columns[name].removesuffix(" NULL") for name in names)

    def declared(self, types: Mapping[str, str] | None = None) -> str:
        """The columns as `CREATE TABLE` takes them. `types`: {type: what another database calls it}."""
        names = {name: name for name in self.types(self.columns)} if types is None else types
        return ", ".join(
            f"{name} {names[kind.removesuffix(' NULL')]}{'' if kind.endswith(' NULL') else ' NOT NULL'}"
            for name, kind in self.columns.items()
        )


BATCHES: Final = Table(
    "batch",
    {
        "batch": "int8",
        "batch_id": "text",
        "environment": "text",
        "base_url": "text",
        "key_fingerprint": "text",
        "input_hash": "text",
        "input_stat": "text",
        "created_at": "float8",
        "client_version": "text",
        "schema": "int4",
        "rows": "int4",
        "totals": "text",
        "extra": "text",
        "chunk_size": "int4",
        "chunks": "int4",
        "described_in": "int4",
        "hash_key": "bytea",
    },
)
CHUNKS: Final = Table(
    "batch, chunk",
    {
        "batch": "int8",
        "chunk": "int4",
        "first": "int4",
        "last": "int4",
        "granted_to": "int4",
        "lease": "bytea NULL",
        "entries": "int4",
        "head": "bytea",
        "digest": "bytea",
        "unsent": "int4",
        "in_flight": "int4",
        "in_doubt": "int4",
        "created": "int4",
        "refused": "int4",
        "not_final": "int4",
        "generation": "int4",
        "totals": "text",
    },
)
ENTRIES: Final = Table(
    "batch, chunk, number",
    {
        "batch": "int8",
        "chunk": "int4",
        "number": "int4",
        "wall": "float8",
        "monotonic": "float8",
        "session": "text",
        "server": "float8 NULL",
        "kind": "text",
        "lease": "bytea NULL",
        "rows_digest": "bytea",
        "hash": "bytea",
        "changes": "text",  # last, so that reading the others does not read this
    },
)
ROWS: Final = Table(
    "number, version",
    {
        "number": "int4",
        "version": "int2",
        "line": "int4 NULL",
        "row_key": "text",
        "reference": "text",
        "amount": "text",
        "currency": "text",
        "method": "text",
        "body": "bytea",
        "body_hash": "text",
        "idempotency_key": "text",
        "metadata": "text NULL",
        "unique_key": "bytea NULL",
        "unique_reference": "bytea NULL",
    },
)
"""What is sent, one row for each version of it."""
ROW_STATES: Final = Table(
    "number",
    {
        "number": "int4",
        "version": "int2",
        "state": "text",
        "generation": "int4",
        "revision": "int4",
        "epoch": "int4",
        "intents": "int4",
        "cleared": "int4",
        "payout_id": "text",
        "service_status": "text NULL",
        "payout_end": "text",
        "had_arrived": "bool",
        "earlier_arrived": "bool",
        "unsent_generations": "int8",
        "payout_money": "text NULL",
        "failure_code": "text NULL",
        "failure_message": "text NULL",
        "first_intent": "int4 NULL",
        "key_intent": "int4 NULL",
        "last_intent": "int4 NULL",
        "changed_in": "int4",
        "idempotency_key": "text NULL",
        "rank": "int8",
        "digest": "bytea",
    },
)
"""What changes while a row is paid."""
SERIES: Final = Table(
    "batch, lane, at, seconds",
    {
        "batch": "int8",
        "lane": "int2",
        "at": "int8",
        "seconds": "int4",
        "created": "int4",
        "refused": "int4",
        "failed": "int4",
        "no_answer": "int4",
        "allowed": "float8 NULL",
        "closed": "float8",
    },
)
"""The buckets of a series: figures, which no hash covers."""
ANSWER_TIMES: Final = Table(
    "batch, lane, class",
    {"batch": "int8", "lane": "int2", "class": "int2", "answers": "int8"},
)
"""The histogram; class -1 counts requests without an answer."""
ATTEMPTS: Final = Table(
    "batch, number",
    {"batch": "int8", "number": "int4", "attempts": "text"},
)
"""Attempts of rows that were not created at once: `RowAttempts` as JSON text."""
FIGURES: Final = {"series": SERIES, "answer_times": ANSWER_TIMES}
"""The tables with figures of runs that have nothing of single rows."""
