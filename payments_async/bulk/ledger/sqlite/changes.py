"""Plans the changes of rows: which rows, and what each becomes. Refuses what a row's state does not allow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from ...ledger_errors import LedgerRefused
from ...protocol import transitions
from ...protocol.records import LedgerRow
from ...protocol.row_state import IllegalTransition
from . import rows as _store
from .journal import Change, Plan
from .rows import StoredRow

T = TypeVar("T")


async def wanted_rows(db: AsyncConnection, path: str, numbers: Collection[int]) -> list[StoredRow]:
    """Read the rows with these numbers. Raises LedgerRefused for one that is not there."""
    found = await _store.numbered(db, numbers)
    for number in numbers:
        if number not in found:
            raise LedgerRefused(path, number, "is not there")
    return list(found.values())


def moves(path: str, wanted: Mapping[int, T], move: Callable[[LedgerRow, T, int], LedgerRow]) -> Plan:
    """Plan one move for each row: {number: what `move` takes}. The plan raises LedgerRefused."""

    async def plan(db: AsyncConnection, entry: int) -> list[Change]:
        rows = await wanted_rows(db, path, wanted)
        return [(each, _allowed(path, move, each.row, wanted[each.row.number], entry)) for each in rows]

    return plan


def _allowed(
    path: str, move: Callable[[LedgerRow, T, int], LedgerRow], row: LedgerRow, given: T, entry: int
) -> LedgerRow:
    try:
        return move(row, given, entry)
    except (IllegalTransition, transitions.TransitionRefused) as error:
        reason = str(error)
    raise LedgerRefused(path, row.number, reason)
