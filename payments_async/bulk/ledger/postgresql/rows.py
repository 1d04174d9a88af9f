"""Reads and writes the rows of a batch's two tables."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final, NamedTuple

from ...ledger_errors import LedgerDamaged
from ...protocol.records import LedgerRow, NewRow
from ...protocol.row_state import RowKnowledge, RowState, rank
from ..rows import (
    CONTENT,
    STATE,
    UnreadableRecord,
    raise_alone,
    readable,
    row_digest,
    row_of,
    values_of,
)
from .driver.session import Statement
from .schema import rows_table, states_table


class VersionedRow(NamedTuple):
    """A row as the tables have it."""

    row: LedgerRow
    version: int
    """Which content it has; each correction and each generation brings another."""
    own_key: str | None
    """Its idempotency key, when it is no longer the one that came with its content."""
    rank: int
    digest: bytes


Change = tuple[VersionedRow, LedgerRow]
"""A row before and after a change."""

_OWN_KEY: Final = {"idempotency_key": "coalesce(s.idempotency_key, r.idempotency_key)"}
_COLUMNS: Final = (
    *(_OWN_KEY.get(name, f"r.{name}") for name in CONTENT),
    *(f"s.{name}" for name in (*STATE, "version", "idempotency_key", "rank", "digest")),
)
_READ: Final = (
    f"SELECT {', '.join(_COLUMNS)} "
    "FROM {states} s JOIN {rows} r ON r.number = s.number AND r.version = s.version "
)


def reading(batch: int, condition: str, values: Sequence[Any], *, limit: int | None = None) -> Statement:
    """Make a statement that reads rows in the order of their numbers; `s` and `r` are their two tables."""
    most, values = ("", values) if limit is None else (" LIMIT %s", [*values, limit])
    sql = f"{_READ}WHERE {condition} ORDER BY s.number{most}"
    return sql.format(states=states_table(batch), rows=rows_table(batch)), values


def numbered(batch: int, numbers: Collection[int]) -> Statement:
    """Make a statement that reads the rows with these numbers."""
    return reading(batch, "s.number = ANY(%b::int4[])", [sorted(numbers)])


def by_keys(batch: int, keys: Collection[str]) -> Statement:
    """Make a statement that reads the rows with these keys."""
    hashed = [name_hash(key) for key in keys]
    same = f"s.number IN (SELECT k.number FROM {rows_table(batch)} k WHERE k.key_hash = ANY(%b::bytea[]))"
    return reading(batch, same, [hashed])


def by_references(batch: int, references: Collection[str]) -> Statement:
    """Make a statement that reads the rows that have, or had, one of these references."""
    hashed = [name_hash(reference) for reference in references]
    same = (
        f"s.number IN (SELECT k.number FROM {rows_table(batch)} k WHERE k.reference_hash = ANY(%b::bytea[]))"
    )
    return reading(batch, same, [hashed])


def name_hash(name: str) -> bytes:
    """The hash under which a key or reference is unique: no error message shows more."""
    return hashlib.sha256(name.encode()).digest()


@contextmanager
def undamaged(path: str) -> Iterator[None]:
    """Raise LedgerDamaged in place of UnreadableRecord."""
    try:
        yield
    except UnreadableRecord as error:
        raise_alone(LedgerDamaged(path, [str(error)]))


def stored(found: Iterable[Sequence[Any]]) -> list[VersionedRow]:
    """Make rows of what a statement of `reading` found. Raises UnreadableRecord."""
    with readable("some row"):
        return [stored_row(values) for values in found]


def stored_row(values: Iterable[Any]) -> VersionedRow:
    """Make a row of the values of one table row."""
    *columns, version, own_key, stored_rank, digest = values
    return VersionedRow(row_of(columns), version, own_key, stored_rank, digest)


# Changes

_UPDATE: Final = (
    "UPDATE {states} s SET version = u.version, state = u.state, generation = u.generation, "
    "revision = u.revision, epoch = u.epoch, intents = u.intents, cleared = u.cleared, "
    "payout_id = u.payout_id, service_status = u.service_status, payout_end = u.payout_end, "
    "had_arrived = u.had_arrived, failure_code = u.failure_code, failure_message = u.failure_message, "
    "first_intent = u.first_intent, key_intent = u.key_intent, last_intent = u.last_intent, "
    "changed_in = u.changed_in, idempotency_key = u.idempotency_key, rank = u.rank, digest = u.digest "
    "FROM unnest(%b::int4[], %b::text[], %b::int4[], %b::int4[], %b::int4[], %b::int4[], %b::int4[], "
    "%b::text[], %b::text[], %b::text[], %b::bool[], %b::text[], %b::text[], %b::int4[], %b::int4[], "
    "%b::int4[], %b::int4[], %b::int2[], %b::text[], %b::int8[], %b::bytea[]) "
    "AS u(number, state, generation, revision, epoch, intents, cleared, payout_id, service_status, "
    "payout_end, had_arrived, failure_code, failure_message, first_intent, key_intent, last_intent, "
    "changed_in, version, idempotency_key, rank, digest) WHERE s.number = u.number"
)
_moving: Final = values_of(("number", *STATE))


class Moved(NamedTuple):
    """A changed row, to be written."""

    row: LedgerRow
    version: int
    own_key: str | None
    digest: bytes


def moved(change: Change) -> Moved:
    """Make what is written of a changed row. One that is NEW was corrected, or is of a new generation."""
    (before, version, own_key, _, _), after = change
    if after.state is RowState.NEW:
        version, own_key = version + 1, None
    elif after.idempotency_key != before.idempotency_key:
        own_key = after.idempotency_key
    return Moved(after, version, own_key, row_digest(after))


def updating(batch: int, rows: Iterable[Moved]) -> Statement:
    """Make the statement that stores the states of changed rows."""
    columns = zip(*(_state_values(each) for each in rows), strict=True)
    return _UPDATE.format(states=states_table(batch)), [list(column) for column in columns]


def _state_values(moved: Moved) -> tuple[Any, ...]:
    return *_moving(moved.row), moved.version, moved.own_key, rank(moved.row.known), moved.digest


# New content, by binary COPY: parameters of statements can end up in a log

CONTENT_TYPES: Final = (
    *("int4", "int2", "int4", "text", "text", "text", "text", "text", "bytea", "text", "text", "text"),
    *("bytea", "bytea"),
)
STATE_TYPES: Final = (
    *("int4", "int2", "text", "int4", "int4", "int4", "int4", "int4", "text", "text", "text", "bool"),
    *("text", "text", "int4", "int4", "int4", "int4", "text", "int8", "bytea"),
)
_sent: Final = values_of(name for name in CONTENT if name != "number")


def copying(table: str, *, frozen: bool) -> str:
    """Make the statement that copies new content or states into a table."""
    return f"COPY {table} FROM STDIN (FORMAT binary{', FREEZE' if frozen else ''})"


def content(new: NewRow, version: int, reference_hash: bytes | None) -> tuple[Any, ...]:
    """The values of the table of contents; `reference_hash`: of a reference that it brings."""
    return new.number, version, *_sent(new), None if version else name_hash(new.row_key), reference_hash


_fresh: Final = values_of(STATE)(LedgerRow(0, None, "", "", Decimal(0), "", "", b"", "", "", changed_in=1))
_FRESH_RANK: Final = rank(RowKnowledge())


def fresh_state(number: int, digest: bytes) -> tuple[Any, ...]:
    """The state of a row that was just imported, in the chunk's first entry."""
    return number, 0, *_fresh, None, _FRESH_RANK, digest
