# From payments_async/bulk/shared_batch.py; change that, then run: python -m tools.mirror
"""A batch in a database, which any number of processes on any number of machines work on together.

    with SharedBatch.open("postgresql://payroll@db/payroll", client, batch_id="june") as batch:
        batch.load("june.csv")
        batch.plan()  # workers begin; or `run`, which works too until the batch is complete

Leases keep the processes apart; what makes a second payment impossible is each payout's reference.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from payments_async.bulk._report import BatchFigures, BatchReport
from payments_async.bulk.shared_batch import SharedBatch as AsyncSharedBatch
from payments_async.params import Money

from .._batch_bridge import BatchBridge
from ..client import Payments
from .batch import AnyBatch

if TYPE_CHECKING:
    from payments_async.bulk._protocol.records import CheckReport
    from payments_async.bulk._reconcile.recover import RecoveryReport


class SharedBatch(AnyBatch):
    """One batch of a database: `with SharedBatch.open(address, client, batch_id="june")`."""

    _async: AsyncSharedBatch

    @classmethod
    def open(
        cls,
        address: str,
        client: Payments | None = None,
        *,
        batch_id: str | None = None,
        create: bool = True,
        insecure_database: bool = False,
    ) -> Self:
        """A batch whose database is connected to by `with`.

        Args:
            address: the database, which has any number of batches: `postgresql://user@host/database`.
            client: pays, and stays open. `run` takes its rate from the database, with all workers of the key,
                unless the client has a `limit_store` or a part of the limits (`RateLimits.share`). Without a
                client the batch can only be read, paused, resumed and cancelled: methods that need the
                service raise BulkError.
            batch_id: the batch's name, which finds it; `load` gives it to a new one. Only a new one may be
                without: it is then named by its input.
            create: whether missing tables and a missing batch are made; never without a client.
            insecure_database: allow a database on another host without `sslmode=verify-full`.

        Raises ImportError, with what to install, without the extra. A path, which is for `PayoutBatch.open`,
        is refused by `with`.
        """
        twin = AsyncSharedBatch.open(
            address,
            None if client is None else client._async,
            batch_id=batch_id,
            create=create,
            insecure_database=insecure_database,
        )
        return cls(twin, BatchBridge(twin, None if client is None else client._bridge))

    def plan(
        self,
        *,
        max_amount: Money | None = None,
        max_rows: int | None = None,
        max_failure_rate: float | None = None,
        lossy_standby: bool = False,
    ) -> BatchReport:
        """Let workers begin to pay, under these rules. Sends nothing itself.

        Until then no worker takes a row: look at the sums of `load`, then call this or `run`, which does the
        same. It can be called again, to change the rules.

        Args:
            max_amount: take no row that would bring a currency over this, in major units.
            max_rows: take no more rows than this, those of earlier runs included.
            max_failure_rate: 0 to 1; take no more rows once more than this share is rejected or in conflict.
            lossy_standby: accept a standby that may lose the last commits (`recover`). Said once for a batch,
                before its first live `run`.

        Raises:
            LedgerMismatch: see `run`.
            LedgerRefused: such a standby was not accepted.
            LedgerError: see `bulk.ledger_errors`.
        """
        return self._bridge.call(
            self._async.plan,
            max_amount=max_amount,
            max_rows=max_rows,
            max_failure_rate=max_failure_rate,
            lossy_standby=lossy_standby,
        )

    def pause(self, reason: str = "paused") -> BatchReport:
        """Let no worker begin another row, on any machine, within 5 seconds. Rows under way are finished.

        A suspect batch is paused after its recovery. For one that is closed or not planned this does nothing.
        Raises LedgerError.
        """
        return self._bridge.call(self._async.pause, reason)

    def resume(self, *, guard: str | None = None) -> BatchReport:
        """End a pause: workers go on. Without a pause nothing is changed. Raises LedgerError.

        Args:
            guard: the digest of the guard that workers have from now on (`Guard.digest`; of several the
                sorted ones, with "+" in between; "" for none). None leaves the recorded one.
        """
        return self._bridge.call(self._async.resume, guard=guard)

    def cancel_rest(self) -> BatchReport:
        """Cancel every row that was not sent yet. It cannot be undone; rows under way are finished.

        Workers may be paying meanwhile: a row is either cancelled or sent.

        Raises:
            LedgerRefused: commits were lost, and it is not known yet which rows were sent: `recover` first.
            LedgerError: see `bulk.ledger_errors`.
        """
        return self._bridge.call(self._async.cancel_rest)

    def recover(
        self,
        on_progress: Callable[[BatchFigures], object] | None = None,
        *,
        commands_complete: bool = False,
        by_hand: bool = False,
    ) -> RecoveryReport:
        """Recover a batch whose database has lost commits, by a fail-over or a restored backup.

        Such a batch is suspect: no row is sent. The service's list is read from a day before the import, and
        what it shows is recorded. The report has the commands that the ledger still knows: repeat what is
        missing, after a reading has proven what was lost (`RecoveryReport.wait`); then confirm.

        Args:
            on_progress: called after each page of the list, and at least every five seconds; it cannot
                break the work.
            commands_complete: no command of yours is missing: let the batch go on.
            by_hand: commits were lost although nothing shows it, as after a restored disk image. Each such
                call is a loss of its own.

        Raises:
            LedgerMismatch: see `run`.
            LedgerError: see `bulk.ledger_errors`.
            PaymentsError: the list cannot be read whole; all facts read until then are recorded.
        """
        return self._bridge.call(
            self._async.recover,
            on_progress,
            commands_complete=commands_complete,
            by_hand=by_hand,
        )

    def check(self, *, chunks: str | os.PathLike[str] | None = None) -> CheckReport:
        """Check all of the batch: its structure, its chains, every row and sum.

        A few seconds for 100,000 rows; the service is not asked. What is wrong is in `.findings`.

        Args:
            chunks: a file to write (mode 0600): a line of JSON for each chunk, with its rows, sums, digest
                and head. The report's `head` is the file's SHA-256.

        Raises:
            BulkError: `chunks` is there already.
            OSError: `chunks` cannot be written.
        """
        return self._bridge.call(self._async.check, chunks=chunks)

    def chunks(self) -> int:
        """Count the chunks, which `bulk.steps` pays one by one. Raises LedgerMissing before the import."""
        return self._async.chunks()
