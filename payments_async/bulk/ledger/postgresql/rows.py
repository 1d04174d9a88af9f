"""Reads and writes the rows of a batch's two tables."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from ....models.statuses import PayoutEnd
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
from .driver import arrays
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
    return reading(batch, "s.number = ANY(%s)", [arrays.int4s(sorted(numbers))])


def by_keys(batch: int, keys: Collection[str]) -> Statement:
    """Make a statement that reads the rows with these keys."""
    hashed = arrays.blobs([name_hash(key) for key in keys])
    same = f"s.number IN (SELECT k.number FROM {rows_table(batch)} k WHERE k.key_hash = ANY(%s))"
    return reading(batch, same, [hashed])


def by_references(batch: int, references: Collection[str]) -> Statement:
    """Make a statement that reads the rows that have, or had, one of these references."""
    hashed = arrays.blobs([name_hash(reference) for reference in references])
    same = f"s.number IN (SELECT k.number FROM {rows_table(batch)} k WHERE k.reference_hash = ANY(%s))"
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

_PACKED: Final[dict[str, Callable[[Sequence[Any]], arrays.PackedArray]]] = {
    **dict.fromkeys(STATE, arrays.int4s),
    **dict.fromkeys(("state", "payout_id", "service_status", "payout_end"), arrays.texts),
    **dict.fromkeys(("failure_code", "failure_message"), arrays.texts),
    **dict.fromkeys(("had_arrived", "earlier_arrived"), arrays.bools),
    "payout_money": arrays.texts,
    "version": arrays.int2s,
    "idempotency_key": arrays.texts,
    "rank": arrays.int8s,
    "digest": arrays.blobs,
}
_UPDATE: Final = (
    f"UPDATE {{states}} s SET {', '.join(f'{name} = u.{name}' for name in _PACKED)} "
    f"FROM unnest(%s, {', '.join('%s' for _ in _PACKED)}) AS u(number, {', '.join(_PACKED)}) "
    "WHERE s.number = u.number"
)
_PACK: Final = (arrays.int4s, *_PACKED.values())
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
    values = [pack(column) for pack, column in zip(_PACK, columns, strict=True)]
    return _UPDATE.format(states=states_table(batch)), values


def _state_values(moved: Moved) -> tuple[Any, ...]:
    return *_moving(moved.row), moved.version, moved.own_key, rank(moved.row.known), moved.digest


# New content, in PostgreSQL's binary format for COPY: parameters of statements can end up in a log

COPY_HEAD: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_END: Final = b"\xff\xff"
_FIELDS: Final = struct.Struct(">hiiih")
_NUMBER: Final = struct.Struct(">ii").pack
_NULL: Final = struct.pack(">i", -1)
_HASH: Final = struct.pack(">i", 32)


def copying(table: str, *, frozen: bool) -> str:
    """Make the statement that copies new content or states into a table."""
    return f"COPY {table} FROM STDIN (FORMAT binary{', FREEZE' if frozen else ''})"


def content(new: NewRow, version: int, reference_hash: bytes | None) -> bytes:
    """Pack one row of the table of contents; `reference_hash`: of a reference that it brings."""
    return b"".join(
        (
            _FIELDS.pack(14, 4, new.number, 2, version),
            _NULL if new.line is None else _NUMBER(4, new.line),
            arrays.text(new.row_key),
            arrays.text(new.reference),
            arrays.text(new.amount_text),
            arrays.text(new.currency),
            arrays.text(new.method),
            arrays.blob(new.body),
            arrays.text(new.body_hash),
            arrays.text(new.idempotency_key),
            _NULL if new.metadata is None else arrays.text(new.metadata),
            _NULL if version else _HASH + name_hash(new.row_key),
            _NULL if reference_hash is None else _HASH + reference_hash,
        )
    )


_FRESH_HEAD: Final = struct.Struct(">hii").pack
_FRESH_STATE: Final = b"".join(
    (
        struct.pack(">ih", 2, 0),  # version
        arrays.text(RowState.NEW.value),
        _NUMBER(4, 0) * 5,
        arrays.text(""),
        _NULL,
        arrays.text(PayoutEnd.OPEN.value),
        struct.pack(">i?", 1, False) * 2,
        _NULL * 6,
        _NUMBER(4, 1),  # changed in the chunk's first entry
        _NULL,
        struct.pack(">iq", 8, rank(RowKnowledge())),
        _HASH,
    )
)


def fresh_state(number: int, digest: bytes) -> bytes:
    """Pack the state of a row that was just imported."""
    return _FRESH_HEAD(23, 4, number) + _FRESH_STATE + digest
