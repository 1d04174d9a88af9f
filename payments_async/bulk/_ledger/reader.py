"""The reading half of an open ledger: rows chunk by chunk in short transactions, in the memory of a page."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from typing import Any, Final, NoReturn, Self, TypeVar
from unicodedata import normalize

import attrs

from ..._http.addresses import same_service
from .._protocol.attempts import RowAttempts
from .._protocol.clocks import Timestamps
from .._protocol.outcomes import NOT_ARRIVED, OF_STATE, OPEN, Outcome, RowTotals, count_rows
from .._protocol.records import (
    Awaited,
    Binding,
    Header,
    IntentTimes,
    LedgerRow,
    RowFigures,
    StatusChange,
    added_up,
)
from .._protocol.row_state import UNFINISHED, RowState
from .._protocol.run_figures import RunSeries, RunTime
from ..ledger_errors import (
    LedgerGone,
    LedgerMismatch,
    LedgerMissing,
    LedgerOfAnotherAddress,
    LedgerOfAnotherBatch,
    LedgerOfAnotherEnvironment,
    LedgerOfAnotherInput,
    LedgerOfAnotherKey,
)
from . import hash_chain, run_figures
from .batches import BatchFacts
from .chunks import BATCH_CHUNK, Chunk, of_batch, read_chunks
from .run_figures import RunRecorder
from .statements import LAST_NUMBER, PAGE, Rows, Statement, Statements
from .stored_rows import StoredRow, readable, stored_rows, undamaged
from .transactions import LedgerDatabase

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
"""What no key and no reference has: neither a file nor a database can hold it."""
_MISMATCHES: Final[tuple[tuple[str, type[LedgerMismatch]], ...]] = (
    ("environment", LedgerOfAnotherEnvironment),
    ("base_url", LedgerOfAnotherAddress),
    ("batch_id", LedgerOfAnotherBatch),
    ("key_fingerprint", LedgerOfAnotherKey),
    ("input_hash", LedgerOfAnotherInput),
)
T = TypeVar("T")
_IMPORT = (BATCH_CHUNK, 1)
"""The entry of the import."""


class LedgerReader(ABC):
    """Reads one batch. Every method may raise a LedgerError; see `ledger_errors`."""

    def __init__(self, database: LedgerDatabase, clock: Callable[[], Timestamps]) -> None:
        """Use `open`. `clock`: the time on this process's clocks; its `session` names this run."""
        self._db = database
        self._clock = clock
        self._facts: BatchFacts | None = None
        self._figures: dict[int, RowFigures] = {}
        self._total: RowFigures | None = None
        self._in_flight: dict[int, StoredRow] = {}
        """{number: row}, of rows that were claimed here and have no outcome yet."""
        self.recorder: RunRecorder = RunRecorder()
        self._series = run_figures.StoredSeries()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for a running commit and close. A second call does nothing."""
        await self._db.close()

    @property
    @abstractmethod
    def path(self) -> str:
        """Where the ledger is, for messages: a file's absolute path, or an address without its password."""

    @property
    def is_empty(self) -> bool:
        """True if nothing was imported yet."""
        return self._facts is None

    @property
    def facts(self) -> BatchFacts:
        """The batch, as read last. Raises LedgerMissing before the import."""
        return self._facts or self._refuse_empty()

    def _refuse_empty(self) -> NoReturn:
        raise LedgerMissing(self.path, "holds no batch yet: `load` comes first")

    @property
    def header(self) -> Header:
        """The ledger's facts about its batch. Raises LedgerMissing before the import."""
        return self.facts.header

    @property
    def totals(self) -> RowTotals:
        """Rows and sums by outcome and currency. Raises LedgerMissing before the import."""
        self.facts  # noqa: B018 - raises before the import
        if self._total is None:
            self._total = added_up(self._figures.values())
        return self._total.totals

    @property
    def gone(self) -> str | None:
        """Describe what happened to the ledger when it is no longer the one that was opened; else None."""
        return None

    @property
    def unproven(self) -> str | None:
        """Say that commits were lost, and that no reading of the list has proven yet what; else None."""
        return None

    @property
    def unclosed(self) -> str | None:
        """Say why the batch is not closed, and what closes it; None once all its rows are decided."""
        left = count_rows(self.totals, *OPEN)
        return f"{left:,} of its rows are not decided: `payments payouts run` goes on" if left else None

    def require_there(self) -> None:
        """Raise LedgerGone when the ledger is no longer the one that was opened: commits would be lost."""
        if gone := self.gone:
            raise LedgerGone(self.path, gone)

    def require(self, binding: Binding, *, other_key: bool = False, other_input: bool = False) -> None:
        """Check that this run fits the ledger's batch, environment, base URL, key and input.

        `other_key` and `other_input` allow these to differ, once that was proven safe. Raises the
        LedgerMismatch that fits.
        """
        allowed, recorded = {"key_fingerprint": other_key, "input_hash": other_input}, self.header.binding
        for name, error in _MISMATCHES:
            before, now = getattr(recorded, name), getattr(binding, name)
            same = same_service(before, now) if name == "base_url" else before == now
            if not same and not allowed.get(name):
                raise error(self.path, recorded=before, given=now)

    def _keep(self, figures: Mapping[int, RowFigures]) -> None:
        """Take the figures of this ledger's chunks from those of any."""
        self._figures.update((chunk, figures[chunk]) for chunk in figures.keys() & self._figures.keys())
        self._total = None

    def now(self) -> float:
        """Seconds since 1970."""
        return self._clock().wall

    @property
    def _sql(self) -> Statements:
        return self._db.sql

    def _on_rows(self, sql: str, *values: Any) -> Statement:
        """Make a statement about the batch's rows."""
        return of_batch(self.facts.batch.batch, sql, *values)

    @property
    def _is_whole(self) -> bool:
        """False if commits were ever lost: a row may have been sent since the import."""
        return True

    # Rows

    async def first(self) -> LedgerRow:
        """Read the row with the lowest number. Raises LedgerMissing before the import."""
        return (await self._rows(self._on_rows(self._sql.rows_after, 0, LAST_NUMBER, 1)))[0]

    async def last(self, state: RowState) -> LedgerRow | None:
        """Read the row with the highest number in a state."""
        for chunk in reversed(await self._chunks()):
            if chunk.figures.count(*OF_STATE[state]):
                newest = self._on_rows(self._sql.last_in_state, chunk.first, chunk.last, state.value)
                return next(iter(await self._rows(newest)), None)
        return None

    async def numbered(self, numbers: Iterable[int]) -> dict[int, LedgerRow]:
        """Read rows by number: {number: row}, without those that do not exist."""
        wanted = sorted({number for number in numbers if 0 < number <= LAST_NUMBER})
        found = await self._rows(self._on_rows(self._sql.rows_numbered, wanted))
        return {row.number: row for row in found}

    async def by_keys(self, keys: Collection[str]) -> list[LedgerRow]:
        """Read the rows with one of these keys, at most a thousand keys."""
        return await self._rows(self._on_rows(self._sql.rows_by_keys, [self._sql.named(key) for key in keys]))

    async def find(self, name: str | int) -> LedgerRow | None:
        """Read the row with this key; else that has or had this reference, or number. An int is a number."""
        if isinstance(name, int):
            return (await self.numbered([name])).get(name)
        if _UNSTORABLE.search(name):
            return None
        composed = normalize("NFC", name)
        found = await self.by_keys([composed])  # keys are kept composed, references as sent
        found = found or await self._having([name]) or await self._having([composed])
        if not found and _NUMBER.fullmatch(name):
            found = list((await self.numbered([int(name)])).values())
        return found[0] if found else None

    async def by_references(self, references: Iterable[str]) -> list[LedgerRow]:
        """Read the rows with one of these references, at most as many as a page of the list has."""
        wanted = set(references)
        return [row for row in await self._having(wanted) if row.reference in wanted]

    async def _having(self, references: Iterable[str]) -> list[LedgerRow]:
        """Read the rows that have, or had, one of these references."""
        named = [self._sql.named(reference) for reference in references]
        return await self._rows(self._on_rows(self._sql.rows_by_references, named))

    async def rows(self, state: RowState | None = None) -> AsyncIterator[LedgerRow]:
        """Read all rows, or those in a state, in the order of their numbers, a page at a time."""
        for chunk in await self._chunks():
            async for row in self._of_chunk(chunk, state):
                yield row

    async def numbers(self, state: RowState) -> AsyncIterator[list[int]]:
        """Read the numbers of the rows in a state, in rising order, a page at a time."""
        for chunk in await self._chunks():
            last, more = chunk.first - 1, chunk.figures.count(*OF_STATE[state]) > 0
            while more:
                in_state = self._on_rows(self._sql.numbers_in_state, last, chunk.last, state.value, PAGE)
                page = [number for (number,) in await self._read(in_state, list)]
                yield page
                more = len(page) == PAGE
                last = page[-1] if page else last

    async def unfinished(self) -> AsyncIterator[LedgerRow]:
        """Read rows as earlier runs left them, those in flight first, then those in doubt."""
        left = await self._left()
        for state in UNFINISHED:
            for chunk, until in left:
                async for row in self._of_chunk(chunk, state, until):
                    yield row

    async def _left(self) -> list[tuple[Chunk, int | None]]:
        """The chunks, each with the last entry that an earlier run can have made; None for any."""
        return [(chunk, None) for chunk in await self._chunks()]

    async def failed(self) -> AsyncIterator[LedgerRow]:
        """Read the CREATED rows whose payouts have failed, as far as the ledger knows."""
        async for row in self.unpaid():
            if row.outcome in NOT_ARRIVED:
                yield row

    async def unpaid(self) -> AsyncIterator[LedgerRow]:
        """Read the CREATED rows whose payouts have failed, or contradict themselves."""
        for chunk in await self._chunks():
            if chunk.figures.count(*NOT_ARRIVED, Outcome.NOT_FINAL):
                async for row in self._pages(chunk, self._sql.rows_unpaid):
                    yield row

    async def _of_chunk(
        self, chunk: Chunk, state: RowState | None, until: int | None = None
    ) -> AsyncIterator[LedgerRow]:
        """Read the rows of a chunk, or those in a state. `until`: those that no later entry has changed."""
        if state is None:
            found = self._pages(chunk, self._sql.rows_after)
        elif not chunk.figures.count(*OF_STATE[state]):
            return
        elif until is None:
            found = self._pages(chunk, self._sql.rows_in_state, state.value)
        else:
            found = self._pages(chunk, self._sql.rows_left, state.value, until)
        async for row in found:
            yield row

    async def _pages(self, chunk: Chunk, sql: str, *values: Any) -> AsyncIterator[LedgerRow]:
        last, more = chunk.first - 1, True
        while more:
            page = await self._rows(self._on_rows(sql, last, chunk.last, *values, PAGE))
            for row in page:
                yield row
            more = len(page) == PAGE
            last = page[-1].number if page else last

    async def _rows(self, statement: Statement) -> list[LedgerRow]:
        return [each.row for each in await self._read(statement, stored_rows)]

    async def _read(self, statement: Statement, parse: Callable[[Rows], T]) -> T:
        (found,) = await self._db.read(statement)
        with undamaged(self.path):
            return parse(found)

    # Chunks and their chains

    async def _chunks(self, numbers: Collection[int] | None = None) -> list[Chunk]:
        """Read the batch's chunks, or those with these numbers, in the order of their numbers."""
        batch = self.facts.batch.batch
        if numbers is None:
            return await self._read((self._sql.chunks, (batch,)), read_chunks)
        return await self._read((self._sql.chunks_numbered, (batch, sorted(numbers))), read_chunks)

    async def intent_times(self, rows: Iterable[LedgerRow]) -> Mapping[int, IntentTimes]:
        """{row number: times of its intents}, without rows that have none under their present key."""
        wanted = {
            row.number: (row.first_intent, row.key_intent, row.last_intent)
            for row in rows
            if row.first_intent is not None and row.key_intent is not None
        }
        chunk_of = self.facts.batch.chunk_of
        places = {
            (chunk_of(number), entry)
            for number, entries in wanted.items()
            for entry in entries
            if entry is not None
        }
        at = await self._moments(places if self._is_whole else {*places, _IMPORT})
        with undamaged(self.path), readable("the time of an intent"):
            times = {
                number: IntentTimes(*(at[chunk_of(number), entry or 0] for entry in entries))
                for number, entries in wanted.items()
            }
        if self._is_whole:
            return times
        return {number: attrs.evolve(each, first=at[_IMPORT]) for number, each in times.items()}

    async def first_send(self) -> float | None:
        """When the first row was sent, by the service's clock: seconds since 1970. None if unknown."""
        if not self._is_whole:
            return None
        (((at, is_known),),) = await self._db.read(
            self._on_rows(self._sql.first_send, self.facts.batch.batch)
        )
        return at if is_known else None

    async def change_times(self, rows: Collection[LedgerRow]) -> Mapping[int, Timestamps]:
        """{row number: when it was changed last}; of a created row, when its status was first seen so."""
        chunk_of = self.facts.batch.chunk_of
        at = await self._moments({(chunk_of(row.number), row.changed_in) for row in rows})
        with undamaged(self.path), readable("the time of a change"):
            return {row.number: at[chunk_of(row.number), row.changed_in] for row in rows}

    async def statuses(self, row: LedgerRow) -> tuple[StatusChange, ...]:
        """Read what the service has said of a row's payouts: each status that differs from the one before.

        Reads the chunk's entries from the row's first intent to its last change, so many at a time that
        commits need not wait.
        """
        is_first = self._is_whole and not row.known.generation
        begin = row.first_intent if is_first and row.first_intent is not None else 0
        batch, found = self.facts.batch, Rows()
        for after in range(begin, row.changed_in, PAGE):
            place = (batch.batch, batch.chunk_of(row.number), after, min(after + PAGE, row.changed_in))
            values = (*place, hash_chain.outlining(row.number))
            (page,) = await self._db.read(self._on_rows(self._sql.entries_of_row, *values))
            found += page
        with undamaged(self.path), readable("the chain"):
            return tuple(hash_chain.status_changes(row.number, found))

    async def _moments(self, places: Collection[tuple[int, int]]) -> dict[tuple[int, int], Timestamps]:
        """{(chunk, entry): when it was made}."""
        by_chunk = dict[int, list[int]]()
        for chunk, entry in sorted(places):
            by_chunk.setdefault(chunk, []).append(entry)
        batch = self.facts.batch.batch
        statements = [
            self._on_rows(self._sql.moments, batch, chunk, entries) for chunk, entries in by_chunk.items()
        ]
        found = await self._db.read(*statements)
        return {(chunk, number): Timestamps(*at) for each in found for chunk, number, *at in each}

    async def awaited(self) -> Awaited:
        """Count the CREATED rows whose payouts are not final, and find when the first was begun."""
        rows, since, known = 0, None, True
        if not self._is_whole:
            since = (await self._moments({_IMPORT}))[_IMPORT].server
            known = since is not None
        for chunk in await self._chunks():
            if not chunk.figures.count(Outcome.NOT_FINAL):
                continue
            place = (chunk.first, chunk.last, self.facts.batch.batch, chunk.number)
            (((number, begun, is_known),),) = await self._db.read(self._on_rows(self._sql.awaited, *place))
            rows, known = rows + number, known and bool(is_known)
            since = begun if since is None or (begun is not None and begun < since) else since
        return Awaited(rows, since if known else None)

    async def latest_generation(self) -> int:
        """The highest generation of all rows."""
        return added_up(chunk.figures for chunk in await self._chunks()).generation

    async def latest_command(self) -> int:
        """The number of the last entry about the batch itself: it grows with each retry and edit."""
        (whole,) = await self._chunks([BATCH_CHUNK])
        return whole.entries

    # How runs went: figures that decide nothing

    async def run_times(self) -> tuple[RunTime, ...]:
        """When each run was at work that sent a row, the last one at the end; none where it is not known."""
        return ()

    async def series(self) -> RunSeries:
        """The answers of all runs so far, second by second: of this one until now, of others as stored."""
        stored, now = RunSeries(), self.now()
        with self.recorder.reading(), undamaged(self.path):
            stored = await self._series.read(self._db, self.facts.batch.batch, now)
        return stored + self.recorder.pending(now).series

    async def attempts(self, numbers: Collection[int]) -> Mapping[int, RowAttempts]:
        """{row number: its attempts}, at most a thousand, without rows that were created at once."""
        stored: Mapping[int, RowAttempts] = {}
        with self.recorder.reading():
            stored = await run_figures.attempts(self._db, self.facts.batch.batch, numbers)
        return self.recorder.added_to(stored, numbers)
