"""A worker: a process that takes leases, with its connections and the keeper of its leases."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

from ... import __version__
from ..._postgresql import Address
from ..._runtime import Runtime
from ...client import AsyncPayments
from .._engine.service import Service
from .._ledger.operators import Role
from .._ledger.postgresql import database as driver
from .._ledger.postgresql import worker_registry
from .._ledger.postgresql.batches import SharedFacts
from .._ledger.postgresql.database import Database
from .._ledger.postgresql.leases import Lease, Renewal, renew
from .._ledger.postgresql.ledger import PostgresLedger
from .._ledger.postgresql.setup import require_rights, require_tables
from .._ledger.postgresql.worker_registry import Worker
from .._protocol.stop_rules import Account, account_mismatch
from .._reconcile.same_account import require_place
from ..errors import BulkError
from ..ledger_errors import LedgerError, LedgerMismatch
from .chunk_run import LeaseHolder
from .lease_keeper import LeaseKeeper

RENEWAL_ANSWER: Final = 4.0
"""Seconds in which the database has to answer a renewal."""


class WorkerSession:
    """A worker, from its first connection to its last."""

    def __init__(self, client: AsyncPayments, url: str, *, slots: int, insecure_database: bool) -> None:
        self._client, self._insecure_database = client, insecure_database
        self._address = Address.of(url, BulkError)
        service = Service(client)
        self.runtime: Runtime = service.runtime
        """The client's time and chance."""
        self.worker: Worker = Worker(
            id=self.runtime.token(16),
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            slots=slots,
            account=service.place,
        )
        """Who asks for leases."""
        self.prover: KeyProver = KeyProver(client, self.worker.account)
        self.rows: Callable[[], int] = lambda: 0
        """Counts the rows that this worker has decided."""
        self.trouble: str | None = None
        """Why it cannot use the service now, for the list of workers; None when it can."""
        self.on_renewal: Callable[[Renewal], object] = bool
        """Gets what each renewal has taught."""
        self.on_failure: Callable[[], object] = bool
        """Called when leases are no longer renewed."""
        self._keeper: LeaseKeeper | None = None
        self._idle: list[Database] = []
        """Connections for work under leases, while none is done on them."""

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Database]:
        """Context of a registered worker, with a connection for reading.

        Raises LedgerError when the database cannot be used, and BulkError on a machine without the clock
        that leases need.
        """
        if self.runtime.boottime() is None:
            raise BulkError(
                "this machine has no clock that counts while it is suspended, so it could go on under leases "
                "that have ended: let workers run on Linux or macOS"
            )
        async with AsyncExitStack() as stack:
            database = await self._connected(patience=0.0, answer=RENEWAL_ANSWER)
            stack.push_async_callback(database.close)
            await require_tables(database, create=False)
            await require_rights(database, Role.WORKER)
            stack.push_async_callback(self._leave, database)

            async def keep(leases: Sequence[Lease]) -> Renewal:
                return await renew(database, self.worker, leases, rows=self.rows(), trouble=self.trouble)

            keeper = LeaseKeeper(
                self.runtime,
                keep,
                lambda renewal: self.on_renewal(renewal),
                lambda: self.on_failure(),
            )
            self._keeper = await stack.enter_async_context(keeper)
            stack.push_async_callback(self._close_idle)
            reader = await self._connected()
            stack.push_async_callback(reader.close)
            yield reader

    @asynccontextmanager
    async def holder(self) -> AsyncIterator[LeaseHolder]:
        """Context of a connection for work under leases; it is kept for the next work. Raises LedgerError."""
        assert self._keeper is not None  # within `opened`
        database = self._idle.pop() if self._idle else await self._connected()
        database.patience = driver.PATIENCE
        try:
            yield LeaseHolder(self._client, self.worker, self._keeper, database)
        finally:
            self._idle.append(database)

    async def _connected(self, *, patience: float | None = None, answer: float | None = None) -> Database:
        return await Database.open(
            self._address,
            self.runtime,
            insecure_database=self._insecure_database,
            patience=driver.PATIENCE if patience is None else patience,
            answer=driver.ANSWER if answer is None else answer,
        )

    async def _close_idle(self) -> None:
        for database in self._idle:
            await database.close()
        self._idle.clear()

    async def _leave(self, database: Database) -> None:
        if self._keeper is not None and self._keeper.is_answered:
            with suppress(LedgerError):
                await worker_registry.leave(database, self.worker.id)


class KeyProver:
    """Proves the client's key for batches that were begun with another key of the same account."""

    def __init__(self, client: AsyncPayments, account: Account) -> None:
        self._client, self._account = client, account
        self.refused: dict[int, str] = {}
        """{batch: why it cannot be paid from this account}. Each is asked about once."""

    async def mismatch(self, database: Database, facts: SharedFacts) -> str | None:
        """Why a batch cannot be paid from this account; None when it can.

        Raises PaymentsError when the key cannot be verified now, and LedgerError.
        """
        number, here, binding = facts.batch.batch, self._account, facts.header.binding
        if here.key in facts.keys or number in self.refused:
            return self.refused.get(number)
        there = Account(binding.environment, binding.base_url, binding.key_fingerprint)
        why: str | None = account_mismatch(there, here, untouched=False, visible=True)
        if why is None:
            why = await self._prove(database, facts.batch.batch_id)
        if why is not None:
            self.refused[number] = str(why)
        return self.refused.get(number)

    async def _prove(self, database: Database, batch_id: str) -> str | None:
        service = Service(self._client, database.clock.now)
        ledger = await PostgresLedger.open(database, batch_id, clock=service.moment)
        try:
            await require_place(ledger, service)
        except LedgerMismatch as error:
            return str(error)
        return None
