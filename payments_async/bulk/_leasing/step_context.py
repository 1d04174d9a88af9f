"""What the steps of one process share: its session as a worker, the work under way, and figures of both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

from ..._extras import needs
from ..._request.auth import hidden
from ..._runtime import Runtime
from ...client import AsyncPayments
from .._engine.engine import Pace
from .._ledger.opening import is_database
from ..errors import BulkError
from ..ledger_errors import LedgerError

if TYPE_CHECKING:
    from .._ledger.postgresql.database import Database
    from .._ledger.postgresql.leases import Renewal
    from .batch_closing import BatchClosing
    from .chunk_run import ChunkRun
    from .worker_session import WorkerSession


class StepContext:
    """The context of all steps of one process on one database."""

    def __init__(
        self,
        address: str,
        client: AsyncPayments,
        pace: Pace,
        *,
        slots: int = 0,
        insecure_database: bool = False,
        audits: bool = True,
        on_commit: Callable[[], object] = bool,
        on_renewal: Callable[[], object] = bool,
    ) -> None:
        """Check the address; nothing is connected.

        Args:
            address: the database.
            client: pays.
            pace: the pace of each step.
            slots: chunks worked on at a time, for the list of workers; 0: the steps' caller decides.
            insecure_database: allow a database on another host without `sslmode=verify-full`.
            audits: compare a complete batch with the service's list before it is closed.
            on_commit: called after each commit of outcomes.
            on_renewal: called after each renewal of leases, and once when they can no longer be renewed.

        Raises BulkError.
        """
        self.address, self.client, self.pace = database_address(address), client, pace
        self.insecure_database, self.audits, self.on_commit = insecure_database, audits, on_commit
        self.runtime: Runtime = client._internal.runtime
        self.active: list[ChunkRun | BatchClosing] = []
        """The work under leases that is under way."""
        self.decided: int = 0
        """Rows that ended work has decided."""
        self.is_drained: bool = False
        """True if an operator wants this process to take no more rows."""
        self._slots, self._on_renewal = slots, on_renewal
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._session: WorkerSession | None = None
        self.worker: str = ""
        """The id that the last session works under."""
        self._reader: Database | None = None
        self.is_broken: bool = False
        """True if leases can no longer be renewed; the next step connects again."""

    @property
    def rows(self) -> int:
        """Rows that this process has decided."""
        return self.decided + sum(run.rows for run in self.active)

    @property
    def trouble(self) -> str | None:
        """Why this process cannot use the service now; None when it can."""
        return None if self._session is None else self._session.trouble

    async def connected(self) -> tuple[WorkerSession, Database]:
        """The session and a connection for reading. The first use connects, and one after renewals failed.

        Raises LedgerError, BulkError, and ImportError without the extra.
        """
        async with self._opening:
            if self.is_broken:
                with suppress(LedgerError):  # each step has found out for itself
                    await self.disconnect()
            if self._session is None or self._reader is None:
                self._session = _new_session(self)
                self.worker = self._session.worker.id.hex()
                self._reader = await self._stack.enter_async_context(self._session.opened())
            return self._session, self._reader

    async def disconnect(self) -> None:
        """End the session: leases are renewed no more, connections are closed.

        Raises the LedgerError for which the leases could not be renewed, if that was so.
        """
        stack, self._stack = self._stack, AsyncExitStack()
        self._session = self._reader = None
        self.is_broken = False
        await stack.aclose()

    def note_renewal(self, renewal: Renewal) -> None:
        """Note whether an operator drains this process."""
        self.is_drained = self.is_drained or renewal.drain
        self._on_renewal()

    def note_failure(self) -> None:
        """Note that leases are no longer renewed."""
        self.is_broken = True
        self._on_renewal()


def _new_session(context: StepContext) -> WorkerSession:
    """Let the client take its rate from the database, unless it has a limit store or a part already."""
    try:
        from .worker_session import WorkerSession
    except ImportError as missing:
        raise ImportError(needs("steps need", "bulk", "machines")) from missing

    client, insecure_database = context.client, context.insecure_database
    client._internal.use_limit_store(context.address, insecure_database=insecure_database)
    session = WorkerSession(
        context.client,
        context.address,
        slots=context._slots,
        insecure_database=context.insecure_database,
    )
    session.rows = lambda: context.rows
    session.on_renewal, session.on_failure = context.note_renewal, context.note_failure
    return session


def database_address(address: str) -> str:
    """Check the address of a database, and hide it from tracebacks. Raises BulkError."""
    address = hidden(address)
    if not isinstance(address, str) or not is_database(address):
        raise BulkError(
            "steps and workers share a ledger in a database, postgresql://user@host/name; one in a file has "
            "one process, which PayoutBatch.run is for"
        )
    return address
