"""Imports rows into a new ledger: all of them in one transaction, or none."""

from __future__ import annotations

from collections.abc import AsyncIterable
from contextlib import aclosing
from typing import Any, Final

from sqlalchemy import Column, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.schema import CreateIndex

from ...ledger_errors import LedgerDuplicates
from ...protocol import transitions
from ...protocol.clocks import Timestamps
from ...protocol.records import Binding, Duplicate, Header, LedgerRow, NewRow, grouped
from ...protocol.totals import Sums, by_currency
from ..hash_chain import linked, moved, row_digest
from . import driver, journal
from . import rows as _store
from .journal import LedgerState
from .schema import ROWS, SCHEMA, UNIQUE, WORK

_SLICE: Final = 500
_MOST_DUPLICATES: Final = 100
_FIRST_ENTRY: Final = 1
_NAMES: Final = (ROWS.c.row_key, ROWS.c.reference)


class _Loaded:
    """The sums and digests of the rows imported so far."""

    def __init__(self) -> None:
        self.sums = Sums()
        self.rows = 0
        self.last = 0
        self.digest = bytes(32)

    async def take(self, db: AsyncConnection, group: list[NewRow]) -> None:
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
        self.sums.add(row.state, row.currency, row.amount)
        return row


async def load(
    db: AsyncConnection,
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
    await journal.set_totals(db, loaded.sums.totals, {})
    await journal.append(db, entry)
    return LedgerState(header, entry, loaded.sums.totals)


async def _index(db: AsyncConnection, path: str) -> None:
    for index in (*UNIQUE, *WORK):
        try:
            async with db.begin_nested():
                await db.execute(CreateIndex(index))
        except IntegrityError:
            break
    else:
        return
    (keys, same_key), (references, same_reference) = [await _shared(db, column) for column in _NAMES]
    raise LedgerDuplicates(path, [*keys, *references], total=same_key + same_reference)


async def _shared(db: AsyncConnection, column: Column[str]) -> tuple[list[Duplicate], int]:
    """Find values that rows share. Returns the first, each with its first two rows, and their number."""
    number, line = ROWS.c.number, ROWS.c.line
    window: dict[str, Any] = {"partition_by": column, "order_by": number}
    before = [func.lag(each).over(**window).label(f"first_{each.name}") for each in (number, line)]
    rank = func.row_number().over(**window).label("rank")
    ranked = select(column.label("value"), number, line, *before, rank).subquery()
    shared = select(ranked).where(ranked.c.rank == 2)
    total = (await db.execute(select(func.count()).select_from(shared.subquery()))).scalar_one()
    few = await db.execute(shared.order_by(ranked.c.first_number).limit(_MOST_DUPLICATES))
    return [
        Duplicate(column.name, str(row.value), (row.first_number, row.number), (row.first_line, row.line))
        for row in few
    ], total
