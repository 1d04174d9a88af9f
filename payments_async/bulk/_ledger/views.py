"""Reads single rows, and rows a page at a time: each page is a transaction of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterable, Sequence
from typing import Any, Final

import sqlalchemy as sa

from ...models.statuses import PayoutEnd
from .._protocol.identifiers import parted
from .._protocol.outcomes import Outcome, RowState
from .._protocol.records import LedgerRow, StatusChange
from ..errors import LedgerError
from .database import SEE
from .figures import OUTCOME
from .ledger import ROW_COLUMNS, Ledger, readable
from .tables import rows, words
from .values import word_of_service

_PAGE: Final = 5_000
_GROUP: Final = 500
RowsMark = tuple[Any, ...]


def _mine(ledger: Ledger, *where: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """A query for rows of the batch, in their order."""
    return sa.select(*ROW_COLUMNS).where(rows.c.batch_id == ledger.batch_id, *where).order_by(rows.c.id)


async def all_rows(
    ledger: Ledger, wanted: Collection[Outcome] | None = None, unreadable: list[str] | None = None
) -> AsyncGenerator[LedgerRow, None]:
    """The rows of these outcomes, all unless given, in their order. Raises LedgerError.

    `unreadable`: gets what is wrong with rows that cannot be read.
    """
    after = 0
    where = [] if wanted is None else [OUTCOME.in_([each.value for each in wanted])]
    while True:
        page = await ledger.database.find(_mine(ledger, rows.c.id > after, *where).limit(_PAGE))
        found, wrong = readable(page)
        if unreadable is not None:
            unreadable += wrong
        for row in found:
            yield row
        if len(page) < _PAGE:
            return
        after = page[-1]["id"]


async def contradicting(ledger: Ledger) -> AsyncGenerator[LedgerRow, None]:
    """The first created rows whose payouts contradict themselves. Raises LedgerError."""
    is_unclear = rows.c.payout_end == PayoutEnd.UNCLEAR.value
    unclear = _mine(ledger, rows.c.state == RowState.CREATED.value, is_unclear).limit(_PAGE)
    for row in readable(await ledger.database.find(unclear))[0]:
        yield row


async def numbered(ledger: Ledger, numbers: Iterable[int]) -> dict[int, LedgerRow]:
    """{number: row} of the rows with these numbers. Raises LedgerError."""
    wanted = sorted(numbers)
    found = dict[int, LedgerRow]()
    for start in range(0, len(wanted), _GROUP):
        group = wanted[start : start + _GROUP]
        is_named = sa.or_(rows.c.number.in_(group), sa.and_(rows.c.number.is_(None), rows.c.id.in_(group)))
        there = await ledger.database.find(_mine(ledger, is_named))
        found.update((row.number, row) for row in readable(there)[0])
    return found


async def find(ledger: Ledger, name: str | int) -> LedgerRow | None:
    """The row with this key, a reference that it has or had, or its number; None without one."""
    if isinstance(name, int):
        return (await numbered(ledger, [name])).get(name)
    for is_named in (rows.c.row_key == name, rows.c.stem == parted(name)[0]):
        found, wrong = readable(await ledger.database.find(_mine(ledger, is_named).limit(1)))
        if wrong:
            raise LedgerError(ledger.label, wrong[0], remedy=SEE)
        if found:
            return found[0]
    if name.isascii() and name.isdecimal() and len(name) < 12:
        return (await numbered(ledger, [int(name)])).get(int(name))
    return None


async def statuses(ledger: Ledger, row: LedgerRow) -> tuple[StatusChange, ...]:
    """Each status of a row's payouts that differs from the one before. Raises LedgerError."""
    theirs = sa.select(words).where(words.c.row == row.id).order_by(words.c.id).limit(_GROUP)
    found = await ledger.database.find(theirs)
    if not found and row.payout_id is not None:
        contradicts = row.payout_end is PayoutEnd.UNCLEAR
        at = row.decided_at or 0.0
        return (StatusChange(row.service_status, row.payout_id, at, row.service_at, contradicts),)
    return tuple(map(word_of_service, found))


async def read_at(ledger: Ledger, page: Sequence[LedgerRow]) -> dict[int, float]:
    """{id: when the list showed the present status of the row's payout}, of rows in their order.

    Those of which it showed none are left out. Raises LedgerError.
    """
    is_theirs = words.c.row.between(page[0].id, page[-1].id)
    latest = (
        sa.select(words.c.row, sa.func.max(words.c.at).label("at")).where(is_theirs).group_by(words.c.row)
    )
    return {word["row"]: word["at"] for word in await ledger.database.find(latest)}


async def rows_mark(ledger: Ledger) -> RowsMark:
    """Read what differs once rows of any batch were added or deleted. Raises LedgerError."""
    mark = sa.select(sa.func.count(), sa.func.max(rows.c.id), sa.func.max(rows.c.stem))
    return tuple((await ledger.database.find(mark))[0].values())


async def row_keys(ledger: Ledger) -> dict[str, str]:
    """{reference without its generation: the row's key} of all batches. Raises LedgerError."""
    every = await ledger.database.find(sa.select(rows.c.stem, rows.c.row_key))
    return {row["stem"]: row["row_key"] for row in every}


async def sent_payouts(ledger: Ledger, references: Collection[str]) -> list[LedgerRow]:
    """The rows with these references that were ever sent. Raises LedgerError."""
    is_named = rows.c.stem.in_({parted(each)[0] for each in references})
    return readable(await ledger.database.find(_mine(ledger, is_named, rows.c.first_sent.is_not(None))))[0]


async def has_payouts(ledger: Ledger) -> bool:
    """Whether any row's payout is known. Raises LedgerError."""
    return await ledger.database.has(_mine(ledger, rows.c.payout_id.is_not(None)))


async def has_rows(ledger: Ledger) -> bool:
    """Whether any row has the batch's name. Raises LedgerError."""
    return await ledger.database.has(_mine(ledger))
