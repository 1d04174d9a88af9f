"""A database of batches, as its operator sees it: tables, batches and workers. It needs no key.

    async with BatchDatabase.open("postgresql://payroll@db/payroll") as database:
        for batch in await database.batches():
            print(batch.batch_id, batch.state, batch.report.counts["created"])

It reads the figures of batches and no row: a database role without rights on rows is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, Literal, Self
from unicodedata import normalize

import attrs

from .._request.auth import hidden
from .._runtime import SYSTEM
from ..models._masking import clean
from ._ledger.opening import SHARED, require_address, require_extra
from ._ledger.operators import ClosedBatch, DatabaseReport, ListedWorker, Role
from ._listing import ListedBatch, with_workers
from ._options import composed, require_batch_id, require_seconds
from ._protocol.machines import BatchState
from .errors import BulkError

if TYPE_CHECKING:
    from ._ledger.postgresql.database import Database
    from .ledger_errors import LedgerError

_OF_RUN: Final = 4
"""Connections of `run` itself: the batch, its figures, the rate limit, and one that tells poolers apart."""


_NOT_CLOSED: Final = {
    BatchState.CLOSED: "was not closed so long ago",
    BatchState.FORGOTTEN: "was forgotten before",
}
"""{state: why a batch in it cannot be forgotten}."""


class BatchDatabase:
    """A database of batches: `async with BatchDatabase.open(address)`."""

    def __init__(self, address: str, *, insecure_database: bool) -> None:
        """Use `open`."""
        require_extra(*SHARED)
        self._address, self._is_insecure = hidden(address), insecure_database
        self._connected: Database | None = None
        self._has_tables = False

    @classmethod
    def open(cls, address: str, *, insecure_database: bool = False) -> Self:
        """A database, which is connected to by `async with`.

        Args:
            address: `postgresql://user@host/database`.
            insecure_database: allow one on another host without `sslmode=verify-full`.

        Raises ImportError, with what to install, without the extra.
        """
        return cls(address, insecure_database=insecure_database)

    async def __aenter__(self) -> Self:
        require_address(self._address)
        if self._connected is not None:
            raise BulkError("it is open already")
        from ._ledger.postgresql.database import Database

        self._connected = await Database.open(self._address, SYSTEM, insecure_database=self._is_insecure)
        return self

    async def __aexit__(self, *_: object) -> None:
        database, self._connected = self._database, None
        await database.close()

    @property
    def _database(self) -> Database:
        if self._connected is None:
            raise BulkError(
                "the database is not connected: enter what `open` returned, by `with` or `async with`"
            )
        return self._connected

    async def _with_tables(self) -> Database:
        """The database, whose tables are of this version. Raises LedgerMissing, LedgerOlder, LedgerNewer."""
        from ._ledger.postgresql.setup import require_tables

        if not self._has_tables:
            await require_tables(self._database, create=False)
            self._has_tables = True
        return self._database

    async def batches(
        self,
        batch_id: str | None = None,
        *,
        on_unreadable: Callable[[LedgerError], object] | None = None,
    ) -> list[ListedBatch]:
        """List the batches, the newest first, with their figures and workers.

        Args:
            batch_id: only this one; the list is empty if it is not there.
            on_unreadable: gets the error of a batch that cannot be read, in place of the caller.

        Raises:
            BulkError: the name is one that no batch can have.
            LedgerMissing: there are no tables.
            LedgerError: see `bulk.ledger_errors`.
        """
        from ._ledger.postgresql import batches

        require_batch_id(batch_id)
        database, workers = await self._with_tables(), await self.workers()
        found = await batches.listed(database, composed(batch_id), on_unreadable)
        return [with_workers(batch, workers) for batch in found]

    async def workers(self) -> list[ListedWorker]:
        """List the workers, the oldest first, as they last reported. Raises LedgerError."""
        from ._ledger.postgresql import worker_registry

        return await worker_registry.listed(await self._with_tables())

    async def drain(self, worker: str) -> ListedWorker:
        """Let a worker take no more rows and end, within seconds; one that `is_gone` should it come back.

        Args:
            worker: its id, or the first characters of it.

        Raises:
            LedgerRefused: no worker has such an id, or several have.
            LedgerError: see `bulk.ledger_errors`.
        """
        from ._ledger.postgresql import worker_registry

        found = await worker_registry.drain(await self._with_tables(), worker)
        return attrs.evolve(found, is_draining=True)

    async def forget(
        self,
        closed_before: float,
        *,
        unsettled: Collection[str] = (),
        only: Collection[str] | None = None,
        dry_run: bool = False,
    ) -> list[ClosedBatch]:
        """Forget batches that were closed some time ago: drop their rows, states, attempts and entries.

        Kept are their sums and counts, root, certificate and keyed hashes of their references, so that the
        same input is refused as another batch. It cannot be undone, and `retry-failed` is over. Only settled
        batches are forgotten: those whose last certificate says that every payout is final, and that have
        not changed since.

        Args:
            closed_before: seconds for which they have been closed, at least.
            unsettled: names of batches to forget although they are not settled.
            only: names of batches to look at, such as those that a person has confirmed; None for all.
            dry_run: only find out what would be forgotten.

        Returns each of the batches that were closed so long ago, with the reason of one that is kept.

        Raises:
            BulkError: an argument is invalid, or a batch of `unsettled` is not closed for so long. Nothing
                was forgotten.
            RightsMissing: the user may not change batches.
            LedgerError: see `bulk.ledger_errors`. Batches forgotten before stay so.
        """
        from ._ledger.postgresql import forgetting

        require_seconds("closed_before", closed_before, allows_none=True)
        database, named = await self._with_tables(), {composed(name) for name in unsettled}
        found = await forgetting.closed(database, closed_before)
        for name in sorted(str(name) for name in named - {batch.batch_id for batch in found}):
            states = [batch.state for batch in await self.batches(name)]
            why = _NOT_CLOSED.get(states[0], "is not closed") if states else "is not there"
            raise BulkError(f"batch {clean(name)} {why}: nothing was forgotten")
        wanted = None if only is None else {composed(name) for name in only}
        return [
            await forgetting.forget(database, batch, unsettled=batch.batch_id in named, dry_run=dry_run)
            for batch in found
            if wanted is None or batch.batch_id in wanted
        ]

    async def forgotten(self, reference: str) -> ListedBatch | None:
        """Find the forgotten batch that had a payout of this reference. Raises LedgerError."""
        from ._ledger.postgresql import forgetting

        database = await self._with_tables()
        for text in dict.fromkeys((reference, normalize("NFC", reference))):  # references are kept as sent
            if name := await forgetting.by_reference(database, text):
                return next(iter(await self.batches(name)), None)
        return None

    async def init(self) -> bool:
        """Make the tables, unless they are there. Returns whether they were made.

        Raises:
            RightsMissing: the user may not make them; it has the statements that are missing.
            LedgerError: there are tables of another version, or the database cannot be used.
        """
        from ._ledger.postgresql import setup

        made = await setup.make_tables(self._database)
        await self._with_tables()
        return made

    async def upgrade(self) -> tuple[int, int]:
        """Bring the tables to this version's form, while no worker runs. Returns their number before and now.

        Raises LedgerMissing without tables; LedgerRefused, which names it, while a batch is not closed that
        an older version has imported and this one could not pay; and LedgerError.
        """
        from ._ledger.postgresql import setup
        from ._ledger.postgresql.schema import SCHEMA

        return await setup.upgrade(self._database), SCHEMA

    async def check(self, role: Literal["reader", "worker", "planner"] = "planner") -> DatabaseReport:
        """Inspect the database: version, tables, rights, TLS, clock, standbys, settings. Changes nothing.

        Args:
            role: the rights to look for: those to see figures (`reader`), to pay (`worker`), or to import as
                well.

        Raises LedgerError; what makes the database unusable as it is, is in the report's `.problems`.
        """
        from ._ledger.postgresql import setup
        from .workers._settings import WorkerSettings, connections

        needed = {"run": _OF_RUN, "worker": connections(WorkerSettings().slots)}
        return attrs.evolve(await setup.inspect(self._database, Role(role)), connections=needed)
