"""The figures of a page: from the run that holds the ledger, or read from a ledger that nobody works on."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import attrs

from ..._runtime import SYSTEM
from .._export.causes import Cause
from .._export.row_view import RowView
from .._protocol.run_figures import RunSeries, RunTime
from .._report import BatchReport, Snapshot
from .._texts.ledger_address import LedgerAddress, open_batch
from ..batch import AnyBatch
from ..ledger_errors import LedgerError, LedgerLocked, LedgerMissing
from .address_file import ask_running

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


@attrs.define
class CauseReader:
    """The causes of rows that need a look. All such rows are read for them: seldom, to cost a run little."""

    found: tuple[Cause, ...] = ()
    at: float = 0.0
    """When they were read, seconds since 1970."""
    _of: object = None
    _next: float = 0.0

    async def read(self, batch: AnyBatch) -> None:
        """Read the causes anew if there may be others, and it is time. Raises LedgerError."""
        report, began = batch.status(), SYSTEM.monotonic()
        sums = {currency: [each[word] for word in Cause.outcomes] for currency, each in report.sums.items()}
        now = [report.counts[word] for word in Cause.outcomes], sums
        # no count says how many of those that are not final contradict themselves
        is_other = now != self._of or report.counts["not_final"]
        if is_other and began >= self._next:
            at = SYSTEM.now().timestamp()
            self.found = await batch.causes(_SHOWN)
            self.at, self._of, ended = at, now, SYSTEM.monotonic()
            self._next = ended + max(_EVERY, _SHARE * (ended - began))


@attrs.frozen(kw_only=True)
class PageFigures:
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
    batch: Snapshot | None = None
    """None before the import."""
    runs: tuple[RunTime, ...] = ()
    """When the runs were at work, the last or the present one at the end; only those that are known."""
    causes: tuple[Cause, ...] = ()
    causes_at: float = attrs.field(default=0.0, eq=False)
    """When the causes were read, seconds since 1970."""
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
    _series: RunSeries = attrs.field(factory=RunSeries)
    _runs: tuple[RunTime, ...] = ()
    _causes: CauseReader = attrs.field(factory=CauseReader)
    _reading: asyncio.Task[None] | None = None
    _last: PageFigures | None = None
    is_polled: bool = False

    async def snapshot(self) -> PageFigures:
        """The figures; those that need a ledger that is busy are older. After the end the last ones."""
        if self.batch is not None and report_of(self.batch) is not None:
            await self._latest(self.batch)
        return self._last or self._of(self.batch)

    def _of(self, batch: AnyBatch | None) -> PageFigures:
        facts: dict[str, Any] = {"phase": self.phase, "rows_read": self.rows_read, "pid": os.getpid()}
        if batch is None or (report := report_of(batch)) is None:
            at = SYSTEM.now().timestamp()
            return PageFigures(at=at, ledger=self.ledger, name=self.name, **facts)
        self.ledger = self.ledger.of_batch(report.batch_id)
        found = Snapshot(at=batch.now(), header=batch.header(), report=report, series=self._series)
        return _figures(self.ledger, self.name, found, self._times(found.at), self._causes, **facts)

    def _times(self, now: float) -> tuple[RunTime, ...]:
        """When the runs were at work: this one until now."""
        if self._is_in_ledger:
            return (*self._runs[:-1], RunTime(self._runs[-1].begin, now))
        return self._runs if self.began is None else (*self._runs, RunTime(self.began, now))

    @property
    def _is_in_ledger(self) -> bool:
        """True once the ledger has when this run began: it has sent a row."""
        return self.began is not None and bool(self._runs) and self._runs[-1].begin >= self.began

    async def _latest(self, batch: AnyBatch) -> None:
        reading = self._reading
        if reading is None or reading.done():
            self._reading = reading = begun(self._read(batch))
        await asyncio.wait([reading], timeout=_PATIENCE)
        if reading.done():
            reading.result()

    async def _read(self, batch: AnyBatch) -> None:
        self._series = await batch.series()
        if not self._is_in_ledger:
            self._runs = await batch.run_times()
        await self._causes.read(batch)

    async def row(self, name: str | int) -> RowView | None:
        """One row; none before the import."""
        return None if self.batch is None or report_of(self.batch) is None else await self.batch.row(name)

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
    _kept: tuple[object, PageFigures] | None = None
    _causes: CauseReader = attrs.field(factory=CauseReader)
    _connected: AnyBatch | None = None
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock)

    async def snapshot(self) -> PageFigures:
        """The figures, read anew when the ledger's files have changed. Raises LedgerError, PageElsewhere."""
        stamp = [_stamp(self.ledger.text + suffix) for suffix in _FILES]
        if self._kept is not None and self._kept[0] == stamp and not self.ledger.is_database:
            return self._kept[1]
        async with self._opened() as batch:
            found = await self._read(batch)
            stamp = [_stamp(self.ledger.text + suffix) for suffix in _FILES]  # while nobody else can write
        self._kept = stamp, found
        return found

    async def _read(self, batch: AnyBatch) -> PageFigures:
        """Everything of a batch that this process does not work on. Raises LedgerMissing without rows."""
        found = await batch.snapshot()
        await self._causes.read(batch)
        phase: Phase = "working" if found.workers and not found.report.complete else "ended"
        known = () if self.began is None else (RunTime(self.began, self.began),)
        runs, name = await batch.run_times() or known, os.path.basename(self.ledger.shown)
        return _figures(self.ledger, name, found, runs, self._causes, phase=phase)

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


def report_of(batch: AnyBatch) -> BatchReport | None:
    """The batch's report; None before the import."""
    try:
        return batch.status()
    except LedgerMissing:
        return None


def _figures(
    ledger: LedgerAddress,
    name: str,
    found: Snapshot,
    runs: tuple[RunTime, ...],
    causes: CauseReader,
    **facts: Any,
) -> PageFigures:
    """The figures of a batch that was imported."""
    return PageFigures(
        at=found.at,
        ledger=ledger,
        name=name,
        batch=found,
        runs=runs,
        causes=causes.found,
        causes_at=causes.at,
        certificate=certificate_of(ledger, found.report),
        **facts,
    )


def certificate_of(ledger: LedgerAddress, report: BatchReport) -> Mapping[str, Any] | None:
    """The certificate beside the ledger, if it is of this batch with these counts and sums."""
    if not report.complete:
        return None
    facts = report.facts()
    wanted = {"batch_id": report.batch_id, "rows": facts["rows"], "sums": facts["sums"]}
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
