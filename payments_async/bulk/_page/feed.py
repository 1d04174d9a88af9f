"""Reads what a page shows while a browser shows it, at most once a second, and streams news of changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

import attrs

from ..._runtime import SYSTEM
from .._activity import Activity
from .._export.causes import Cause
from .._export.row_view import RowView
from .._ledger.figures import Series
from .._protocol.records import Batch
from .._texts.figures import with_causes
from .._texts.ledger_address import LedgerAddress
from ..batch import PayoutBatch
from ..errors import LedgerError
from ..report import BatchReport

T = TypeVar("T")
_EVERY: Final = 1.0
"""Seconds between two readings, and between two pieces of news, at least."""
_SHARE: Final = 20
"""The time between two readings is at least so many times that of the last one: all rows are read for it."""
_BEAT: Final = 5.0
"""Seconds between two events of a stream, at most: without one for longer the page says so."""
_LAST_LOOK: Final = 3.0
"""Seconds at most that readers have to fetch the last page."""


@attrs.frozen(kw_only=True)
class PageFigures:
    """Everything that a page shows of a batch, as of one moment."""

    at: float = attrs.field(eq=False)
    """Seconds since 1970, by the ledger's database."""
    ledger: LedgerAddress
    batch: Batch
    report: BatchReport
    series: Series
    causes: tuple[Cause, ...]
    processes: int
    """How many processes have rows in hand."""
    activity: Activity | None
    """What this process does with the batch; None when it only looks."""

    @property
    def is_working(self) -> bool:
        """True while a process is known to work on the batch."""
        return self.activity is not None or self.processes > 0


class BatchFeed:
    """The figures of a batch for any number of readers."""

    def __init__(self, batch: PayoutBatch, ledger: LedgerAddress) -> None:
        self._batch = batch
        self.ledger: LedgerAddress = ledger
        self._activity: Activity | None = None
        self._turn = asyncio.Lock()
        self._reading: asyncio.Task[PageFigures] | None = None
        self._due = 0.0
        self._streams = 0
        self._over = asyncio.Event()

    def show(self, activity: Activity | None) -> None:
        """Say what this process does with the batch from now on; None once that is over."""
        self._activity = activity
        if activity is None:
            self._due = 0.0  # who looks now sees how it has ended

    async def figures(self) -> PageFigures:
        """The figures, about a second old at most. Raises LedgerError."""
        reading = self._reading
        if reading is None or (reading.done() and SYSTEM.monotonic() >= self._due):
            self._reading = reading = self._begun(self._read())
        return await asyncio.shield(reading)

    async def row(self, number: int) -> RowView | None:
        """One row by its number. Raises LedgerError."""
        return await asyncio.shield(self._begun(self._batch.row(number)))

    def _begun(self, reading: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin a reading. It goes on when the visitor who asked leaves; its failure is not logged then."""

        async def in_turn() -> T:
            async with self._turn:
                return await reading

        task = asyncio.ensure_future(in_turn())
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def _read(self) -> PageFigures:
        began = SYSTEM.monotonic()
        self._due = began + _EVERY
        batch, report = await self._batch.facts(), await self._batch.status()
        causes = await self._batch.causes()
        found = PageFigures(
            at=batch.now,
            ledger=self.ledger,
            batch=attrs.evolve(batch, now=0.0),
            report=with_causes(report, causes),
            series=await self._batch.series(),
            causes=causes,
            processes=len(await self._batch.holders()),
            activity=self._activity,
        )
        if not self._over.is_set():
            ended = SYSTEM.monotonic()
            self._due = ended + max(_EVERY, _SHARE * (ended - began))
        return found

    async def news(self) -> AsyncIterator[bytes]:
        """Server-sent events: one at once, after a change and every five seconds, at most one a second."""
        shown, said_at = None, 0.0
        self._streams += 1
        try:
            yield b"retry: 1000\n\n"
            while not self._over.is_set():
                found: object = "the page says what is wrong"
                with suppress(LedgerError):
                    found = await self.figures()
                if found != shown or SYSTEM.monotonic() - said_at >= _BEAT:
                    yield f"event: {'beat' if found == shown else 'change'}\ndata: .\n\n".encode()
                    shown, said_at = found, SYSTEM.monotonic()
                await _waited(self._over.wait(), _EVERY)
            yield b"event: over\ndata: .\n\n"
            await asyncio.get_running_loop().create_future()  # until the reader has the last page, and leaves
        finally:
            self._streams -= 1

    async def end(self) -> None:
        """End the streams, once their readers had time for the last page, and the readings."""
        self._over.set()
        self._due = 0.0
        until = SYSTEM.monotonic() + _LAST_LOOK
        while self._streams and SYSTEM.monotonic() < until:
            await SYSTEM.sleep(0.02)
        async with self._turn:
            return


async def _waited(event: Awaitable[object], seconds: float) -> None:
    """Wait for an event so long at most."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event, seconds)
