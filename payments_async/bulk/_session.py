"""An open batch: its ledger, the service it pays at, its progress reports."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import attrs

from .._request.auth import hidden
from .._runtime import SYSTEM, Runtime
from ..client import AsyncPayments
from ._activity import Activity
from ._engine.service import Service
from ._ledger.ledger import Ledger
from ._ledger.opening import FILE, KEYWORDS, require_extra
from ._options import composed, require_batch_id
from ._protocol.clocks import Timestamps
from ._protocol.stop_rules import Account
from ._report import BatchFigures, batch_figures_of
from .errors import BulkError

if TYPE_CHECKING:
    from .._guard.key_guard import KeyGuard

_log = logging.getLogger("payments_async")
_STATUS_EVERY: Final = 1.0
_READER_WAIT: Final = 5.0
"""Seconds to wait for a process that only reads the ledger: `status` is short, `check` may be longer."""
_READER_POLL: Final = 0.05
OnProgress = Callable[[BatchFigures], object]


class BatchSession:
    """One batch in a file, between opening and closing."""

    _needs: tuple[str, str] = FILE
    """What needs which extra."""

    def __init__(
        self,
        address: str | os.PathLike[str],
        client: AsyncPayments | None,
        *,
        create: bool,
        batch_id: str | None,
    ) -> None:
        require_extra(*self._needs)
        text = os.fspath(address)
        self.address: str = hidden(text) if "://" in text or KEYWORDS.match(text) else text
        """The path, or the address with its password, as it was given."""
        self.client: AsyncPayments | None = client
        self._create = create and client is not None
        self.batch_id: str | None = batch_id
        """The batch's name as it was given, which is `load`'s default."""
        self._service = None if client is None else Service(client)
        self.moment: Callable[[], Timestamps] = _clock() if self._service is None else self._service.moment
        """Reads the time: on the client's clocks, or without a client on this machine's."""
        self._ledger: Ledger | None = None  # once closed, it still says what was recorded last
        self._is_open = False
        self._written = -_STATUS_EVERY
        self.activity: Callable[[], Activity | None] = lambda: None
        """Gives the present activity."""

    @property
    def file(self) -> str | None:
        """The ledger's path; None where it is no file."""
        return self.path

    async def open(self) -> None:
        """Open the ledger, and lock it if it is a file. Raises LedgerError, BulkError."""
        if self._is_open:
            raise BulkError("it is open already")
        ledger = await self._open(create=self._create, read_only=self._service is None)
        try:
            self._require_batch(ledger)
        except BaseException:
            await ledger.close()
            raise
        self._ledger, self._is_open = ledger, True

    def _require_batch(self, ledger: Ledger) -> None:
        """Refuse a file that holds another batch than the one that was asked for."""
        from .ledger_errors import LedgerOfAnotherBatch

        if self.batch_id is None or ledger.is_empty:
            return
        recorded = ledger.header.binding.batch_id
        if recorded != composed(self.batch_id):
            only = not self._create
            raise LedgerOfAnotherBatch(ledger.path, recorded=recorded, given=self.batch_id, only_opened=only)

    async def _open(self, *, create: bool = False, must_exist: bool = True, read_only: bool) -> Ledger:
        """Open the ledger. Waits for a process that only reads it, but not for one that works on it."""
        from .ledger_errors import LedgerLocked

        require_batch_id(self.batch_id)
        runtime = self.runtime
        until = runtime.monotonic() + _READER_WAIT
        while True:
            try:
                return await self._opened(create=create, must_exist=must_exist, read_only=read_only)
            except LedgerLocked as locked:
                if not locked.read_only or runtime.monotonic() >= until:
                    raise
            await runtime.sleep(_READER_POLL)

    async def _opened(self, *, create: bool, must_exist: bool, read_only: bool) -> Ledger:
        from ._ledger.opening import open_file

        return await open_file(self.address, clock=self.moment, create=create, read_only=read_only)

    @property
    def runtime(self) -> Runtime:
        """Time and chance: the client's, or without a client this machine's."""
        return SYSTEM if self._service is None else self._service.runtime

    async def close(self) -> None:
        """Close the ledger."""
        self._is_open = False
        await self.ledger.close()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Ledger | None]:
        """Context for reading the ledger, opened if it is not open; None when there is none."""
        if self._ledger is not None:
            yield self._ledger
            return
        async with contextlib.AsyncExitStack() as stack:
            yield await self._opened_for_reading(stack)

    async def _opened_for_reading(self, stack: contextlib.AsyncExitStack) -> Ledger | None:
        from .ledger_errors import LedgerForgotten, LedgerMissing

        try:
            return await stack.enter_async_context(await self._open(must_exist=False, read_only=True))
        except LedgerForgotten:
            raise
        except LedgerMissing:  # there is no ledger, or its import did not finish
            return None

    @property
    def ledger(self) -> Ledger:
        """The open ledger. Raises BulkError."""
        if self._ledger is None:
            raise BulkError("the batch is not open: enter what `open` returned, by `with` or `async with`")
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
        return self.address if self._ledger is None else self._ledger.path

    @property
    def place(self) -> Account | None:
        """The account that the client pays from; None without a client."""
        return None if self._service is None else self._service.place

    @property
    def guard(self) -> KeyGuard | None:
        """The guard of the client's key; None without one, or without a client."""
        return None if self.client is None else self.client._internal.guard

    def share_limits(self) -> None:
        """Take the client's rate from the ledger's database, if it is in one."""

    async def learn_time(self) -> None:
        """Learn the service's time for the import into a database."""

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
                on_progress(batch_figures_of(self.ledger.totals, self.ledger.header.extra, self.activity()))
            except Exception as error:
                _log.warning("on_progress raised %s; the run continues", type(error).__name__)

    def write_status(self, *, running: bool) -> None:
        """Show the figures and the activity to other processes."""
        activity = self.activity()
        self.ledger.publish(None if activity is None else attrs.asdict(activity), running=running)


def _clock() -> Callable[[], Timestamps]:
    """The clock of a session that only reads."""
    session = SYSTEM.token(8).hex()
    return lambda: Timestamps(SYSTEM.now().timestamp(), SYSTEM.monotonic(), session)
