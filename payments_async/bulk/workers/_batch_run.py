"""`SharedBatch.run`, on a batch in a database: this process works on it, as any number of others may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from ..._runtime import Runtime
from ...client import AsyncPayments
from .._engine.engine import Pace
from .._engine.stopping import Stopping
from .._leasing.decisions import other_guard
from .._ledger.postgresql.ledger import PostgresLedger
from .._protocol.exit_codes import Stop
from .._protocol.outcomes import is_complete
from ..ledger_errors import LedgerError
from ._settings import WorkerSettings
from ._worker import WorkerRun

_FIGURES_EVERY: Final = 1.0
"""Seconds until the batch's figures are read again, which other processes change too."""
_REST: Final = 0.2
"""Seconds between two readings at least: a large batch has hundreds of chunks."""


class FiguresReader:
    """Reads a batch's figures anew after the commits of this process, and every second."""

    def __init__(self, ledger: PostgresLedger, runtime: Runtime, on_figures: Callable[[], object]) -> None:
        """`on_figures`: called after each reading."""
        self._ledger, self._runtime, self._on_figures = ledger, runtime, on_figures
        self._due = asyncio.Event()

    def note(self) -> None:
        """Have the figures read: there was a commit."""
        self._due.set()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Context in which they are read."""
        reading = asyncio.ensure_future(self._read())
        try:
            yield
        finally:
            reading.cancel()
            await asyncio.wait([reading])

    async def _read(self) -> None:
        while True:
            timer = self._runtime.call_later(_FIGURES_EVERY, self._due.set, background=True)
            await self._due.wait()
            timer.cancel()
            self._due.clear()
            with suppress(LedgerError):  # the worker itself finds out what is wrong
                await self._ledger.refresh()
                self._on_figures()
            await self._runtime.sleep(_REST)


def batch_run(
    client: AsyncPayments,
    url: str,
    batch_id: str,
    pace: Pace,
    stopping: Stopping,
    on_commit: Callable[[], object],
    *,
    insecure_database: bool,
) -> WorkerRun:
    """Make the run of a worker for one batch, until nothing is left to do for it. It writes no file."""
    settings = WorkerSettings(
        batch_id=batch_id,
        until_idle=True,
        concurrency=pace.concurrency,
        patience=pace.patience,
        drain=pace.drain,
        insecure_database=insecure_database,
        folder=None,
        audits=False,
    )
    return WorkerRun(client, url, settings, stopping, on_commit=on_commit)


async def note_hold(ledger: PostgresLedger, stopping: Stopping, guard: str) -> None:
    """Record in `stopping` why a batch that is not complete cannot be worked on now, if it cannot.

    `guard`: the digest of the client's.
    """
    await ledger.refresh()
    if is_complete(ledger.totals):
        return
    if ledger.hold_reason is not None:
        stopping.close(f"the batch is {ledger.hold_reason}", Stop.RULE)
    elif ledger.stopped is not None:
        stopping.close(ledger.stopped, Stop.RULE)
    elif (held := other_guard(ledger.header, guard)) is not None:
        stopping.close(held.reason, Stop.RULE)
