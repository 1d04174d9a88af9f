"""The figures of a page: from the run that holds the ledger, or read from a ledger that nobody works on."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import attrs

from ..._runtime import SYSTEM
from ...bulk import AnyBatch, BatchReport, Cause, RowView, RunSeries
from ...bulk.export.causes import NEED_A_PERSON
from ...bulk.ledger.ledger import SharedLedger
from ...bulk.ledger_errors import LedgerError, LedgerLocked, LedgerMissing
from ...bulk.protocol.records import Header
from ...bulk.protocol.run_figures import RunTime
from ...bulk.protocol.totals import as_text
from ..payouts.session import open_batch
from .address_file import ask_running

if TYPE_CHECKING:
    from ..payouts.ledger_address import LedgerAddress

T = TypeVar("T")
Phase = Literal["reading", "working", "certifying", "ended"]
_SHOWN: Final = 50
"""Rows to look at, at most."""
_EVERY: Final = 5.0
"""Seconds between two readings of the causes, at least."""
_SHARE: Final = 20
"""The time between two readings of the causes is at least so many times that of the last one."""
_PATIENCE: Final = 0.5
"""Seconds that a page waits for a ledger that is busy with an import or a check."""
_FILES: Final = ("", "-wal", ".lock", ".certificate.json")


@attrs.frozen
class LedgerDetails:
    """What is read from the ledger for a page."""

    series: RunSeries = attrs.field(factory=RunSeries)
    runs: tuple[RunTime, ...] = ()
    """When the runs were at work, the last or the present one at the end; only those that are known."""
    causes: tuple[Cause, ...] = ()
    causes_at: float = attrs.field(default=0.0, eq=False)
    """When the causes were read, seconds since 1970."""


@attrs.define
class CauseReader:
    """The causes of rows to look at: all such rows are read, so seldom that it costs a run little."""

    _found: tuple[Cause, ...] = ()
    _at: float = 0.0
    _of: object = None
    _next: float = 0.0

    async def details(self, batch: AnyBatch, runs: tuple[RunTime, ...]) -> LedgerDetails:
        """The details, with causes read anew if there may be others, and it is time. Raises LedgerError."""
        report, began = batch.status(), SYSTEM.monotonic()
        sums = {currency: [each[word] for word in NEED_A_PERSON] for currency, each in report.sums.items()}
        now = [report.counts[word] for word in NEED_A_PERSON], sums
        if now != self._of and began >= self._next:
            self._at, self._of = SYSTEM.now().timestamp(), now
            self._found = await batch.causes(_SHOWN)
            ended = SYSTEM.monotonic()
            self._next = ended + max(_EVERY, _SHARE * (ended - began))
        return LedgerDetails(await batch.series(), runs, self._found, self._at)


@attrs.frozen(kw_only=True)
class BatchSnapshot:
    """Everything that a page shows of a batch, as of one moment."""

    at: float = attrs.field(eq=False)
    """Seconds since 1970."""
    ledger: LedgerAddress
    phase: Phase
    """`ended`: nobody works on it."""
    name: str
    """The file's name, or the ledger's."""
    rows_read: int = 0
    """Rows of the input that were read so far."""
    header: Header | None = None
    report: BatchReport | None = None
    """None before the import."""
    details: LedgerDetails = LedgerDetails()
    certificate: Mapping[str, Any] | None = None
    """The certificate of these figures; None without one."""
    pid: int | None = None
    """The process that works on the batch."""


def begun(reading: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Begin a reading, whose failure is not logged when the visitor who asked has left."""
    task = asyncio.ensure_future(reading)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


@attrs.define(eq=False)
class RunSource:
    """The figures of the run that serves the page."""

    ledger: LedgerAddress
    name: str
    phase: Phase = "reading"
    rows_read: int = 0
    batch: AnyBatch | None = None
    began: float | None = None
    """When the run began, on the clock of its ledger."""
    _details: LedgerDetails = LedgerDetails()
    _causes: CauseReader = attrs.field(factory=CauseReader)
    _runs: tuple[RunTime, ...] | None = None
    _reading: asyncio.Task[LedgerDetails] | None = None
    _last: BatchSnapshot | None = None
    is_polled: bool = False

    async def snapshot(self) -> BatchSnapshot:
        """The figures; those that need a ledger that is busy are older. After the end the last ones."""
        batch = self.batch
        if batch is not None and not batch._ledger.is_empty:
            await self._latest(batch)
        return self._last or self._of(batch)

    def _of(self, batch: AnyBatch | None) -> BatchSnapshot:
        facts: dict[str, Any] = {"ledger": self.ledger, "name": self.name, "rows_read": self.rows_read}
        facts |= {"at": SYSTEM.now().timestamp(), "phase": self.phase, "pid": os.getpid()}
        if batch is None or batch._ledger.is_empty:
            return BatchSnapshot(**facts)
        facts["at"] = batch._session.moment().wall
        report = attrs.evolve(batch.status(), activity=batch._session.activity())
        facts["ledger"] = self.ledger = self.ledger.of_batch(report.batch_id)
        return BatchSnapshot(
            **facts,
            header=batch._ledger.header,
            report=report,
            details=self._details,
            certificate=certificate_of(facts["ledger"], report),
        )

    async def _latest(self, batch: AnyBatch) -> None:
        reading = self._reading
        if reading is None or reading.done():
            self._reading = reading = begun(self._read(batch))
        await asyncio.wait([reading], timeout=_PATIENCE)
        if reading.done():
            self._details = reading.result()

    async def _read(self, batch: AnyBatch) -> LedgerDetails:
        began, now = self.began, batch._session.moment().wall
        if self._runs is None:
            runs = await batch._ledger.run_times()
            if began is not None and not any(each.begin >= began for each in runs):
                return await self._causes.details(
                    batch, (*runs, RunTime(began, now))
                )  # it has sent nothing yet
            self._runs = runs
        if began is None:
            return await self._causes.details(batch, self._runs)
        *earlier, this = self._runs
        return await self._causes.details(batch, (*earlier, RunTime(this.begin, now)))

    async def row(self, name: str | int) -> RowView | None:
        """One row; none before the import."""
        return None if self.batch is None or self.batch._ledger.is_empty else await self.batch.row(name)

    async def end(self) -> None:
        """Let go of the batch: its ledger is about to be closed."""
        with suppress(LedgerError):  # it was discarded: there is nothing to show
            self._last = self._of(self.batch)
        self.batch = None
        if self._reading is not None:
            await asyncio.wait([self._reading])


class PageElsewhere(Exception):
    """A run holds the ledger and serves its page: `address` opens it, once."""

    def __init__(self, pid: int | None, address: str) -> None:
        super().__init__(f"process {pid} serves the page")
        self.pid = pid
        self.address = address


@attrs.define(eq=False)
class LedgerSource:
    """The figures of a ledger that this process does not work on.

    A file is opened for each reading, and free in between; a database stays connected until `close`.
    """

    ledger: LedgerAddress
    began: float | None = None
    """When the last run began, if that was the run that serves the page."""
    is_polled: bool = True
    _kept: tuple[object, BatchSnapshot] | None = None
    _causes: CauseReader = attrs.field(factory=CauseReader)
    _connected: AnyBatch | None = None
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock)

    async def snapshot(self) -> BatchSnapshot:
        """The figures, read anew when the ledger's files have changed. Raises LedgerError, PageElsewhere."""
        stamp = [_stamp(self.ledger.text + suffix) for suffix in _FILES]
        if self._kept is not None and self._kept[0] == stamp and not self.ledger.is_database:
            return self._kept[1]
        async with self._opened() as batch:
            found = await self._read(batch)
            stamp = [_stamp(self.ledger.text + suffix) for suffix in _FILES]  # while nobody else can write
        self._kept = stamp, found
        return found

    async def _read(self, batch: AnyBatch) -> BatchSnapshot:
        """Everything of a batch that this process does not work on. Raises LedgerMissing without rows."""
        stored, at = batch._ledger, SYSTEM.now().timestamp()
        if stored.is_empty:
            raise LedgerMissing(self.ledger.shown, "holds no batch")
        report, is_paid = batch.status(), False
        if isinstance(stored, SharedLedger):
            at, is_paid = stored.now(), not report.complete and await _has_workers(stored)
        known = () if self.began is None else (RunTime(self.began, self.began),)
        return BatchSnapshot(
            at=at,
            ledger=self.ledger,
            phase="working" if is_paid else "ended",
            name=os.path.basename(self.ledger.shown),
            header=stored.header,
            report=report,
            details=await self._causes.details(batch, await stored.run_times() or known),
            certificate=certificate_of(self.ledger, report),
        )

    async def row(self, name: str | int) -> RowView | None:
        """One row. Raises LedgerError, PageElsewhere."""
        async with self._opened() as batch:
            return await batch.row(name)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[AnyBatch]:
        if self.ledger.is_database:
            async with self._turn, self._in_database() as batch:
                yield batch
            return
        try:
            async with open_batch(self.ledger) as batch:
                yield batch
        except LedgerLocked as locked:
            found = await ask_running(self.ledger.text, locked.pid, "/api/open")
            if found is None or not isinstance(found.get("url"), str):
                raise
            raise PageElsewhere(locked.pid, found["url"]) from None

    @asynccontextmanager
    async def _in_database(self) -> AsyncIterator[AnyBatch]:
        """The batch as it is now. After a failure the next reading connects anew."""
        try:
            if self._connected is None:
                self._connected = await open_batch(self.ledger).__aenter__()
            else:
                await self._connected.refresh()
            yield self._connected
        except LedgerError:
            await self.close()
            raise

    async def close(self) -> None:
        """Disconnect from a database."""
        batch, self._connected = self._connected, None
        if batch is not None:
            await batch.__aexit__()


async def _has_workers(ledger: SharedLedger) -> bool:
    """True if a process, here or on another machine, holds rows of a batch in a database."""
    from ...bulk.ledger.postgresql.leasing import workers
    from ...bulk.ledger.postgresql.ledger import PostgresLedger

    assert isinstance(ledger, PostgresLedger)
    name = ledger.header.binding.batch_id
    found = await workers.listed(ledger.database)
    return any(name in worker.batches for worker in found if not worker.is_gone)


def certificate_of(ledger: LedgerAddress, report: BatchReport) -> Mapping[str, Any] | None:
    """The certificate beside the ledger, if it is of this batch with these counts and sums."""
    if not report.complete:
        return None
    sums = {code: {word: as_text(amount) for word, amount in of.items()} for code, of in report.sums.items()}
    wanted = {"batch_id": report.batch_id, "rows": dict(report.counts), "sums": sums}
    try:
        found = json.loads(Path(ledger.beside("certificate.json")).read_text(encoding="utf-8"))
        fits = all(found[name] == value for name, value in wanted.items())
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return found if fits else None


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return (facts.st_mtime_ns, facts.st_size) if facts.st_size else None  # as the -wal of an open ledger
