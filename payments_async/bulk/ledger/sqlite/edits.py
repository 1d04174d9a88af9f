"""The edits of a batch, within one transaction, and the plans of what rows become."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import TypeVar

import attrs
from aiosqlite import Connection

from ...ledger_errors import LedgerRefused
from ...protocol import transitions
from ...protocol.clocks import Timestamps
from ...protocol.records import Binding, LedgerRow, NewRow
from ...protocol.row_state import IllegalTransition
from ..ledger import Edits
from . import journal
from . import rows as _store
from .journal import Change, LedgerState, Plan
from .rows import StoredRow

T = TypeVar("T")


@attrs.define
class SqliteEdits(Edits):
    """The edits of one transaction, all at one moment. `state` is the ledger's after the last of them."""

    state: LedgerState
    _db: Connection
    _path: str
    _at: Timestamps

    async def by_keys(self, keys: Collection[str]) -> list[LedgerRow]:
        """Read the rows with one of these keys."""
        found = await _store.rows(self._db, _store.BY_KEYS, _store.listed(keys))
        return [each.row for each in found]

    async def rows(self) -> AsyncIterator[LedgerRow]:
        """Read all rows in the order of their numbers."""
        last = -1
        while page := await _store.rows(self._db, _store.ALL, last):
            for each in page:
                yield each.row
            last = page[-1].row.number

    async def correct(self, replacements: Collection[NewRow]) -> None:
        """Give rows another body."""
        wanted = {new.number: new for new in replacements}
        await self._commit("correct", moves(self._path, wanted, transitions.corrected))

    async def cancel(self, numbers: Collection[int]) -> None:
        """Cancel rows that were never sent."""
        wanted = dict.fromkeys(numbers)
        await self._commit("cancel", moves(self._path, wanted, _cancelled))

    async def rebind(self, binding: Binding) -> None:
        """Record another binding."""
        header = attrs.evolve(self.state.header, binding=binding)
        self.state = await journal.describe(self._db, self.state, self._at, header)

    async def _commit(self, kind: str, plan: Plan) -> None:
        self.state, _ = await journal.commit(self._db, self.state, kind, self._at, plan)


def _cancelled(row: LedgerRow, _: None, entry: int) -> LedgerRow:
    return transitions.cancelled(row, entry)


async def wanted_rows(db: Connection, path: str, numbers: Collection[int]) -> list[StoredRow]:
    """Read the rows with these numbers. Raises LedgerRefused for one that is not there."""
    found = await _store.numbered(db, numbers)
    for number in numbers:
        if number not in found:
            raise LedgerRefused(path, number, "is not there")
    return list(found.values())


def moves(path: str, wanted: Mapping[int, T], move: Callable[[LedgerRow, T, int], LedgerRow]) -> Plan:
    """Plan one move for each row: {number: what `move` takes}. The plan raises LedgerRefused."""

    async def plan(db: Connection, entry: int) -> list[Change]:
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
