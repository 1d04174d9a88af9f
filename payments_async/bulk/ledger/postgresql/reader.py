"""Reads the rows of a batch, chunk by chunk in short transactions, in the memory of a page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeVar

import attrs

from ...protocol.clocks import Timestamps
from ...protocol.outcomes import NOT_ARRIVED, OF_STATE
from ...protocol.records import Awaited, IntentTimes, LedgerRow
from ...protocol.row_state import RowState
from ..rows import readable
from . import chunks as _chunks
from . import rows as _rows
from .chunks import WHOLE, Batch, Chunk
from .driver.database import Database
from .driver.session import Rows, Statement
from .rows import undamaged
from .schema import states_table

_PAGE: Final = 500
_OF_STATE: Final = "s.state = %s"
_FAILED: Final = "s.payout_end = 'failed'"
_AWAITED: Final = (
    "WITH awaited AS (SELECT s.first_intent FROM {states} s "
    "WHERE s.number BETWEEN %s AND %s AND s.state = 'CREATED' AND s.payout_end = 'open') "
    "SELECT (SELECT count(*) FROM awaited), min(e.server), count(*) = count(e.server) "
    "FROM payments.entries e WHERE e.batch = %s AND e.chunk = %s "
    "AND e.number IN (SELECT first_intent FROM awaited)"
)
_TIMES: Final = (
    "SELECT e.chunk, e.number, e.wall, e.monotonic, e.session, e.server FROM payments.entries e "
    "JOIN unnest(%b::int4[], %b::int4[]) AS u(chunk, number) "
    "ON e.chunk = u.chunk AND e.number = u.number WHERE e.batch = %s"
)
_IMPORT: Final = (WHOLE, 1)
"""The entry of the import."""
T = TypeVar("T")


@attrs.frozen
class RowReader:
    """Reads the rows of one batch. Every method may raise LedgerError."""

    database: Database
    batch: Batch
    path: str
    """What messages call the ledger."""
    is_whole: bool = True
    """False if commits were ever lost: a row may have been sent since the import."""

    async def chunks(self, condition: str = "AND c.chunk > 0", *values: Any) -> list[Chunk]:
        """Read chunks, in the order of their numbers."""
        return await self._read(_chunks.reading(self.batch.batch, condition, *values), _chunks.read)

    async def found(self, condition: str, *values: Any, limit: int | None = None) -> list[LedgerRow]:
        """Read rows in the order of their numbers."""
        return await self._rows(_rows.reading(self.batch.batch, condition, values, limit=limit))

    async def first(self) -> LedgerRow:
        """Read the row with the lowest number."""
        return (await self.found("true", limit=1))[0]

    async def last(self, state: RowState) -> LedgerRow | None:
        """Read the row with the highest number in a state."""
        for chunk in reversed(await self.chunks()):
            if chunk.figures.count(*OF_STATE[state]):
                newest = (
                    f"s.number = (SELECT max(n.number) FROM {states_table(self.batch.batch)} n "
                    "WHERE n.number BETWEEN %s AND %s AND n.state = %s)"
                )
                return next(iter(await self.found(newest, chunk.first, chunk.last, state.value)), None)
        return None

    async def numbered(self, numbers: Collection[int]) -> dict[int, LedgerRow]:
        """Read rows by number: {number: row}, without those that do not exist."""
        found = await self._rows(_rows.numbered(self.batch.batch, numbers))
        return {row.number: row for row in found}

    async def by_keys(self, keys: Collection[str]) -> list[LedgerRow]:
        """Read the rows with one of these keys."""
        return await self._rows(_rows.by_keys(self.batch.batch, keys))

    async def by_references(self, references: Collection[str]) -> list[LedgerRow]:
        """Read the rows that have one of these references now."""
        found = await self._rows(_rows.by_references(self.batch.batch, references))
        return [row for row in found if row.reference in references]

    async def pages(
        self, wanted: Callable[[Chunk], bool], condition: str = "true", *values: Any
    ) -> AsyncIterator[LedgerRow]:
        """Read the rows that meet a condition, in the chunks that may have some."""
        for chunk in await self.chunks():
            if wanted(chunk):
                async for row in self.of_chunk(chunk, condition, *values):
                    yield row

    async def of_chunk(self, chunk: Chunk, condition: str, *values: Any) -> AsyncIterator[LedgerRow]:
        """Read the rows of one chunk that meet a condition, a page at a time."""
        last, more = chunk.first - 1, True
        while more:
            page = await self.found(
                f"s.number > %s AND s.number <= %s AND {condition}", last, chunk.last, *values, limit=_PAGE
            )
            for row in page:
                yield row
            more = len(page) == _PAGE
            last = page[-1].number if page else last

    async def rows(self, state: RowState | None) -> AsyncIterator[LedgerRow]:
        """Read all rows, or those in a state."""
        if state is None:
            found = self.pages(lambda _: True)
        else:
            found = self.pages(
                lambda chunk: chunk.figures.count(*OF_STATE[state]) > 0, _OF_STATE, state.value
            )
        async for row in found:
            yield row

    async def failed(self) -> AsyncIterator[LedgerRow]:
        """Read the CREATED rows whose payouts have failed, as far as the ledger knows."""

        def wanted(chunk: Chunk) -> bool:
            return chunk.figures.count(*NOT_ARRIVED) > 0

        async for row in self.pages(wanted, _FAILED):
            yield row

    async def intent_times(self, rows: Iterable[LedgerRow]) -> Mapping[int, IntentTimes]:
        """{row number: times of its intents}, without rows that have none under their present key."""
        wanted = {
            row.number: (row.first_intent, row.key_intent, row.last_intent)
            for row in rows
            if row.first_intent is not None and row.key_intent is not None
        }
        places = {
            (self.batch.chunk_of(number), entry)
            for number, entries in wanted.items()
            for entry in entries
            if entry is not None
        }
        at = await self._moments(places if self.is_whole else {*places, _IMPORT})
        with undamaged(self.path), readable("the time of an intent"):
            times = {
                number: IntentTimes(*(at[self.batch.chunk_of(number), entry or 0] for entry in entries))
                for number, entries in wanted.items()
            }
        if self.is_whole:
            return times
        return {number: attrs.evolve(each, first=at[_IMPORT]) for number, each in times.items()}

    async def _moments(self, places: Collection[tuple[int, int]]) -> dict[tuple[int, int], Timestamps]:
        chunks, entries = zip(*places, strict=True) if places else ((), ())
        values = (list(chunks), list(entries), self.batch.batch)
        (found,) = await self.database.read((_TIMES, values))
        return {(chunk, number): Timestamps(*at) for chunk, number, *at in found}

    async def awaited(self) -> Awaited:
        """Count the rows whose payouts are awaited, and find when the first was begun."""
        rows, since, known = 0, None, True
        if not self.is_whole:
            since = (await self._moments({_IMPORT}))[_IMPORT].server
            known = since is not None
        sql = _AWAITED.format(states=states_table(self.batch.batch))
        for chunk in await self.chunks("AND c.not_final > 0"):
            place = (chunk.first, chunk.last, self.batch.batch, chunk.number)
            ((number, begun, is_known),), *_ = await self.database.read((sql, place))
            rows, known = rows + number, known and is_known
            since = begun if since is None or (begun is not None and begun < since) else since
        return Awaited(rows, since if known else None)

    async def _rows(self, statement: Statement) -> list[LedgerRow]:
        return [each.row for each in await self._read(statement, _rows.stored)]

    async def _read(self, statement: Statement, parse: Callable[[Rows], T]) -> T:
        (found,) = await self.database.read(statement)
        with undamaged(self.path):
            return parse(found)
