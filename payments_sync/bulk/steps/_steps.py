# From payments_async/bulk/steps/_steps.py; change that, then run: python -m tools.mirror
"""The steps, as a program calls them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Self

from payments_async.bulk._leasing.step_call import OnProgress, StopSignal
from payments_async.bulk._leasing.step_ends import BatchPlan, StepEnd
from payments_async.bulk.steps._steps import Steps as AsyncSteps
from payments_async.params import Money

from ..._batch_bridge import BatchBridge
from ...client import Payments


class Steps:
    """The steps of paying batches in a database. Each may be called at any time, any number of times.

    Any number of processes may call them. Open it once in a process: it keeps the connections and the
    leases of all steps that run in it.
    """

    def __init__(
        self,
        address: str,
        client: Payments,
        *,
        concurrency: int = 192,
        patience: float = 3600.0,
        drain: float = 30.0,
        insecure_database: bool = False,
    ) -> None:
        """Check the arguments. The first step connects.

        Args:
            address: the database, `postgresql://user@host/name`.
            client: pays, and stays open. It takes its rate from the database, with all workers of the key,
                unless it has a `limit_store` or a part of the limits (`RateLimits.share`).
            concurrency: rows sent at a time in one step.
            patience: seconds in which one call of `settle` posts rows in doubt again and looks for them.
            drain: seconds in which rows being sent may finish once a step is to stop.
            insecure_database: allow a database on another host without `sslmode=verify-full`.

        Raises:
            BulkError: an argument is invalid.
        """
        twin = AsyncSteps(
            address,
            client._async,
            concurrency=concurrency,
            patience=patience,
            drain=drain,
            insecure_database=insecure_database,
        )
        self._async, self._bridge = twin, BatchBridge(twin, client._bridge)

    def __enter__(self) -> Self:
        self._bridge.open()
        return self

    def __exit__(self, *_: object) -> None:
        self._bridge.close()

    def plan(
        self,
        source: str | os.PathLike[str],
        *,
        batch_id: str,
        confirm_total: Mapping[str, Money] | None = None,
        confirm_from: str | os.PathLike[str] | None = None,
        max_amount: Money | None = None,
        max_rows: int | None = None,
        max_failure_rate: float | None = None,
        accept_edits: bool = False,
        pay_again: bool = False,
        lossy_standby: bool = False,
    ) -> BatchPlan:
        """Import a file as a batch, and let its chunks be paid once its total is confirmed. Sends nothing.

        With a live key the total has to be confirmed. Without that, or with another total, `next` is
        `Held(TOTAL)`, and no chunk is paid until this is called with the right one, or an operator
        confirms it (`payments payouts confirm`). Tables that are missing are made.

        Args:
            source: the file: .csv, .jsonl, .ndjson, .parquet or .xlsx.
            batch_id: the batch's name, from which every row's reference is made.
            confirm_total: {currency: the sum of all rows, major units}, as whoever approved the file says.
            confirm_from: a file with that: a line such as `GHS 1200.50` for each currency.
            max_amount: take no row that would bring a currency over this, in major units.
            max_rows: take no more rows than this.
            max_failure_rate: 0 to 1; take no more rows once more than this share is rejected or in conflict.
            accept_edits: accept an edited file: see `SharedBatch.load`.
            pay_again: pay a file again that is another batch of the database.
            lossy_standby: accept a standby that may lose the last commits (`SharedBatch.plan`).

        Raises:
            StepFailed: the file or the database is not there, rows are at fault, or it is another input than
                the batch's.
            BulkError: an argument is invalid.
        """
        return self._bridge.call(
            self._async.plan,
            source,
            batch_id=batch_id,
            confirm_total=confirm_total,
            confirm_from=confirm_from,
            max_amount=max_amount,
            max_rows=max_rows,
            max_failure_rate=max_failure_rate,
            accept_edits=accept_edits,
            pay_again=pay_again,
            lossy_standby=lossy_standby,
        )

    def pay(
        self,
        batch_id: str,
        chunk: int,
        *,
        stop: StopSignal | None = None,
        on_progress: OnProgress | None = None,
    ) -> StepEnd:
        """Pay the rows of one chunk, unless another process does, or nothing is left to send.

        Rows whose outcome is in doubt are left to `settle`. A call that is cancelled records the rows under
        way before it raises CancelledError. Cancelled twice, it leaves them, and the next call takes them up.

        Args:
            batch_id: the batch.
            chunk: the chunk's number, from 1.
            stop: an `asyncio.Event` or `threading.Event`. Once it is set no further row is begun, and the
                outcomes of those under way are recorded.
            on_progress: called every few seconds with the chunk's rows that are decided, and all of them; it
                cannot break the work.

        Raises:
            StepFailed: the database or the service is away, or the key is refused.
            BulkError: an argument is invalid.
        """
        return self._bridge.call(self._async.pay, batch_id, chunk, stop=stop, on_progress=on_progress)

    def settle(
        self, batch_id: str, *, stop: StopSignal | None = None, on_progress: OnProgress | None = None
    ) -> StepEnd:
        """Find out what became of the rows in doubt of all chunks, in one reading of the service's list.

        It ends with `Done` once every row of the batch is decided. For its arguments and errors see `pay`.
        """
        return self._bridge.call(self._async.settle, batch_id, stop=stop, on_progress=on_progress)

    def close(
        self,
        batch_id: str,
        *,
        follow: bool = False,
        stop: StopSignal | None = None,
        on_progress: OnProgress | None = None,
    ) -> StepEnd:
        """Close a batch all of whose rows are decided: compare it with the service's list, and seal it.

        `Done` says that it is closed; `end.is_clean`, whether the list agreed with the ledger in every row.

        Args:
            batch_id: the batch.
            follow: of a closed batch, read the list once and record how payouts ended, as
                `SharedBatch.reconcile` does. `Done` once all are final, or the batch was forgotten: call it
                daily until then.
            stop: see `pay`.
            on_progress: see `pay`.

        Raises:
            StepFailed: see `pay`.
            BulkError: an argument is invalid.
        """
        return self._bridge.call(
            self._async.close,
            batch_id,
            follow=follow,
            stop=stop,
            on_progress=on_progress,
        )
