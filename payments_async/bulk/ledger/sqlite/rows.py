"""Converts rows to table rows and back, with the statements that read and write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final, NamedTuple

from aiosqlite import Connection

from ...protocol.clocks import Timestamps
from ...protocol.payout_status import UNFAILED, UNSUCCESSFUL
from ...protocol.records import LedgerRow
from ...protocol.row_state import RowKnowledge, RowState, rank
from ...protocol.totals import as_text
from ..hash_chain import row_digest
from .driver import run, run_many

PAGE: Final = 500
"""Rows of a page."""
_ROW: Final = """
    SELECT number, line, row_key, reference, amount, currency, method, body, body_hash, idempotency_key,
        metadata, state, generation, revision, epoch, intents, cleared, payout_id, service_status, final,
        failure_code, failure_message, first_intent, key_intent, last_intent, changed_in, rank, digest
    FROM rows
"""
_PAGE: Final = f"number > ? ORDER BY number LIMIT {PAGE}"
FAILED: Final = """
    state = 'CREATED' AND final = 1 AND service_status NOT IN (SELECT value FROM json_each(?))
    AND (failure_code IS NOT NULL OR service_status IN (SELECT value FROM json_each(?)))
"""
"""Condition for CREATED rows whose payouts have failed: `payout_status.has_failed` in SQL."""
FAILED_WORDS: Final = (json.dumps(sorted(UNFAILED)), json.dumps(sorted(UNSUCCESSFUL)))
"""Its parameters."""

FIRST: Final = f"{_ROW} ORDER BY number LIMIT 1"
LAST_IN_STATE: Final = f"{_ROW} WHERE state = ? ORDER BY number DESC LIMIT 1"
USED: Final = f"{_ROW} WHERE first_intent IS NOT NULL OR state <> 'NEW' OR generation > 0 LIMIT 1"
BY_KEYS: Final = f"{_ROW} WHERE row_key IN (SELECT value FROM json_each(?)) ORDER BY number"
BY_REFERENCES: Final = f"{_ROW} WHERE reference IN (SELECT value FROM json_each(?)) ORDER BY number"
_NUMBERED: Final = f"{_ROW} WHERE number IN (SELECT value FROM json_each(?)) ORDER BY number"
_UNCLAIMED: Final = f"{_ROW} WHERE state = 'NEW' ORDER BY number LIMIT ?"
ALL: Final = f"{_ROW} WHERE {_PAGE}"
IN_STATE: Final = f"{_ROW} WHERE state = ? AND {_PAGE}"
UNCHANGED: Final = f"{_ROW} WHERE state = ? AND changed_in <= ? AND {_PAGE}"
HAS_FAILED: Final = f"{_ROW} WHERE {FAILED} AND {_PAGE}"
"""Statements of a page take the number after which it begins as their last parameter."""

_CHANGED: Final = """
    state = ?, generation = ?, revision = ?, epoch = ?, intents = ?, cleared = ?, payout_id = ?,
    service_status = ?, final = ?, failure_code = ?, failure_message = ?, first_intent = ?, key_intent = ?,
    last_intent = ?, changed_in = ?, rank = ?, digest = ?
    WHERE number = ? AND rank = ?
"""
_MOVE: Final = f"UPDATE rows SET idempotency_key = ?, {_CHANGED}"
_REPLACE: Final = f"""
    UPDATE rows SET reference = ?, amount = ?, currency = ?, method = ?, body = ?, body_hash = ?,
    idempotency_key = ?, metadata = ?, {_CHANGED}
"""
_ADD: Final = f"INSERT INTO rows VALUES ({', '.join('?' * 28)})"
_MOMENTS: Final = """
    SELECT number, wall, monotonic, session, server FROM entries
    WHERE number IN (SELECT value FROM json_each(?))
"""


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
_FLAGS: Final = {0: False, 1: True}


def stored(values: Sequence[Any]) -> StoredRow:
    """Make a row of a table row's values."""
    return StoredRow(_row_of(values), values[26], values[27])


def _row_of(values: Sequence[Any]) -> LedgerRow:
    generation, revision, epoch, intents, cleared = map(int, values[12:17])
    known = RowKnowledge(_STATES[values[11]], generation, revision, epoch, intents, cleared, values[17])
    before_body, after_body = (*values[:4], Decimal(values[4]), *values[5:7]), values[8:11]
    status = (values[18], _FLAGS[values[19]], *values[20:26])
    return LedgerRow(*(*before_body, blob(values[7]), *after_body, known, *status))


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


def listed(values: Iterable[object]) -> str:
    """Values of an `IN`, as the JSON text of its one parameter."""
    return json.dumps(list(values))


async def rows(db: Connection, statement: str, *parameters: Any) -> list[StoredRow]:
    """Run a statement that reads rows, and return them."""
    with readable("some row"):
        return [stored(values) for values in await run(db, statement, *parameters)]


async def unclaimed(db: Connection, limit: int) -> list[StoredRow]:
    """Read the next NEW rows."""
    return await rows(db, _UNCLAIMED, limit)


async def numbered(db: Connection, numbers: Iterable[int]) -> dict[int, StoredRow]:
    """Read the rows with these numbers: {number: row}."""
    return {each.row.number: each for each in await rows(db, _NUMBERED, listed(set(numbers)))}


async def add(db: Connection, new: Sequence[tuple[LedgerRow, bytes]]) -> None:
    """Insert rows with their digests."""
    values = [
        (row.number, row.line, row.row_key, *_content(row), *_changing(row, digest)) for row, digest in new
    ]
    await run_many(db, _ADD, values)


async def replace(db: Connection, changes: Sequence[tuple[StoredRow, LedgerRow]]) -> list[bytes] | None:
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
    found = await run_many(db, _REPLACE if content else _MOVE, values)
    return digests if found == len(changes) else None


async def moments(db: Connection, numbers: Iterable[int]) -> dict[int, Timestamps]:
    """Read the times of entries: {entry: when it was made}."""
    found = await run(db, _MOMENTS, listed(set(numbers)))
    return {number: Timestamps(*at) for number, *at in found}
