"""Reads and writes rows of the file's table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from aiosqlite import Connection

from ...protocol.clocks import Timestamps
from ...protocol.records import LedgerRow
from ...protocol.row_state import RowState, rank
from ..rows import COLUMNS, CONTENT, STATE, readable, row_digest, row_of, values_of
from .driver import run, run_many

PAGE: Final = 500
"""Rows of a page."""
_ROW: Final = f"SELECT {', '.join(COLUMNS)}, rank, digest FROM rows"
_PAGE: Final = f"number > ? ORDER BY number LIMIT {PAGE}"

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
HAS_FAILED: Final = f"{_ROW} WHERE payout_end = 'failed' AND {_PAGE}"
"""Statements of a page take the number after which it begins as their last parameter."""

_SENT: Final = CONTENT[CONTENT.index("reference") :]
_CHANGED: Final = ", ".join(f"{name} = ?" for name in (*STATE, "rank", "digest"))
_MOVE: Final = f"UPDATE rows SET idempotency_key = ?, {_CHANGED} WHERE number = ? AND rank = ?"
_REPLACE: Final = (
    f"UPDATE rows SET {', '.join(f'{name} = ?' for name in _SENT)}, {_CHANGED} WHERE number = ? AND rank = ?"
)
_ADD: Final = f"INSERT INTO rows VALUES ({', '.join('?' for _ in COLUMNS)}, ?, ?)"
_all: Final = values_of(COLUMNS)
_sent: Final = values_of(_SENT)
_state: Final = values_of(STATE)
_MOMENTS: Final = """
    SELECT number, wall, monotonic, session, server FROM entries
    WHERE number IN (SELECT value FROM json_each(?))
"""


class StoredRow(NamedTuple):
    """A row, with its rank and digest in the ledger."""

    row: LedgerRow
    rank: int
    digest: bytes


def stored(values: Iterable[Any]) -> StoredRow:
    """Make a row of a table row's values."""
    *columns, stored_rank, digest = values
    return StoredRow(row_of(columns), stored_rank, digest)


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
    await run_many(db, _ADD, [(*_all(row), rank(row.known), digest) for row, digest in new])


async def replace(db: Connection, changes: Sequence[tuple[StoredRow, LedgerRow]]) -> list[bytes] | None:
    """Replace the first row of each pair by the second. Returns the new digests.

    Compare and set on the rank: None when a row is no longer the first of its pair.
    """
    digests = [row_digest(after) for _, after in changes]
    content = any(after.state is RowState.NEW for _, after in changes)  # corrected, or of a new generation
    values = [
        (
            *(_sent(after) if content else (after.idempotency_key,)),
            *(*_state(after), rank(after.known), digest, after.number, before.rank),
        )
        for (before, after), digest in zip(changes, digests, strict=True)
    ]
    found = await run_many(db, _REPLACE if content else _MOVE, values)
    return digests if found == len(changes) else None


async def moments(db: Connection, numbers: Iterable[int]) -> dict[int, Timestamps]:
    """Read the times of entries: {entry: when it was made}."""
    found = await run(db, _MOMENTS, listed(set(numbers)))
    return {number: Timestamps(*at) for number, *at in found}
