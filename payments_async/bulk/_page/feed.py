"""Reads what the page shows while a browser shows it, at most once a second."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

import attrs

from ..._runtime import SYSTEM
from .._export.causes import Cause
from .._protocol.records import Batch
from .._texts.figures import with_causes
from .._texts.ledger_address import LedgerAddress
from ..batch import PayoutBatch
from ..report import Activity, BatchReport

_EVERY: Final = 1.0  # seconds between two readings, at least
_SHARE: Final = 20
"""The time between two readings is at least so many times that of the last one: all rows are read for it."""
_LAST_LOOK: Final = 3.0
"""Seconds in which an open page asks again, and gets the last figures."""


@attrs.frozen(kw_only=True)
class PageFigures:
    """Everything that the page shows of a batch, as of one moment."""

    at: float  # seconds since 1970, by the ledger's database
    ledger: LedgerAddress
    batch: Batch
    report: BatchReport
    pace: float  # rows a second over the last minute
    causes: tuple[Cause, ...]
    processes: int  # how many processes have rows in hand
    activity: Activity | None
    """What this process does with the batch; None when it only looks."""


async def read_figures(
    batch: PayoutBatch, ledger: LedgerAddress, activity: Activity | None = None
) -> PageFigures:
    """Read what the page shows. Raises LedgerError."""
    known, report, causes = await batch.facts(), await batch.status(), await batch.causes()
    return PageFigures(
        at=known.now,
        ledger=ledger,
        batch=known,
        report=with_causes(report, causes),
        pace=await batch.pace(),
        causes=causes,
        processes=len(await batch.holders()),
        activity=activity,
    )


class BatchFeed:
    """The figures of a batch for any number of readers."""

    def __init__(self, batch: PayoutBatch, ledger: LedgerAddress) -> None:
        self._batch = batch
        self.ledger: LedgerAddress = ledger
        self._activity: Activity | None = None
        self._turn = asyncio.Lock()
        self._now: PageFigures | None = None
        self._due = 0.0
        self._asked_at: float | None = None
        self._is_over = False
        self._last_look = asyncio.Event()

    def show(self, activity: Activity | None) -> None:
        """Say what this process does with the batch from now on; None once that is over."""
        self._activity = activity
        if activity is None:
            self._due = 0.0  # who looks now sees how it has ended

    async def figures(self) -> PageFigures:
        """The figures, about a second old at most. Raises LedgerError."""
        self._asked_at = SYSTEM.monotonic()
        async with self._turn:  # one reading serves all who wait for it
            if self._now is None or SYSTEM.monotonic() >= self._due:
                began = SYSTEM.monotonic()
                self._now = await read_figures(self._batch, self.ledger, self._activity)
                ended = SYSTEM.monotonic()
                self._due = ended + max(_EVERY, _SHARE * (ended - began))
            now = self._now
        if self._is_over:
            self._last_look.set()
        return now

    async def end(self) -> None:
        """Wait until a page that is open has asked for the last figures, which are read anew."""
        self._is_over, self._due = True, 0.0
        is_open = self._asked_at is not None and SYSTEM.monotonic() - self._asked_at < _LAST_LOOK
        with suppress(TimeoutError):
            await asyncio.wait_for(self._last_look.wait(), _LAST_LOOK if is_open else 0)
