# From payments_async/bulk/batch.py; change that, then run: python -m tools.mirror
"""A batch of payouts: load an input, and run it in any number of processes, again after any interruption.

    with PayoutBatch.open("june.ledger", client, batch_id="june") as batch:
        batch.load("june.csv")
        report = batch.run()

Each row is paid at most once, whatever dies and whenever; none is lost, and every row in doubt is shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Self

from payments_async.bulk._export.causes import Cause
from payments_async.bulk._export.export import ExportReport
from payments_async.bulk._export.row_view import RowView
from payments_async.bulk._loading.load import Input
from payments_async.bulk._protocol.records import Batch
from payments_async.bulk._run.retry import RetryReport
from payments_async.bulk.batch import PayoutBatch as AsyncPayoutBatch
from payments_async.bulk.report import BatchFigures, BatchReport, Certificate, ImportReport
from payments_async.params import Money

from .._batch_bridge import BatchBridge
from ..client import Payments


class PayoutBatch:
    """One batch in a ledger: `with PayoutBatch.open(ledger, client, batch_id="june") as batch`."""

    def __init__(self, twin: AsyncPayoutBatch, bridge: BatchBridge) -> None:
        """Use `open`."""
        self._async, self._bridge = twin, bridge

    @classmethod
    def open(
        cls,
        ledger: str | os.PathLike[str],
        client: Payments | None = None,
        *,
        batch_id: str | None = None,
        create: bool = True,
        insecure_database: bool = False,
    ) -> Self:
        """A batch whose ledger is opened by `with`. Any number of processes may do so at once.

        Args:
            ledger: a file on a local disk, made (mode 0600) when it is not there, or the address of a
                database, `postgresql://user@host:port/name`.
            client: pays; its rate limits pace the batch, behind interactive calls. It stays open. Without a
                client the batch can only be read: methods that need the service raise BulkError.
            batch_id: the batch's name. It may be left out for a file with one batch, and for a new one that
                is named by its input.
            create: whether a missing file, or missing tables, are made; never without a client.
            insecure_database: use a database on another host without a checked certificate.

        Raises ImportError, with what to install, without the extra.
        """
        twin = AsyncPayoutBatch.open(
            ledger, None if client is None else client._async, batch_id=batch_id, create=create,
            insecure_database=insecure_database,
        )  # fmt: skip
        return cls(twin, BatchBridge(twin, None if client is None else client._bridge))

    def __enter__(self) -> Self:
        self._bridge.open()
        return self

    def __exit__(self, *_: object) -> None:
        self._bridge.close()

    @property
    def batch_id(self) -> str:
        """The batch's name; "" before it has one."""
        return self._async.batch_id

    def load(
        self,
        source: Input,
        *,
        batch_id: str | None = None,
        skip_invalid: bool = False,
        rejects: str | os.PathLike[str] | None = None,
        doubts: bool = True,
        accept_edits: bool = False,
        pay_again: bool = False,
    ) -> ImportReport:
        """Import the rows to pay. If the ledger has an input already, check that it is the same.

        Args:
            source: a file (.csv, .jsonl, .ndjson, .parquet, .xlsx), a source of `bulk.sources`, a DataFrame
                (pandas, polars, DuckDB, pyarrow; extra `parquet`), or payouts (`PayoutRequest` or
                `(row_key, PayoutRequest)`) that can be read twice, such as a list.
            batch_id: the batch's name; by default the hash of the input. Every row's reference is made of it,
                so that the same batch is never paid twice, not even from another ledger. A live key needs a
                name for a new batch, unless every row has a reference of its own.
            skip_invalid: leave rows with faults out, instead of refusing the input.
            rejects: a file for the rows with faults, to be corrected (mode 0600), each with the reference
                that it has in this batch. The input is then read once more.
            doubts: accept values that are allowed and probably a slip, such as a phone number of another
                country or an amount of more than 15 digits, with a warning; False makes each a fault.
            accept_edits: accept an edited input: give rows that are new or rejected their new content, under
                the same reference, and cancel new rows that were removed. All or nothing: any other
                difference is refused.
            pay_again: import an input that another ledger in the folder holds as another batch: its rows are
                paid again.

        Raises:
            SourceErrors: rows are at fault: it names them all, and nothing was imported.
            SourceUnreadable: the input cannot be read.
            BatchIdRequired: a live key, and neither the batch nor all of its rows have a name.
            LedgerOfAnotherInput: the input was edited since, or is another; it names the rows.
            InputPaidElsewhere: this ledger, or one beside it, has the input as another batch.
            LedgerMismatch: the batch is of another environment or address.
            LedgerError: the ledger cannot be used.
        """
        return self._bridge.call_with_rows(
            self._async.load, source, batch_id=batch_id, skip_invalid=skip_invalid, rejects=rejects,
            doubts=doubts, accept_edits=accept_edits, pay_again=pay_again,
        )  # fmt: skip

    def preview(
        self,
        source: Input,
        *,
        batch_id: str | None = None,
        skip_invalid: bool = False,
        rejects: str | os.PathLike[str] | None = None,
        doubts: bool = True,
    ) -> ImportReport:
        """Make the report that `load` would give: checks every row, imports none, sends none.

        It can be called before the batch is opened, and then makes no ledger: nothing is written but the
        `rejects` file when asked. Rows that a ledger has otherwise are in the report's `.differences`.

        Args:
            source: as for `load`.
            batch_id: as for `load`.
            skip_invalid: as for `load`.
            rejects: as for `load`.
            doubts: as for `load`.

        Raises what `load` does, except LedgerOfAnotherInput and InputPaidElsewhere: the report shows these.
        """
        return self._bridge.call_with_rows(
            self._async.preview, source, batch_id=batch_id, skip_invalid=skip_invalid, rejects=rejects,
            doubts=doubts,
        )  # fmt: skip

    def run(
        self,
        on_progress: Callable[[BatchFigures], object] | None = None,
        *,
        concurrency: int = 192,
        patience: float = 3600.0,
        drain: float = 30.0,
        for_seconds: float | None = None,
        wait_final: float | None = None,
        follow: bool = False,
    ) -> BatchReport:
        """Pay what is open, together with every other process that runs the batch, and certify it.

        Stopped, cancelled or killed, it can be run again at any time and anywhere; nothing is paid twice
        (Endpoints, POST /payouts).

        Args:
            on_progress: called when outcomes were recorded, and every few seconds with what is being done
                (`BatchFigures.activity`), on the event loop's thread; it cannot break the run.
            concurrency: rows sent at a time. It bounds the speed: for R payouts a second (Limits) and
                answers that take S seconds, R x S are under way: 192 are enough for 1,000 a second at 0.19 s.
                Keep it below the client's `max_connections` (256), so that other calls find one too.
            patience: seconds, once every other row is decided, in which rows in doubt are posted again and
                looked for in the list.
            drain: seconds in which rows that have left may finish after `stop`, or Ctrl-C in a blocking
                program. Rows that have not are given back at once.
            for_seconds: end after so many seconds, though rows are left: the report's `next` says when to
                come again. For a task of an engine.
            wait_final: seconds in which created payouts are followed to their end; None to leave that.
            follow: of an outbox, wait for rows that are still to come, until `stop`.

        Raises:
            LedgerMismatch: the batch is of another environment or address, or the key sees none of its
                payouts.
            LedgerUnavailable: the database is away; the next run finds out what was not recorded.
            LedgerError: the ledger cannot be used.
        """
        return self._bridge.call_and_drain(
            drain, self._async.run, on_progress, concurrency=concurrency, patience=patience, drain=drain,
            for_seconds=for_seconds, wait_final=wait_final, follow=follow,
        )  # fmt: skip

    def stop(self, reason: str = "stopped") -> None:
        """End the running work early: what has left finishes, the rest is given back. It can be run again.

        Called before a run, it ends the next one before that begins a row.
        Call this from any thread, from a signal handler for instance.
        """
        self._bridge.call_soon(self._async.stop, reason)

    def reconcile(self, on_progress: Callable[[BatchFigures], object] | None = None) -> Certificate:
        """Read the service's list once: update the ledger from it, and certify the batch. Sends no payout.

        Rows in doubt whose payout the list shows are settled: created, or in conflict. Others stay as they
        are. Statuses are copied, rows get later payouts that a lost ledger had begun, and the ledger is
        compared with the list row by row.

        Args:
            on_progress: called after each page of the list; it cannot break the work.

        Raises:
            LedgerMismatch: see `run`.
            LedgerError: the ledger cannot be used.
            PaymentsError: the list cannot be read whole, to its end; all facts read until then are recorded.
        """
        return self._bridge.call(self._async.reconcile, on_progress)

    def retry_failed(
        self, *, rows: Collection[int] | None = None, rejected: bool = False, dry_run: bool = False
    ) -> RetryReport:
        """Make rows new again whose payouts have finally failed, or which were refused; `run` pays them.

        The list is read now, and a row is made new only when that reading says that its payout, and each
        earlier one, has finally failed. The new payout has a reference of its own: the old one's with `~g1`,
        then `~g2` and so on (Endpoints, POST /payouts: a reference is used once). Rows in doubt are never
        made new again.

        Args:
            rows: only these, by number; None for all that have failed. One whose payout had arrived and was
                returned is made new only by its number.
            rejected: the rejected rows instead, once the cause was corrected at the service: same reference,
                same body, and an idempotency key that they never had (Limits, Idempotency). For another body
                give `load` the corrected input, with `accept_edits`.
            dry_run: only report which rows.

        Raises:
            BulkError: a row that was asked for is not there, or in another state; nothing was changed.
            LedgerMismatch: see `run`.
            LedgerError: the ledger cannot be used.
            PaymentsError: the list cannot be read to its end; no row was made new.
        """
        return self._bridge.call(self._async.retry_failed, rows=rows, rejected=rejected, dry_run=dry_run)

    def pause(self, reason: str = "paused") -> None:
        """Send nothing more, in no process, until `resume`. The list is still read. Raises LedgerError."""
        return self._bridge.call(self._async.pause, reason)

    def resume(self) -> None:
        """Send again. Raises LedgerError."""
        return self._bridge.call(self._async.resume)

    def cancel_rest(self) -> int:
        """Cancel each row whose every send is proven to have made nothing; how many. Raises LedgerError."""
        return self._bridge.call(self._async.cancel_rest)

    def limit(
        self,
        *,
        max_rows: int | None = None,
        max_amount: Money | None = None,
        max_failure_rate: float | None = None,
    ) -> None:
        """Set how much of the batch may be taken, in all processes.

        `max_rows` and `max_amount` are one limit, and `max_failure_rate` is another: of each, what is given
        replaces what was set. Without any argument nothing is limited any more.

        Args:
            max_rows: no more rows than these, the first ones of the input.
            max_amount: no row from the one on that would bring a currency over this, in major units.
            max_failure_rate: 0 to 1; a process that sees a greater share rejected pauses the batch.

        Raises BulkError for an invalid limit, and LedgerError.
        """
        return self._bridge.call(
            self._async.limit, max_rows=max_rows, max_amount=max_amount,
            max_failure_rate=max_failure_rate,
        )  # fmt: skip

    def confirm(self, totals: Mapping[str, Money], by: str = "") -> None:
        """Say yes to the total of what was loaded, which a live key asks for before it pays.

        Args:
            totals: {currency: sum}, as `status().payable` has it.
            by: who says so, for the record.

        Raises BulkError where the totals are others, also by edits made meanwhile, and LedgerError.
        """
        return self._bridge.call(self._async.confirm, totals, by)

    def discard(self) -> None:
        """Delete a batch of which no row was ever sent or found, so that its rows can be loaded anew.

        Raises BulkError for any other, and LedgerError.
        """
        return self._bridge.call(self._async.discard)

    def forget(self, before: datetime, *, dry_run: bool = False) -> int:
        """Delete the rows of a settled batch that were all decided before a moment; of an outbox, each such.

        The batch's line stays, with its input's hash, sums and certificate: its name and its input are
        refused from then on. Returns how many rows.

        Args:
            before: aware.
            dry_run: only count them.

        Raises BulkError for a batch whose latest certificate is not of all payouts' ends, and LedgerError.
        """
        return self._bridge.call(self._async.forget, before, dry_run=dry_run)

    def batches(self) -> tuple[Batch, ...]:
        """Read the facts of all batches of this ledger, the newest first. Raises LedgerError."""
        return self._bridge.call(self._async.batches)

    def status(self) -> BatchReport:
        """Read the batch's figures, of all processes, and make its report. Raises LedgerError."""
        return self._bridge.call(self._async.status)

    def facts(self) -> Batch:
        """Read what is known of the batch as a whole. Raises LedgerMissing before anything was loaded."""
        return self._bridge.call(self._async.facts)

    def holders(self) -> list[str]:
        """The processes that have rows in hand now, as `host:process:…`. Raises LedgerError."""
        return self._bridge.call(self._async.holders)

    def pace(self) -> float:
        """Read how many rows were decided a second over the last minute. Raises LedgerError."""
        return self._bridge.call(self._async.pace)

    def row(self, name: str | int) -> RowView | None:
        """Read one row: state, payout, times, and each status of its payouts, account data masked.

        None when there is none.

        Args:
            name: the row's key, a reference that it has or had, or its number in the input; an int is the
                number alone.
        """
        return self._bridge.call(self._async.row, name)

    def causes(self, most: int = 50) -> tuple[Cause, ...]:
        """Group the rows that need a person by cause: in doubt, in conflict, returned, failed or rejected.

        And those whose payouts contradict themselves, which are not final.

        Args:
            most: show so many rows in all, each cause its first; `.count` and `.sums` have all.

        `for cause in batch.causes():` gives each `Cause`, the most urgent first: its `outcome`,
        `reason`, `count`, `sums` and first `rows`.
        """
        return self._bridge.call(self._async.causes, most)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        states: Collection[str] | None = None,
        accounts: bool = False,
        overwrite: bool = False,
    ) -> ExportReport:
        """Write the rows and their outcomes to a file, which appears once it is complete (mode 0600).

        Args:
            path: ends in .csv, .jsonl or .xlsx. Amounts are exact text; what a spreadsheet
                would take for a formula has an apostrophe in front. A workbook has sheets of its own for the
                money by outcome, of all rows, and for the latest certificate; its texts are never formulas,
                and its amounts of at most 15 digits are numbers.
            states: only rows of these outcomes, words of `Outcome` or `created`; None for all.
            accounts: with the instruments' and customers' data, which are masked otherwise.
            overwrite: replace an existing file; otherwise it is refused, as it may be an earlier result.

        Raises:
            BulkError: another suffix, an existing file, or a path that is the ledger's or input's own.
            ImportError: the extra of Excel is not installed.
            OSError: the file cannot be written.
        """
        return self._bridge.call(
            self._async.export, path, states=states, accounts=accounts, overwrite=overwrite,
        )  # fmt: skip
