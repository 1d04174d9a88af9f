"""The steps, as a program calls them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Self

from ...client import AsyncPayments
from ...params import Money
from .. import _options
from .._engine.engine import Pace
from .._leasing.step_call import OnProgress, StepCall, StepKind, StopSignal
from .._leasing.step_context import StepContext
from .._leasing.step_ends import BatchPlan, StepEnd
from .._protocol.stop_rules import StopRules
from ..ledger_errors import LedgerError
from ._planning import confirmed_total, planned


class Steps:
    """The steps of paying batches in a database. Each may be called at any time, any number of times.

    Any number of processes may call them. Open it once in a process: it keeps the connections and the
    leases of all steps that run in it.
    """

    def __init__(
        self,
        address: str,
        client: AsyncPayments,
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
        _options.require_count("concurrency", concurrency)
        _options.require_seconds("patience", patience, allows_none=True)
        _options.require_seconds("drain", drain, allows_none=True)
        pace = Pace(concurrency=concurrency, rules=StopRules(), patience=patience, drain=drain)
        self._context = StepContext(address, client, pace, insecure_database=insecure_database)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(LedgerError):  # each step has found out for itself
            await self._context.disconnect()

    async def plan(
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
        rules = _options.stop_rules(max_amount, max_rows, max_failure_rate)
        confirmed = confirmed_total(confirm_total, confirm_from)
        loading = {"accept_edits": accept_edits, "pay_again": pay_again}
        return await planned(
            self._context, source, batch_id, confirmed, rules, loading, lossy_standby=lossy_standby
        )

    async def pay(
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
        _options.require_count("chunk", chunk)
        return await self._call(batch_id, "send", stop, on_progress, chunk)

    async def settle(
        self, batch_id: str, *, stop: StopSignal | None = None, on_progress: OnProgress | None = None
    ) -> StepEnd:
        """Find out what became of the rows in doubt of all chunks, in one reading of the service's list.

        It ends with `Done` once every row of the batch is decided. For its arguments and errors see `pay`.
        """
        return await self._call(batch_id, "look", stop, on_progress)

    async def close(
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
        return await self._call(batch_id, "follow" if follow else "close", stop, on_progress)

    async def _call(
        self,
        batch_id: str,
        kind: StepKind,
        stop: StopSignal | None,
        on_progress: OnProgress | None,
        chunk: int | None = None,
    ) -> StepEnd:
        _options.require_batch_id(batch_id)
        name = _options.composed(batch_id) or ""
        return await StepCall(self._context, name, chunk, kind, stop, on_progress).to_its_end()
