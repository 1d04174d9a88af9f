"""An open batch: its ledger, the service it pays at, its progress reports."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from .._runtime import SYSTEM
from ..client import AsyncPayments
from . import _status_file
from ._activity import Activity
from ._report import Progress, progress_of
from .engine.service import Service
from .errors import BulkError
from .protocol.clocks import Timestamps
from .protocol.stop_rules import Account

if TYPE_CHECKING:
    from .ledger.ledger import Ledger

_log = logging.getLogger("payments_async")
_STATUS_EVERY: Final = 1.0
_READER_WAIT: Final = 5.0
"""Seconds to wait for a process that only reads the ledger: `status` is short, `check` may be longer."""
_READER_POLL: Final = 0.05
OnProgress = Callable[[Progress], object]


class BatchSession:
    """One batch, between opening and closing."""

    def __init__(self, path: str | os.PathLike[str], client: AsyncPayments | None, *, create: bool) -> None:
        self._path, self._create = os.fspath(path), create and client is not None
        self._service = None if client is None else Service(client)
        self._reader_session = None if client is not None else SYSTEM.token(8).hex()
        self._ledger: Ledger | None = None
        self._written = -_STATUS_EVERY
        self._discarded = False
        self.activity: Callable[[], Activity | None] = lambda: None
        """Gives the present activity."""

    async def open(self) -> None:
        """Open and lock the ledger. Raises LedgerError."""
        self._ledger = await self._open(create=self._create, read_only=self._service is None)

    async def _open(self, *, create: bool = False, read_only: bool) -> Ledger:
        """Open the ledger. Waits for a process that only reads it, but not for one that works on it."""
        from .ledger.ledger import Ledger
        from .ledger_errors import LedgerLocked

        runtime = SYSTEM if self._service is None else self._service.runtime
        until = runtime.monotonic() + _READER_WAIT
        while True:
            try:
                return await Ledger.open(self._path, clock=self.moment, create=create, read_only=read_only)
            except LedgerLocked as locked:
                if not locked.read_only or runtime.monotonic() >= until:
                    raise
            await runtime.sleep(_READER_POLL)

    async def discard(self) -> None:
        """Remove the ledger and its status file at the close. Raises LedgerRefused."""
        await self.ledger.discard()
        self._discarded = True

    async def close(self) -> None:
        """Close the ledger."""
        if self._discarded:
            _status_file.StatusFile.of(self.ledger.path).remove()
        await self.ledger.close()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Ledger | None]:
        """Context for reading the ledger, opened if it is not open; None when it holds no batch."""
        if self._ledger is not None:
            yield None if self._ledger.is_empty else self._ledger
            return
        async with contextlib.AsyncExitStack() as stack:
            yield await self._opened_for_reading(stack)

    async def _opened_for_reading(self, stack: contextlib.AsyncExitStack) -> Ledger | None:
        from .ledger_errors import LedgerMissing

        try:
            return await stack.enter_async_context(await self._open(read_only=True))
        except LedgerMissing:  # there is no ledger, or its import did not finish
            return None

    @property
    def ledger(self) -> Ledger:
        """The open ledger. Raises BulkError."""
        if self._ledger is None:
            raise BulkError(
                "the batch is not open: enter `PayoutBatch.open(path, client)`, by `with` or `async with`"
            )
        return self._ledger

    @property
    def service(self) -> Service:
        """The service through the client. Raises BulkError for a batch that was opened to be read."""
        if self._service is None:
            raise BulkError("this batch was opened without a client, to look only: open it with one")
        return self._service

    @property
    def path(self) -> str:
        """The ledger's path, even if there is no ledger yet."""
        return self._path if self._ledger is None else self._ledger.path

    @property
    def place(self) -> Account | None:
        """The account that the client pays from; None without a client."""
        return None if self._service is None else self._service.place

    def moment(self) -> Timestamps:
        """Read the time: on the client's clocks, or without a client on this machine's."""
        if self._reader_session is None:
            return self.service.moment()
        return Timestamps(SYSTEM.now().timestamp(), SYSTEM.monotonic(), self._reader_session)

    def committed(self, on_progress: OnProgress | None) -> None:
        """Report progress after a commit. A failing callback does not break the run."""
        if self.service.runtime.monotonic() - self._written >= _STATUS_EVERY:
            self.report(on_progress)
        else:
            self._call(on_progress)

    def report(self, on_progress: OnProgress | None) -> None:
        """Report progress, and rewrite the status file however recent it is."""
        self._written = self.service.runtime.monotonic()
        self.write_status(running=True)
        self._call(on_progress)

    def _call(self, on_progress: OnProgress | None) -> None:
        if on_progress is not None:
            try:
                on_progress(progress_of(self.ledger.header, self.ledger.totals, self.activity()))
            except Exception as error:
                _log.warning("on_progress raised %s; the run continues", type(error).__name__)

    def write_status(self, *, running: bool) -> None:
        """Rewrite the status file beside the ledger."""
        ledger = self.ledger
        said = _status_file.report(
            ledger.totals,
            ledger.header.binding,
            pid=os.getpid(),
            at=self.moment().wall,
            running=running,
            activity=self.activity(),
        )
        _status_file.StatusFile.of(ledger.path).write(said)
