"""`PayoutWorker`, `work` and `run_chunk`: workers, as programs start them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from ..._call_signatures import named_arguments
from ..._extras import needs
from ..._request.auth import hidden
from ...client import AsyncPayments
from .. import _options
from .._engine.stopping import Stopping
from .._ledger.opening import is_database
from ..errors import BulkError
from ._reports import ChunkReport, WorkerReport
from ._settings import WorkerOptions, WorkerSettings

if TYPE_CHECKING:
    from ._worker_session import WorkerSession


@named_arguments
class PayoutWorker:
    """Pays the planned batches of a database, beside any number of other workers.

    worker = PayoutWorker("postgresql://…", client)
    loop.add_signal_handler(signal.SIGTERM, worker.stop)
    report = await worker.run()
    """

    def __init__(self, url: str, client: AsyncPayments, **options: Unpack[WorkerOptions]) -> None:
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
        self._url, self._client = _address(url), client
        self._settings = WorkerSettings(**options)
        self._stopping = Stopping(client._internal.runtime)

    def stop(self, reason: str = "stopped") -> None:
        """End in order: take no new chunk, finish the rows under way, give the leases back.

        Call this on the worker's own event loop, from a signal handler for instance.
        """
        self._stopping.drain(reason)

    async def run(self) -> WorkerReport:
        """Work until `stop`, until an operator drains this worker, or until nothing is left to do.

        It waits for a lost service, and for a lost database a minute. Cancelled, it leaves rows in flight,
        which another worker takes up when the leases have ended.

        Raises:
            LedgerError: the database cannot be used; see `bulk.ledger_errors`.
            OutcomesUnrecorded: outcomes could be recorded neither in the database nor in a file.
            BulkError: this machine has no clock that counts while it is suspended.
        """
        session = _session(self._url, self._client, self._settings)
        from ._worker import WorkerRun

        return await WorkerRun(self._client, session, self._settings, self._stopping).run()


@named_arguments
async def work(url: str, client: AsyncPayments, **options: Unpack[WorkerOptions]) -> WorkerReport:
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
    return await PayoutWorker(url, client, **options).run()


async def run_chunk(
    ledger: str,
    client: AsyncPayments,
    batch_id: str,
    chunk: int,
    *,
    concurrency: int = 192,
    drain: float = 30.0,
    insecure_database: bool = False,
) -> ChunkReport:
    """Work on one chunk of a planned batch, unless another process does. It can be called at any time.

    For a scheduler that you already have: let it call this for every chunk of a batch, and again for those
    that did not end as `DONE`. Rows in doubt, and the closing of the batch, are left to a worker (such as
    `work` with `until_idle`) or to `SharedBatch.run`.

    Args:
        ledger: the database, `postgresql://user@host/name`.
        client: pays, and stays open. Its rate is that of the database, as for `PayoutWorker`.
        batch_id: the batch.
        chunk: the chunk's number, from 1.
        concurrency: rows sent at a time.
        drain: seconds in which rows being sent may finish when an operator drains the process.
        insecure_database: allow a database on another host without `sslmode=verify-full`.

    Raises:
        LedgerError: the batch is not there, or the database cannot be used; see `bulk.ledger_errors`.
        OutcomesUnrecorded: outcomes could not be recorded; the chunk's next run learns them again.
        BulkError: an argument is invalid.
    """
    url = _address(ledger)
    settings = WorkerSettings(
        slots=1,
        batch_id=batch_id,
        concurrency=concurrency,
        drain=drain,
        insecure_database=insecure_database,
    )
    _options.require_count("chunk", chunk)
    session = _session(url, client, settings)
    from ._worker import run_single

    return await run_single(client, session, settings, chunk)


def _address(url: str) -> str:
    """Check the address of a database, and hide it from tracebacks. Raises BulkError."""
    url = hidden(url)
    if not isinstance(url, str) or not is_database(url):
        raise BulkError(
            "workers share a ledger in a database, postgresql://user@host/name; one in a file has one "
            "process, which PayoutBatch.run is for"
        )
    return url


def _session(url: str, client: AsyncPayments, settings: WorkerSettings) -> WorkerSession:
    """Let the client take its rate from the database, unless it has a limit store or a part already."""
    try:
        from ._worker_session import WorkerSession
    except ImportError as missing:
        raise ImportError(needs("workers need", "bulk", "machines")) from missing
    client._internal.use_limit_store(url, insecure_database=settings.insecure_database)
    return WorkerSession(client, url, settings)
