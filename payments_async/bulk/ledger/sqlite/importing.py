"""Imports rows into a new ledger: all of them in one transaction, or none."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterable
from contextlib import aclosing
from typing import Final

from aiosqlite import Connection

from ...ledger_errors import LedgerDuplicates
from ...protocol import transitions
from ...protocol.clocks import Timestamps
from ...protocol.outcomes import Outcome
from ...protocol.records import Binding, Duplicate, Header, LedgerRow, NewRow, grouped
from ...protocol.totals import Sums, by_currency
from ..hash_chain import linked, moved
from ..rows import row_digest
from . import driver, journal
from . import rows as _store
from .journal import LedgerState
from .schema import INDEXES, SCHEMA

_SLICE: Final = 500
_MOST_DUPLICATES: Final = 100
_FIRST_ENTRY: Final = 1
_SHARED: Final = """
    SELECT {name}, number, line, lag(number) OVER same AS first, lag(line) OVER same AS first_line,
        row_number() OVER same AS place
    FROM rows WINDOW same AS (PARTITION BY {name} ORDER BY number)
"""
_FIRST_SHARED: Final = f"SELECT * FROM ({_SHARED}) WHERE place = 2 ORDER BY first LIMIT {_MOST_DUPLICATES}"
_COUNT_SHARED: Final = f"SELECT count(*) FROM ({_SHARED}) WHERE place = 2"


class _Loaded:
    """The sums and digests of the rows imported so far."""

    def __init__(self) -> None:
        self.sums = Sums[tuple[Outcome, str]]()
        self.rows = 0
        self.last = 0
        self.digest = bytes(32)

    async def take(self, db: Connection, group: list[NewRow]) -> None:
        """Insert a slice of rows."""
        rows = [self._checked(new) for new in group]
        digests = [row_digest(row) for row in rows]
        await _store.add(db, list(zip(rows, digests, strict=True)))
        self.digest = moved(self.digest, (), digests)
        self.rows += len(rows)

    def _checked(self, new: NewRow) -> LedgerRow:
        if new.number <= self.last:
            raise ValueError(f"row numbers must rise: {new.number} follows {self.last}")
        self.last = new.number
        row = transitions.fresh(new, _FIRST_ENTRY)
        self.sums.add((row.outcome, row.currency), row.amount)
        return row


async def load(
    db: Connection,
    path: str,
    binding: Binding,
    rows: AsyncIterable[NewRow],
    *,
    at: Timestamps,
    client_version: str,
) -> LedgerState:
    """Insert all rows, index them and begin the chain. Raises LedgerDuplicates, and what `rows` raises."""
    loaded = _Loaded()
    async with aclosing(grouped(rows, _SLICE)) as groups:
        async for group in groups:
            await loaded.take(db, group)
    async with driver.sorting(db):
        await _index(db, path)
    amounts = by_currency(loaded.sums.totals)
    header = Header(binding, at.wall, client_version, SCHEMA, loaded.rows, amounts)
    entry = linked(None, binding.batch_id, at, "import", journal.facts(header), loaded.digest)
    await journal.set_header(db, header, entry, fresh=True)
    await journal.set_totals(db, loaded.sums.totals)
    await journal.append(db, entry)
    return LedgerState(header, entry, loaded.sums.totals)


async def _index(db: Connection, path: str) -> None:
    try:
        for index in INDEXES:
            await driver.run(db, index)
    except sqlite3.IntegrityError:
        pass
    else:
        return
    (keys, same_key), (references, same_reference) = (
        await _shared(db, "row_key"),
        await _shared(db, "reference"),
    )
    raise LedgerDuplicates(path, [*keys, *references], total=same_key + same_reference)


async def _shared(db: Connection, name: str) -> tuple[list[Duplicate], int]:
    """Find values that rows share. Returns the first, each with its first two rows, and their number."""
    ((total,),) = await driver.run(db, _COUNT_SHARED.format(name=name))
    return [
        Duplicate(name, str(value), (first, number), (first_line, line))
        for value, number, line, first, first_line, _ in await driver.run(db, _FIRST_SHARED.format(name=name))
    ], total
