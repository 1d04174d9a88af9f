"""Converts rows to table rows and back, with the statements that read and write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Executable, Select, and_, bindparam, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from ...protocol.clocks import Timestamps
from ...protocol.payout_status import UNFAILED, UNSUCCESSFUL
from ...protocol.records import LedgerRow
from ...protocol.row_state import RowKnowledge, RowState, rank
from ...protocol.totals import as_text
from ..hash_chain import row_digest
from .driver import ManyStatements, execute_many
from .schema import ENDED, ENTRIES, ROWS

_READ: Final = select(ROWS)
_STATUS: Final = ROWS.c.service_status
FAILED: Final = and_(
    ENDED,
    _STATUS.not_in(UNFAILED),
    or_(ROWS.c.failure_code.is_not(None), _STATUS.in_(UNSUCCESSFUL)),
)
"""Condition for CREATED rows whose payouts have failed: `payout_status.has_failed` in SQL."""


class StoredRow(NamedTuple):
    """A row, with its rank and digest in the ledger."""

    row: LedgerRow
    rank: int
    digest: bytes


class UnreadableRow(Exception):
    """A row, or the header, holds values that this package never writes."""


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Raise UnreadableRow in place of the errors that values of a wrong type or format cause."""
    try:
        yield
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
        found = f"{what} cannot be read"
    else:
        return
    raise UnreadableRow(found)


_STATES: Final = {state.value: state for state in RowState}


def stored(values: Sequence[Any]) -> StoredRow:
    """Make a row of a table row's values."""
    return StoredRow(_row_of(values), values[26], values[27])


def _row_of(values: Sequence[Any]) -> LedgerRow:
    generation, revision, epoch, intents, cleared = map(int, values[12:17])
    known = RowKnowledge(_STATES[values[11]], generation, revision, epoch, intents, cleared, values[17])
    before_body, after_body = (*values[:4], Decimal(values[4]), *values[5:7]), values[8:11]
    return LedgerRow(*(*before_body, blob(values[7]), *after_body, known, *values[18:26]))


def blob(value: object) -> bytes:
    """Return a value that is bytes. Raises TypeError for any other."""
    if not isinstance(value, bytes):  # damage can make it a number, of which bytes() makes zeros
        raise TypeError("not a blob")
    return value


def _changing(row: LedgerRow, digest: bytes) -> tuple[Any, ...]:
    """The values that a change may replace: the last columns, in their order."""
    known = row.known
    return (
        *(str(known.state), known.generation, known.revision, known.epoch, known.intents, known.cleared),
        *(known.payout_id, row.service_status, row.final, row.failure_code, row.failure_message),
        *(row.first_intent, row.key_intent, row.last_intent, row.changed_in, rank(known), digest),
    )


def _content(row: LedgerRow) -> tuple[Any, ...]:
    """The values that are sent, in the order of their columns."""
    return (
        *(row.reference, as_text(row.amount), row.currency, row.method, row.body, row.body_hash),
        *(row.idempotency_key, row.metadata),
    )


_COLUMNS: Final = tuple(ROWS.c.keys())
_CONTENT, _CHANGING = _COLUMNS[3:11], _COLUMNS[11:]
_SAME: Final = ("row_number", "rank_before")


def _update(columns: Sequence[str]) -> ManyStatements:
    same = (ROWS.c.number == bindparam("row_number")) & (ROWS.c.rank == bindparam("rank_before"))
    values: dict[str, Any] = {name: bindparam(name) for name in columns}
    return ManyStatements(update(ROWS).where(same).values(values), (*columns, *_SAME))


_ADD: Final = ManyStatements(insert(ROWS), _COLUMNS)
_MOVE: Final = _update(("idempotency_key", *_CHANGING))
_REPLACE: Final = _update((*_CONTENT, *_CHANGING))


def reading(*conditions: ColumnElement[bool], limit: int | None = None) -> Select[Any]:
    """Make a statement for `rows` that reads rows in the order of their numbers."""
    return _READ.where(*conditions).order_by(ROWS.c.number).limit(limit)


async def rows(
    db: AsyncConnection, statement: Select[Any], parameters: Mapping[str, Any] | None = None
) -> list[StoredRow]:
    """Run a statement of `reading`, and return its rows."""
    with readable("some row"):
        return [stored(values) for values in await db.execute(statement, parameters)]


# Built once: building a statement costs as much as running it.
_UNCLAIMED: Final = (
    reading(ROWS.c.state == RowState.NEW).limit(bindparam("most")).with_for_update(skip_locked=True)
)
_NUMBERED: Final = reading(ROWS.c.number.in_(bindparam("numbers", expanding=True))).with_for_update()


async def found(db: AsyncConnection, statement: Executable) -> list[Sequence[Any]]:
    """Run a statement that reads figures, and return all it finds."""
    return list(await db.execute(statement))


async def unclaimed(db: AsyncConnection, limit: int) -> list[StoredRow]:
    """Read the next NEW rows."""
    return await rows(db, _UNCLAIMED, {"most": limit})


async def numbered(db: AsyncConnection, numbers: Iterable[int]) -> dict[int, StoredRow]:
    """Read the rows with these numbers: {number: row}."""
    found: dict[int, StoredRow] = {}
    for group in _groups(sorted(set(numbers))):
        found.update({each.row.number: each for each in await rows(db, _NUMBERED, {"numbers": group})})
    return found


def _groups(numbers: Sequence[int], size: int = 500) -> Iterator[Sequence[int]]:
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


async def add(db: AsyncConnection, new: Sequence[tuple[LedgerRow, bytes]]) -> None:
    """Insert rows with their digests."""
    values = [
        (row.number, row.line, row.row_key, *_content(row), *_changing(row, digest)) for row, digest in new
    ]
    await execute_many(db, _ADD, values)


async def replace(db: AsyncConnection, changes: Sequence[tuple[StoredRow, LedgerRow]]) -> list[bytes] | None:
    """Replace the first row of each pair by the second. Returns the new digests.

    Compare and set on the rank: None when a row is no longer the first of its pair.
    """
    digests = [row_digest(after) for _, after in changes]
    content = any(after.state is RowState.NEW for _, after in changes)  # corrected, or of a new generation
    values = [
        (
            *(_content(after) if content else (after.idempotency_key,)),
            *(*_changing(after, digest), after.number, before.rank),
        )
        for (before, after), digest in zip(changes, digests, strict=True)
    ]
    found = await execute_many(db, _REPLACE if content else _MOVE, values)
    return digests if found == len(changes) else None


async def moments(db: AsyncConnection, numbers: Iterable[int]) -> dict[int, Timestamps]:
    """Read the times of entries: {entry: when it was made}."""
    columns = (ENTRIES.c.number, ENTRIES.c.wall, ENTRIES.c.monotonic, ENTRIES.c.session, ENTRIES.c.server)
    found: dict[int, Timestamps] = {}
    for group in _groups(sorted(set(numbers))):
        for number, *at in await db.execute(select(*columns).where(ENTRIES.c.number.in_(group))):
            found[number] = Timestamps(*at)
    return found
