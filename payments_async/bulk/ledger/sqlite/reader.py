"""The reading half of an open ledger in a file, and its first transaction."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Self

from aiosqlite import Connection

from ...ledger_errors import InputPaidElsewhere, LedgerDamaged, LedgerMissing, LedgerNewer, LedgerOlder
from ...protocol.attempts import RowAttempts
from ...protocol.clocks import Timestamps
from ...protocol.records import (
    Awaited,
    Binding,
    CheckReport,
    Header,
    IntentTimes,
    LedgerRow,
    RowTotals,
)
from ...protocol.row_state import UNFINISHED, RowState
from ...protocol.run_figures import RunSeries, RunTime, SpeedFigures
from ..ledger import Ledger
from ..run_recorder import RunRecorder
from . import check as _check
from . import driver, journal, run_figures, status_file
from . import rows as _store
from .connection import LedgerConnection, Purpose, open_handle
from .journal import LedgerState
from .lock import HighWater
from .rows import StoredRow
from .run_times import run_times as _run_times
from .schema import SCHEMA, TABLES
from .status_file import StatusFile

_AWAITED: Final = "SELECT count(*) FROM rows WHERE state = 'CREATED' AND payout_end = 'open'"
_AWAITED_SINCE: Final = """
    SELECT min(server), count(*) = count(server) FROM entries
    WHERE number IN (SELECT DISTINCT first_intent FROM rows WHERE state = 'CREATED' AND payout_end = 'open')
"""
_LATEST_GENERATION: Final = "SELECT max(generation) FROM rows WHERE generation > 0"
_LATEST_COMMAND: Final = "SELECT max(number) FROM entries WHERE kind IN ('retry', 'correct')"
_IS_LEDGER: Final = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'header'"


class LedgerReader(Ledger):
    """Opens, closes and reads a ledger."""

    def __init__(self, handle: LedgerConnection, clock: Callable[[], Timestamps]) -> None:
        """Use `open`."""
        self._handle = handle
        self._clock = clock
        self._state: LedgerState | None = None
        self._discarded = False
        self.recorder: RunRecorder = RunRecorder()
        self._series: RunSeries | None = None  # as stored, once it was read

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        *,
        clock: Callable[[], Timestamps],
        create: bool = False,
        read_only: bool = False,
    ) -> Self:
        """Open and lock the ledger at `path`, and check that its last commit is as it was written.

        With `create`, a missing file is made (mode 0600), and one that holds no batch yet is used. `clock`
        gives the moment of each entry; its `session` names this run. `read_only`: for a moment, to read it.
        """
        pid, since = os.getpid(), clock().wall
        handle = await open_handle(os.fspath(path), create=create, pid=pid, since=since, read_only=read_only)
        ledger = cls(handle, clock)
        try:
            await ledger._begin(create=create)
        except BaseException:
            await handle.close()
            raise
        return ledger

    async def _begin(self, *, create: bool) -> None:
        handle = self._handle
        self._state = await handle.transact(
            lambda db: _opened(db, handle.path, handle.lock.mark, check=handle.needs_check)
        )
        if self._state is not None:
            await handle.in_write_ahead_log()
        elif not create:
            raise LedgerMissing(handle.path, "holds no batch: its import did not end")

    async def close(self) -> None:
        """Wait for a running commit, close and unlock the file. One made now, without a batch, is removed."""
        if self._handle.made and self.is_empty:
            self._handle.remove_when_closed()
        if self._discarded:
            StatusFile.of(self.path).remove()
        await self._handle.close()

    @property
    def path(self) -> str:
        """The ledger's file, absolute."""
        return self._handle.path

    @property
    def gone(self) -> str | None:
        """Describe what happened to the file when it is no longer the one that was opened; else None."""
        return self._handle.gone

    @property
    def is_empty(self) -> bool:
        """True if nothing was imported yet."""
        return self._state is None

    @property
    def header(self) -> Header:
        """The ledger's facts about its batch. Raises LedgerMissing before the import."""
        return self._current.header

    @property
    def head(self) -> tuple[int, str]:
        """The last entry of the chain: its number, and its hash in hexadecimal. Raises LedgerMissing too."""
        head = self._current.head
        return head.number, head.hash.hex()

    @property
    def totals(self) -> RowTotals:
        """Rows and sums by outcome and currency, as of the last commit. Raises LedgerMissing too."""
        return self._current.totals

    @property
    def _current(self) -> LedgerState:
        if self._state is None:
            raise LedgerMissing(self.path, "holds no batch yet: `load` comes first")
        return self._state

    async def refresh(self) -> None:
        """Do nothing: no other process can change the file meanwhile."""

    async def paid_elsewhere(self, binding: Binding) -> InputPaidElsewhere | None:
        """Find another ledger, in the same folder, that holds the same input, by its status file."""
        return status_file.paid_elsewhere(self.path, binding)

    def publish(self, activity: Mapping[str, Any] | None, *, running: bool) -> None:
        """Rewrite the status file beside the ledger."""
        at, speed = self._clock().wall, None
        if self._series is not None:
            speed = SpeedFigures.of(self._series + self.recorder.pending(at).series, at).facts()
        state: dict[str, Any] = {"pid": os.getpid(), "at": at, "running": running}
        facts = status_file.report(self.totals, self.header, **state, activity=activity, speed=speed)
        StatusFile.of(self.path).write(facts)

    async def first(self) -> LedgerRow:
        """Read the row with the lowest number. Raises LedgerMissing before the import."""
        self.header  # noqa: B018 - a ledger with a header has rows
        return (await self._found(_store.FIRST))[0].row

    async def last(self, state: RowState) -> LedgerRow | None:
        """Read the row with the highest number in a state."""
        found = await self._found(_store.LAST_IN_STATE, str(state))
        return found[0].row if found else None

    async def by_keys(self, keys: Collection[str]) -> list[LedgerRow]:
        """Read the rows with one of these keys, at most a thousand keys."""
        return [each.row for each in await self._found(_store.BY_KEYS, _store.listed(keys))]

    async def by_references(self, references: Iterable[str]) -> list[LedgerRow]:
        """Read the rows with one of these references, at most as many as a page of the list has."""
        found = await self._found(_store.BY_REFERENCES, _store.listed(set(references)))
        return [each.row for each in found]

    async def _found(self, statement: str, *parameters: Any) -> list[StoredRow]:
        return await self._handle.transact(lambda db: _store.rows(db, statement, *parameters))

    async def intent_times(self, rows: Iterable[LedgerRow]) -> Mapping[int, IntentTimes]:
        """{row number: times of its intents}, without rows that have none under their present key."""
        intents = {row.number: (row.first_intent, row.key_intent, row.last_intent) for row in rows}
        entries = {entry for each in intents.values() for entry in each if entry is not None}
        at = await self._handle.transact(lambda db: _store.moments(db, entries))
        return {
            number: IntentTimes(at[first], at[key], at[last])
            for number, (first, key, last) in intents.items()
            if first is not None and key is not None and last is not None
        }

    async def rows(self, state: RowState | None = None) -> AsyncIterator[LedgerRow]:
        """Read all rows, or those in a state, in the order of their numbers, a page at a time."""
        statement, parameters = (_store.ALL, ()) if state is None else (_store.IN_STATE, (str(state),))
        async for row in self._pages(statement, *parameters):
            yield row

    async def unfinished(self) -> AsyncIterator[LedgerRow]:
        """Read rows as an earlier run left them, IN_FLIGHT ones first, then IN_DOUBT; none changed since."""
        until, _ = self.head
        for state in UNFINISHED:
            async for row in self._pages(_store.UNCHANGED, str(state), until):
                yield row

    async def failed(self) -> AsyncIterator[LedgerRow]:
        """Read the CREATED rows whose payouts have failed, as far as the ledger knows."""
        async for row in self._pages(_store.HAS_FAILED):
            yield row

    async def numbered(self, numbers: Iterable[int]) -> dict[int, LedgerRow]:
        """Read rows by number: {number: row}, without those that do not exist."""
        found = await self._handle.transact(lambda db: _store.numbered(db, numbers))
        return {number: each.row for number, each in found.items()}

    async def awaited(self) -> Awaited:
        """Count the rows whose payouts are awaited, and find when the first was begun."""
        rows, *_ = await self._first(_AWAITED)
        since, known = await self._first(_AWAITED_SINCE)
        return Awaited(rows, since if known else None)

    async def latest_generation(self) -> int:
        """The highest generation of all rows."""
        (found,) = await self._first(_LATEST_GENERATION)
        return found or 0

    async def latest_command(self) -> int:
        """The number of the last entry that made rows new again."""
        (found,) = await self._first(_LATEST_COMMAND)
        return found or 0

    async def run_times(self) -> tuple[RunTime, ...]:
        """When each run was at work that sent a row, the last one at the end."""
        return await self._handle.transact(_run_times)

    async def series(self) -> RunSeries:
        """The answers of all runs so far, second by second."""
        if self._series is None:
            stored = RunSeries()
            with self.recorder.reading():
                stored = await self._handle.transact(run_figures.series, Purpose.FIGURES)
            self._series = stored
        return self._series + self.recorder.pending(self._clock().wall).series

    async def attempts(self, numbers: Collection[int]) -> Mapping[int, RowAttempts]:
        """{row number: its attempts}, at most a thousand, without rows that were created at once."""
        stored: Mapping[int, RowAttempts] = {}
        with self.recorder.reading():
            stored = await self._handle.transact(
                lambda db: run_figures.attempts(db, numbers), Purpose.FIGURES
            )
        return self.recorder.added_to(stored, numbers)

    async def _first(self, statement: str, *parameters: Any) -> Sequence[Any]:
        return (await self._handle.transact(lambda db: driver.run(db, statement, *parameters)))[0]

    async def _pages(self, statement: str, *parameters: Any) -> AsyncIterator[LedgerRow]:
        last, more = -1, True
        while more:
            page = await self._found(statement, *parameters, last)
            for each in page:
                yield each.row
            more = len(page) == _store.PAGE
            last = page[-1].row.number if page else last

    async def check(self) -> CheckReport:
        """Check all of the ledger: SQLite's structure, chain, rows and sums.

        A few seconds for 100,000 rows; nothing else is done meanwhile. What is wrong is in `.findings`.
        """
        state = self._current
        try:
            report = await self._handle.transact(lambda db: _check.everything(db, state))
        except LedgerDamaged as error:
            report = CheckReport(0, 0, "", error.findings)  # so damaged that it could not be read through
        return report.with_finding(self.gone)  # a deleted file can still be read and checked to its end


async def _opened(
    db: Connection, path: str, mark: HighWater | None, *, check: bool = True
) -> LedgerState | None:
    """Read the ledger's state after its last commit. Without a batch, create its tables and return None.

    `check`: have SQLite check the file's structure first. Raises LedgerNewer, LedgerOlder or LedgerDamaged.
    """
    if check and (faults := await driver.faults(db, quick=True)):
        raise LedgerDamaged(path, faults)
    ((is_ledger,),) = await driver.run(db, _IS_LEDGER)
    if not is_ledger:
        _refuse_emptied(path, mark)
        await driver.mark(db)
        for table in TABLES:  # without indexes: they are made after the rows
            await driver.run(db, table)
        return None
    form = await journal.schema(db)
    if form is not None and form != SCHEMA:
        raise (LedgerNewer if form > SCHEMA else LedgerOlder)(path, found=form, known=SCHEMA)
    ended = await _check.end(db, mark)
    if ended is None:
        if await journal.entries(db, journal.LAST):
            raise LedgerDamaged(path, ["the header is missing"])
        _refuse_emptied(path, mark)
        return None
    state, findings = ended
    if findings:
        raise LedgerDamaged(path, findings)
    return state


def _refuse_emptied(path: str, mark: HighWater | None) -> None:
    if mark is not None:
        raise LedgerDamaged(path, [_check.emptied(mark)])
