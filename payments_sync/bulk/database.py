# From payments_async/bulk/database.py; change that, then run: python -m tools.mirror
"""A database of batches, as its operator sees it: tables, batches and workers. It needs no key.

    with BatchDatabase.open("postgresql://payroll@db/payroll") as database:
        for batch in database.batches():
            print(batch.batch_id, batch.state, batch.report.counts["created"])

It reads the figures of batches and no row: a database role without rights on rows is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Literal, Self

from payments_async.bulk._ledger.operators import ClosedBatch, DatabaseReport, ListedWorker
from payments_async.bulk._listing import ListedBatch
from payments_async.bulk.database import BatchDatabase as AsyncBatchDatabase

from .._batch_bridge import BatchBridge

if TYPE_CHECKING:
    from payments_async.bulk.ledger_errors import LedgerError


class BatchDatabase:
    """A database of batches: `with BatchDatabase.open(address)`."""

    def __init__(self, twin: AsyncBatchDatabase, bridge: BatchBridge) -> None:
        """Use `open`."""
        self._async, self._bridge = twin, bridge

    @classmethod
    def open(cls, address: str, *, insecure_database: bool = False) -> Self:
        """A database, which is connected to by `with`.

        Args:
            address: `postgresql://user@host/database`.
            insecure_database: allow one on another host without `sslmode=verify-full`.

        Raises ImportError, with what to install, without the extra.
        """
        twin = AsyncBatchDatabase.open(address, insecure_database=insecure_database)
        return cls(twin, BatchBridge(twin))

    def __enter__(self) -> Self:
        self._bridge.open()
        return self

    def __exit__(self, *_: object) -> None:
        self._bridge.close()

    def batches(
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
        return self._bridge.call(self._async.batches, batch_id, on_unreadable=on_unreadable)

    def workers(self) -> list[ListedWorker]:
        """List the workers, the oldest first, as they last reported. Raises LedgerError."""
        return self._bridge.call(self._async.workers)

    def drain(self, worker: str) -> ListedWorker:
        """Let a worker take no more rows and end, within seconds; one that `is_gone` should it come back.

        Args:
            worker: its id, or the first characters of it.

        Raises:
            LedgerRefused: no worker has such an id, or several have.
            LedgerError: see `bulk.ledger_errors`.
        """
        return self._bridge.call(self._async.drain, worker)

    def forget(
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
        return self._bridge.call(
            self._async.forget,
            closed_before,
            unsettled=unsettled,
            only=only,
            dry_run=dry_run,
        )

    def forgotten(self, reference: str) -> ListedBatch | None:
        """Find the forgotten batch that had a payout of this reference. Raises LedgerError."""
        return self._bridge.call(self._async.forgotten, reference)

    def init(self) -> bool:
        """Make the tables, unless they are there. Returns whether they were made.

        Raises:
            RightsMissing: the user may not make them; it has the statements that are missing.
            LedgerError: there are tables of another version, or the database cannot be used.
        """
        return self._bridge.call(self._async.init)

    def upgrade(self) -> tuple[int, int]:
        """Bring the tables to this version's form, while no worker runs. Returns their number before and now.

        Raises LedgerMissing without tables; LedgerRefused, which names it, while a batch is not closed that
        an older version has imported and this one could not pay; and LedgerError.
        """
        return self._bridge.call(self._async.upgrade)

    def check(self, role: Literal["reader", "worker", "planner"] = "planner") -> DatabaseReport:
        """Inspect the database: version, tables, rights, TLS, clock, standbys, settings. Changes nothing.

        Args:
            role: the rights to look for: those to see figures (`reader`), to pay (`worker`), or to import as
                well.

        Raises LedgerError; what makes the database unusable as it is, is in the report's `.problems`.
        """
        return self._bridge.call(self._async.check, role)
