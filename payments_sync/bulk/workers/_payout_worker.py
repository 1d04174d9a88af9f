# From payments_async/bulk/workers/_payout_worker.py; change that, then run: python -m tools.mirror
"""`PayoutWorker` and `work`: workers, as programs start them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Unpack

from payments_async.bulk.workers._payout_worker import PayoutWorker as AsyncPayoutWorker
from payments_async.bulk.workers._reports import WorkerProgress, WorkerReport
from payments_async.bulk.workers._settings import WorkerOptions
from payments_async.resources._signatures import implemented_by

from ..._batch_bridge import WorkerBridge
from ...client import Payments


class PayoutWorker:
    """Pays the planned batches of a database, beside any number of other workers.

    worker = PayoutWorker("postgresql://…", client)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    report = worker.run()
    """

    def _begin(self, url: str, client: Payments, **options: Unpack[WorkerOptions]) -> None:
        twin = AsyncPayoutWorker(url, client._async, **options)
        self._async, self._bridge = twin, WorkerBridge(twin, client._bridge)

    @implemented_by(_begin)
    def __init__(
        self, url: str, client: Payments, *, slots: int = ..., batch_id: str | None = None,
        until_idle: bool = ..., concurrency: int = ..., patience: float = ..., drain: float = ...,
        insecure_database: bool = ..., folder: str | os.PathLike[str] = ...,
        on_progress: Callable[[WorkerProgress], object] = ...,
    ) -> None:  # fmt: skip
        """Check the options; nothing is connected.

        Args:
            url: the database, `postgresql://user@host/name`.
            client: pays, and stays open. It takes its rate from the database, with all workers of the key,
                unless it has a `limit_store` or a part of the limits (`RateLimits.share`).
            slots: chunks worked on at a time; 2 unless given, so that one request that takes long leaves
                nobody idle.
            batch_id: work on this batch only; by default on every batch that was planned with the client's
                account.
            until_idle: end when nothing is left to do, for this worker or another one. Otherwise it waits for
                more.
            concurrency: rows sent at a time, in all slots together; 192 unless given (`PayoutBatch.run`).
            patience: seconds in which rows in doubt are posted again and searched for, once their chunks are
                done; 3600 unless given. Those that stay in doubt are looked at again after 15 minutes.
            drain: seconds in which rows being sent may finish after `stop`; 30 unless given.
            insecure_database: allow a database on another host without `sslmode=verify-full`.
            folder: where outcomes are written that the database could not take; the current folder unless
                given.
            on_progress: called every few seconds; it cannot break the work.

        Raises:
            BulkError: an option is invalid, or this is not the address of a database.
        """

    def stop(self, reason: str = "stopped") -> None:
        """End in order: take no new chunk, finish the rows under way, give the leases back.

        Call this from any thread, from a signal handler for instance.
        """
        self._bridge.call_soon(self._async.stop, reason)

    def run(self) -> WorkerReport:
        """Work until `stop`, until an operator drains this worker, or until nothing is left to do.

        It waits for a lost service, and for a lost database a minute. Cancelled, it leaves rows in flight,
        which another worker takes up when the leases have ended.

        Raises:
            LedgerError: the database cannot be used; see `bulk.ledger_errors`.
            OutcomesUnrecorded: outcomes could be recorded neither in the database nor in a file.
            BulkError: this machine has no clock that counts while it is suspended.
        """
        return self._bridge.call_and_drain(self._async.run)


def _run_worker(url: str, client: Payments, **options: Unpack[WorkerOptions]) -> WorkerReport:
    return PayoutWorker(url, client, **options).run()


@implemented_by(_run_worker)
def work(
    url: str, client: Payments, *, slots: int = ..., batch_id: str | None = None, until_idle: bool = ...,
    concurrency: int = ..., patience: float = ..., drain: float = ..., insecure_database: bool = ...,
    folder: str | os.PathLike[str] = ..., on_progress: Callable[[WorkerProgress], object] = ...,
) -> WorkerReport:  # fmt: skip
    """Work on the batches of a database: `PayoutWorker(url, client, **options).run()`.

    Args:
        url: the database, `postgresql://user@host/name`.
        client: pays, and stays open.
        slots: chunks worked on at a time; 2 unless given, so that one request that takes long leaves nobody
            idle.
        batch_id: work on this batch only; by default on every batch that was planned with the client's
            account.
        until_idle: end when nothing is left to do, for this worker or another one. Otherwise it waits for
            more.
        concurrency: rows sent at a time, in all slots together; 192 unless given (`PayoutBatch.run`).
        patience: seconds in which rows in doubt are posted again and searched for, once their chunks are
            done; 3600 unless given. Those that stay in doubt are looked at again after 15 minutes.
        drain: seconds in which rows being sent may finish after `stop`; 30 unless given.
        insecure_database: allow a database on another host without `sslmode=verify-full`.
        folder: where outcomes are written that the database could not take; the current folder unless given.
        on_progress: called every few seconds; it cannot break the work.
    """
