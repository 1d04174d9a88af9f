"""The ledger of a batch in a SQLite file, on the disk before anything is sent.

    async with await SqliteLedger.open("may.ledger", clock=clock, create=True) as ledger:
        await ledger.import_rows(binding, rows)

A file is a batch with one chunk of rows. One process has it, so what the last commit left is known here.
Every commit is synced to the disk.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Self

import attrs

from ..._protocol.clocks import Timestamps
from ..._protocol.records import Binding, CheckReport, Claim, Header, NewRow, Resend
from ..._protocol.run_figures import RunFigures, RunSeries, RunTime, SpeedFigures
from ...ledger_errors import (
    BatchExists,
    InputPaidElsewhere,
    LedgerDamaged,
    LedgerMissing,
    LedgerNewer,
    LedgerOlder,
    LedgerRefused,
)
from .. import run_figures
from ..batches import FORM
from ..check import checked
from ..chunks import Chunk, LockedChunks
from ..commits import Commit, Committer
from ..importing import Loading, provisional
from ..ledger import Ledger
from ..stored_rows import UnreadableRecord, readable
from ..transactions import Purpose, Transaction
from . import driver, status_file
from .check import BATCH, ROWS, LedgerEnd, ending
from .connection import FileTransaction, LedgerConnection, open_handle
from .dialect import ADD_BATCH, FIGURES, LEFT_IN_FLIGHT, OF_FORM, RUNS, TABLE_NAMES, TABLES
from .file import APPLICATION_ID
from .lock import HighWater, emptied
from .status_file import StatusFile


@attrs.frozen
class FileCommitter(Committer):
    """Makes the commits of the batch of a file."""

    ends: Mapping[int, Chunk] = attrs.field(kw_only=True)
    """{chunk: what the last commit here left}."""

    def moment(self, locked: LockedChunks) -> Timestamps:
        """The time of a commit, on this process's clocks."""
        return self.clock()

    def require_store(self, locked: LockedChunks) -> None:
        """Raise UnreadableRecord when something else than this run has changed the chunks."""
        for number, chunk in locked.chunks.items():
            if chunk != self.ends[number]:
                raise UnreadableRecord("the end of the ledger is not what this run committed last")


class SqliteLedger(Ledger):
    """One batch's ledger, open and locked."""

    def __init__(self, handle: LedgerConnection, clock: Callable[[], Timestamps]) -> None:
        """Use `open`."""
        super().__init__(handle, clock)
        self._handle = handle
        self._ends: dict[int, Chunk] = {}
        self._claimed = 0
        """The highest number of a row that was claimed."""
        self._is_discarded = False
        self._all: RunSeries | None = None  # as stored, once it was read

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
        end = await handle.snapshot(lambda db: _opened(db, handle))
        if end is not None:
            self._stands(end)
            await handle.in_write_ahead_log()
        elif not create:
            raise LedgerMissing(handle.path, "holds no batch: its import did not end")

    def _stands(self, end: LedgerEnd) -> None:
        """Take what the last commit left."""
        self._facts, self._ends = end.facts, {chunk.number: chunk for chunk in end.chunks}
        self._figures, self._total = {ROWS: self._ends[ROWS].figures}, None
        self._note()

    def _took(self, commit: Commit) -> None:
        """Keep what a commit has changed, even when its caller is gone."""
        super()._took(commit)
        self._ends.update((each.chunk.number, each.chunk) for each in commit.writes)
        self._note()

    def _note(self) -> None:
        """Record the last commit in the lock file."""
        ends = [(number, chunk.entries, chunk.head.hex()) for number, chunk in sorted(self._ends.items())]
        self._handle.lock.note(HighWater(self.facts.batch.batch_id, ends))

    async def close(self) -> None:
        """Wait for a running commit, close and unlock the file. One made now, without a batch, is removed."""
        if self._handle.made and self.is_empty:
            self._handle.remove_when_closed()
        if self._is_discarded:
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

    @cached_property
    def _committer(self) -> FileCommitter:
        return FileCommitter(
            self._handle,
            self.facts.batch,
            self.path,
            self._clock,
            self._took,
            self._in_flight,
            ends=self._ends,
        )

    async def refresh(self) -> None:
        """Do nothing: no other process can change the file meanwhile."""

    async def paid_elsewhere(self, binding: Binding) -> InputPaidElsewhere | None:
        """Find another ledger, in the same folder, that holds the same input, by its status file."""
        return status_file.paid_elsewhere(self.path, binding)

    def publish(self, activity: Mapping[str, Any] | None, *, running: bool) -> None:
        """Rewrite the status file beside the ledger."""
        at, speed = self._clock().wall, None
        if self._all is not None:
            speed = SpeedFigures.of(self._all + self.recorder.pending(at).series, at).facts()
        state: dict[str, Any] = {"pid": os.getpid(), "at": at, "running": running}
        facts = status_file.report(self.totals, self.header, **state, activity=activity, speed=speed)
        StatusFile.of(self.path).write(facts)

    async def import_rows(self, binding: Binding, rows: AsyncIterable[NewRow]) -> Header:
        """Import all rows. A cancelled import is rolled back."""
        at = self._clock()

        async def work(transaction: Transaction) -> LedgerEnd:
            if not self.is_empty:
                raise BatchExists(self.path)
            transaction.write((ADD_BATCH, provisional(BATCH, binding)))
            await Loading(BATCH, self.path, binding).load(transaction, rows, at)
            end = await ending(transaction, None)
            assert end is not None  # it was just imported
            return end

        self._stands(await self._handle.once(work))
        await self._handle.in_write_ahead_log()
        return self.header

    async def discard(self) -> None:
        """Remove the file once it is closed. Raises LedgerRefused when a row was ever claimed for sending."""
        used = self._on_rows(self._sql.used)

        async def work(transaction: Transaction) -> None:
            if (await transaction.read(used))[0]:
                why = "its rows were sent or cancelled: it is the record of that"
                raise LedgerRefused(self.path, None, why)

        def done(_: None) -> None:  # before the next transaction, which may be a claim
            self._handle.remove_when_closed()
            self._is_discarded = True

        await self._handle.commit(work, purpose=Purpose.READ, done=done)

    def _claiming(self) -> Iterable[tuple[int, int]]:
        return ((ROWS, self._claimed),)

    async def claim(self, limit: int) -> Claim:
        """Mark up to `limit` NEW rows IN_FLIGHT. Returned only once the intent is on the disk."""
        commit = await self._committer.claim(ROWS, after=self._claimed, limit=limit)
        self._claimed = max((row.number for row in commit.rows), default=self._claimed)
        return Claim(commit.rows, commit.at)

    async def resend(self, resends: Iterable[Resend]) -> Claim:
        """Record intents to post unfinished rows again, without decided ones; on the disk when it returns."""
        commit = await self._committer.resend(resends, {})
        return Claim(commit.rows, commit.at)

    async def _left(self) -> list[tuple[Chunk, int | None]]:
        return [(chunk, chunk.entries) for chunk in await self._chunks()]

    async def run_times(self) -> tuple[RunTime, ...]:
        """When each run was at work that sent a row, the last one at the end."""
        (runs,) = await self._handle.read((RUNS, ()))
        ends = await self._handle.read(*((LEFT_IN_FLIGHT, (last, session)) for session, last, *_ in runs))
        return tuple(
            RunTime(float(began), float(ended), is_cut_off=bool(left))
            for (_, _, began, ended), ((left,),) in zip(runs, ends, strict=True)
        )

    async def series(self) -> RunSeries:
        """The answers of all runs so far, second by second."""
        if self._all is None:
            stored = RunSeries()
            with self.recorder.reading():
                stored = await run_figures.series(self._handle, BATCH)
            self._all = stored
        return self._all + self.recorder.pending(self._clock().wall).series

    async def _store_figures(self, figures: RunFigures) -> None:
        before = await run_figures.series(self._handle, BATCH) if self._all is None else self._all

        def stored(_: None) -> None:
            self._all = before + figures.series

        await self._committer.save(figures, stored)

    async def check(self) -> CheckReport:
        """Check all of the ledger, SQLite's structure too. Nothing else is done meanwhile."""
        batch_id = self.facts.batch.batch_id
        try:
            wrong = await self._handle.snapshot(self._differences)
            report = await checked(self._handle, batch_id)
        except LedgerDamaged as error:  # so damaged that it could not be read through
            return CheckReport(0, 0, "", error.findings).with_finding(self.gone)
        report = attrs.evolve(report, findings=tuple(dict.fromkeys((*wrong, *report.findings))))
        return report.with_finding(self.gone)  # a deleted file can still be read and checked to its end

    async def _differences(self, transaction: Transaction) -> list[str]:
        """Find out what is wrong with the file itself, and with its end."""
        end = await ending(transaction, None)
        if end is None or {chunk.number: chunk for chunk in end.chunks} != self._ends:
            raise UnreadableRecord("the end of the ledger is not what this run committed last")
        assert isinstance(transaction, FileTransaction)
        return [*end.findings, *await driver.faults(transaction.connection)]


async def _opened(transaction: Transaction, handle: LedgerConnection) -> LedgerEnd | None:
    """Read what a ledger's last commit left. Without a batch, create its tables and return None.

    Raises LedgerNewer, LedgerOlder or LedgerDamaged.
    """
    path, mark = handle.path, handle.lock.mark
    assert isinstance(transaction, FileTransaction)
    connection = transaction.connection
    if handle.needs_check and (faults := await driver.faults(connection, quick=True)):
        raise LedgerDamaged(path, faults)
    names = {name for (name,) in await driver.run(connection, TABLE_NAMES)}
    for table in OF_FORM.keys() & names:
        for (form,) in await driver.run(connection, OF_FORM[table]):
            if form != FORM:
                with readable("a batch"):
                    is_newer = int(form) > FORM
                raise (LedgerNewer if is_newer else LedgerOlder)(path, found=form, known=FORM)
    is_new = "batches" not in names
    if is_new:
        await driver.run(connection, f"PRAGMA application_id={APPLICATION_ID}")
    for table in (*(TABLES if is_new else ()), *FIGURES):  # without indexes: they are made after the rows
        await driver.run(connection, table)
    end = await ending(transaction, mark)
    if end is None:
        if (await transaction.read((transaction.sql.chunk_names, (BATCH, BATCH))))[0]:
            raise LedgerDamaged(path, ["the header is missing"])
        if mark is not None:
            raise LedgerDamaged(path, [emptied(mark)])
    elif end.findings:
        raise LedgerDamaged(path, end.findings)
    return end
