"""A worker's identity, its connections to the database, and the keeper of its leases."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Final

from ... import __version__
from ..._postgresql import Address
from ..._runtime import Runtime
from ...client import AsyncPayments
from .._engine.service import Service
from .._ledger.operators import Role
from .._ledger.postgresql import database as _driver
from .._ledger.postgresql import renewing, worker_registry
from .._ledger.postgresql.database import Database
from .._ledger.postgresql.leases import Lease
from .._ledger.postgresql.renewing import Renewal
from .._ledger.postgresql.setup import require_rights, require_tables
from .._ledger.postgresql.worker_registry import Worker
from ..errors import BulkError
from ..ledger_errors import LedgerError
from ._chunk_run import LeaseHolder
from ._keeper import LeaseKeeper
from ._settings import WorkerSettings

RENEWAL_ANSWER: Final = 4.0
"""Seconds in which the database has to answer a renewal."""


class WorkerSession:
    """A worker, from its first connection to its last."""

    def __init__(self, client: AsyncPayments, url: str, settings: WorkerSettings) -> None:
        self._client, self._insecure_database = client, settings.insecure_database
        self._address = Address.of(url, BulkError)
        service = Service(client)
        self.runtime: Runtime = service.runtime
        """The client's time and chance."""
        self.worker: Worker = Worker(
            id=self.runtime.token(16),
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            slots=settings.slots,
            account=service.place,
        )
        """Who asks for leases."""
        self.rows: Callable[[], int] = lambda: 0
        """Counts the rows that this worker has decided."""
        self.trouble: str | None = None
        """Why it cannot use the service now, for the list of workers; None when it can."""
        self._keeper: LeaseKeeper | None = None

    @asynccontextmanager
    async def opened(
        self, on_renewal: Callable[[Renewal], object], on_failure: Callable[[], object] = bool
    ) -> AsyncIterator[Database]:
        """Context of a registered worker, with the connection on which it renews its leases.

        `on_renewal` gets what each renewal has taught. `on_failure` is called when leases are no longer
        renewed.
        Raises LedgerError when the database cannot be used, and BulkError on a machine without the clock
        that leases need.
        """
        if self.runtime.boottime() is None:
            raise BulkError(
                "this machine has no clock that counts while it is suspended, so it could go on under leases "
                "that have ended: let workers run on Linux or macOS"
            )
        async with AsyncExitStack() as stack:
            connecting = self._connected(patience=0.0, answer=RENEWAL_ANSWER)
            database = await stack.enter_async_context(connecting)
            await require_tables(database, create=False)
            await require_rights(database, Role.WORKER)
            stack.push_async_callback(self._leave, database)
            keeper = LeaseKeeper(self.runtime, partial(self._renew, database), on_renewal, on_failure)
            self._keeper = await stack.enter_async_context(keeper)
            yield database

    @asynccontextmanager
    async def holder(self) -> AsyncIterator[LeaseHolder]:
        """Context of a connection for work under leases. Raises LedgerError."""
        assert self._keeper is not None  # within `opened`
        async with self._connected() as database:
            yield LeaseHolder(self._client, self.worker, self._keeper, database)

    @asynccontextmanager
    async def _connected(
        self, *, patience: float | None = None, answer: float | None = None
    ) -> AsyncIterator[Database]:
        patience = _driver.PATIENCE if patience is None else patience
        answer = _driver.ANSWER if answer is None else answer
        database = await Database.open(
            self._address,
            self.runtime,
            insecure_database=self._insecure_database,
            patience=patience,
            answer=answer,
        )
        try:
            yield database
        finally:
            await database.close()

    async def _renew(self, database: Database, leases: Sequence[Lease]) -> Renewal:
        return await renewing.renew(database, self.worker, leases, rows=self.rows(), trouble=self.trouble)

    async def _leave(self, database: Database) -> None:
        if self._keeper is not None and self._keeper.is_answered:
            with suppress(LedgerError):
                await worker_registry.leave(database, self.worker.id)
