# From payments_async/bulk/batch.py; change that, then run: python -m tools.mirror
"""A batch of payouts: load an input, run it, and run it again after any interruption.

    with PayoutBatch.open("june.ledger", client) as batch:
        batch.load("june.csv")
        report = batch.run()

Each row is paid at most once, even if the program is killed; none is lost, and every row in doubt is shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Self, Unpack

from payments_async.bulk._options import LoadOptions, ReadingOptions
from payments_async.bulk._report import BatchFigures, BatchReport
from payments_async.bulk.batch import AnyBatch as AsyncAnyBatch, PayoutBatch as AsyncPayoutBatch
from payments_async.params import Money
from payments_async.resources._signatures import implemented_by

from .._batch_bridge import BatchBridge
from ..client import Payments

if TYPE_CHECKING:
    from payments_async.bulk._export.archive import ArchiveReport
    from payments_async.bulk._export.causes import Cause
    from payments_async.bulk._export.export import ExportReport
    from payments_async.bulk._export.row_view import RowView
    from payments_async.bulk._loading.load import Input
    from payments_async.bulk._protocol.records import CheckReport, Header
    from payments_async.bulk._protocol.run_figures import RunSeries, RunTime
    from payments_async.bulk._reconcile.certificate import Certificate
    from payments_async.bulk._reconcile.retry_failed import RetryReport
    from payments_async.bulk._report import ImportReport, Snapshot


class AnyBatch:
    """What a batch in a file (`PayoutBatch`) and one in a database (`SharedBatch`) have in common."""

    def __init__(self, twin: AsyncAnyBatch, bridge: BatchBridge) -> None:
        """Use `open`."""
        self._async, self._bridge = twin, bridge

    def __enter__(self) -> Self:
        self._bridge.open()
        return self

    def __exit__(self, *_: object) -> None:
        self._bridge.close()

    def _load(self, source: Input, **options: Unpack[LoadOptions]) -> ImportReport:
        return self._bridge.call_with_rows(self._async.load, source, **options)

    @implemented_by(_load)
    def load(
        self, source: Input, *, batch_id: str | None = None, reference_prefix: str = ..., proofs: bool = ...,
        skip_invalid: bool = ..., rejects: str | os.PathLike[str] | None = None, strict_amounts: bool = ...,
        accept_edits: bool = ..., pay_again: bool = ...,
    ) -> ImportReport:  # fmt: skip
        """Import the rows to pay. If the ledger has an input already, check that it is the same.

        Args:
            source: a file (.csv, .jsonl, .ndjson, .parquet, .xlsx), a source of `bulk.sources`, a DataFrame
                (pandas, polars, DuckDB, pyarrow; extra `parquet`), or payouts (`PayoutRequest` or
                `(row_key, PayoutRequest)`) that can be read twice, such as a list.
            batch_id: the batch's name; by default the hash of the input. Every row's reference is made of it,
                so that the same batch is never paid twice, not even from another ledger. A live key needs a
                name for a new batch, unless every row has a reference of its own.
            reference_prefix: a prefix for every reference that is made.
            proofs: mark each payout with one metadata pair that shows whose it is; rows keep nine. Default
                True.
            skip_invalid: leave rows with faults out, instead of refusing the input.
            rejects: a file for the rows with faults, to be corrected (mode 0600), each with the reference
                that it has in this batch. The input is then read once more.
            strict_amounts: refuse amounts of more than 15 significant digits, instead of warning.
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
            InputPaidElsewhere: a ledger beside this one, or its database, has the input as another batch.
            LedgerError: see `bulk.ledger_errors`.
        """

    def _preview(self, source: Input, **options: Unpack[ReadingOptions]) -> ImportReport:
        return self._bridge.call_with_rows(self._async.preview, source, **options)

    @implemented_by(_preview)
    def preview(
        self, source: Input, *, batch_id: str | None = None, reference_prefix: str = ..., proofs: bool = ...,
        skip_invalid: bool = ..., rejects: str | os.PathLike[str] | None = None, strict_amounts: bool = ...,
    ) -> ImportReport:  # fmt: skip
        """Make the report that `load` would give: checks every row, imports none, sends none.

        It can be called before the batch is opened, and then makes no ledger: nothing is written but the
        `rejects` file when asked. Rows that a ledger has otherwise are in the report's `.differences`.

        Args:
            source: as for `load`.
            batch_id: the batch's name; by default the hash of the input. Every row's reference is made of it,
                so that the same batch is never paid twice, not even from another ledger. A live key needs a
                name for a new batch, unless every row has a reference of its own.
            reference_prefix: a prefix for every reference that is made.
            proofs: mark each payout with one metadata pair that shows whose it is; rows keep nine. Default
                True.
            skip_invalid: leave rows with faults out, instead of refusing the input.
            rejects: a file for the rows with faults, to be corrected (mode 0600), each with the reference
                that it has in this batch. The input is then read once more.
            strict_amounts: refuse amounts of more than 15 significant digits, instead of warning.

        Raises what `load` does, except LedgerOfAnotherInput and InputPaidElsewhere: the report shows these.
        """

    def run(
        self,
        on_progress: Callable[[BatchFigures], object] | None = None,
        *,
        max_amount: Money | None = None,
        max_rows: int | None = None,
        max_failure_rate: float | None = None,
        concurrency: int = 192,
        patience: float = 3600.0,
        drain: float = 30.0,
        wait_final: float | None = None,
    ) -> BatchReport:
        """Pay: first rows that an earlier run left unfinished, then new ones, then resolve those in doubt.

        Cancelled or killed, it can be run again at any time; nothing is paid twice (Endpoints,
        POST /payouts).

        Args:
            on_progress: called after each commit, and at least every five seconds with what is being done
                (`BatchFigures.activity`), on the event loop's thread; it cannot break the run.
            max_amount: take no row that would bring a currency over this, in major units.
            max_rows: take no more rows than this, those of earlier runs included.
            max_failure_rate: 0 to 1; take no more rows once more than this share is rejected or in conflict.
            concurrency: rows sent at a time. It bounds the speed: for R payouts a second (Limits) and
                answers that take S seconds, R x S are under way: 192 are enough for 1,000 a second at 0.19 s.
                Keep it below the client's `max_connections` (256), so that other calls find one too.
            patience: seconds, once every other row is decided, in which rows in doubt are posted again and
                searched for.
            drain: seconds in which rows being sent may finish after `stop`, or Ctrl-C in a blocking program.
            wait_final: `follow` the payouts afterwards for so many seconds; None to leave that for later.

        Raises:
            LedgerOfAnotherKey: the key was replaced, and the new one does not see the ledger's payouts.
            LedgerMismatch: begun in another environment or at another address.
            OutcomesUnrecorded: the ledger cannot record outcomes; the next run finds them again.
            LedgerError: see `bulk.ledger_errors`.
        """
        return self._bridge.call_and_drain(
            drain,
            self._async.run,
            on_progress,
            max_amount=max_amount,
            max_rows=max_rows,
            max_failure_rate=max_failure_rate,
            concurrency=concurrency,
            patience=patience,
            drain=drain,
            wait_final=wait_final,
        )

    def follow(
        self, seconds: float, on_progress: Callable[[BatchFigures], object] | None = None
    ) -> BatchReport:
        """Copy the service's statuses of created payouts to the ledger, until all are final or time is up.

        However many there are, the list is scanned for all of them together, never more often than every
        five seconds (Limits, Polling guidance). Stopped, cancelled or killed, it can be called again: what
        is final in the ledger is not read again. The rows that failed are for `retry_failed`; the report's
        `stopped` says why not all are final, if so.

        Args:
            seconds: the longest time to follow.
            on_progress: called after each page of the list, and at least every five seconds; it cannot
                break the following.

        Raises:
            LedgerOfAnotherKey: the key was replaced, and the new one does not see the ledger's payouts.
            LedgerMismatch: begun in another environment or at another address.
            LedgerError: see `bulk.ledger_errors`.
            PaymentsError: a replaced key could not be checked.
        """
        return self._bridge.call(self._async.follow, seconds, on_progress)

    def reconcile(self, on_progress: Callable[[BatchFigures], object] | None = None) -> Certificate:
        """Read the service's list once: update the ledger from it, and certify the batch. Sends no payout.

        Rows in flight or in doubt whose payout the list shows are settled: created, or in conflict. Others
        stay as they are. Statuses are copied, rows get later payouts that a lost ledger had begun, and the
        ledger is checked and compared with the list row by row.

        Args:
            on_progress: called after each page of the list, and at least every five seconds; it cannot
                break the work.

        Raises:
            LedgerMismatch: see `run`.
            LedgerError: see `bulk.ledger_errors`.
            PaymentsError: the list cannot be read whole, to its end; all facts read until then are recorded.
        """
        return self._bridge.call(self._async.reconcile, on_progress)

    def retry_failed(
        self, *, rows: Collection[int] | None = None, rejected: bool = False, dry_run: bool = False
    ) -> RetryReport:
        """Make rows new again whose payouts have finally failed, or which were refused; `run` pays them.

        The whole list is read now, and a row is made new only when that reading says that its payout, and
        each earlier one, has finally failed. The new payout has a reference of its own: the old one's with
        `~g1`, then `~g2` and so on (Endpoints, POST /payouts: a reference is used once). Rows in doubt are
        never made new again.

        Args:
            rows: only these, by number; None for all that have failed. One whose payout had arrived and was
                returned is made new only by its number.
            rejected: the rejected rows instead, once the cause was corrected at the service:
                same reference, same body, and an idempotency key that they never had (Limits, Idempotency).
                For another body give `load` the corrected input, with `accept_edits`.
            dry_run: only report which rows.

        Raises:
            BulkError: a row that was asked for is not there, or in another state; nothing was changed.
            LedgerMismatch: see `run`.
            LedgerError: see `bulk.ledger_errors`.
            PaymentsError: the list cannot be read to its end; no row was made new.
        """
        return self._bridge.call(self._async.retry_failed, rows=rows, rejected=rejected, dry_run=dry_run)

    def stop(self, reason: str = "stopped") -> None:
        """End the running work early. A run finishes its rows and takes no new ones; it can be run again.

        Call this from any thread, from a signal handler for instance.
        """
        self._bridge.call_soon(self._async.stop, reason)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        states: Collection[str] | None = None,
        accounts: bool = False,
        overwrite: bool = False,
        certificate: str | os.PathLike[str] | None = None,
    ) -> ExportReport:
        """Write the rows and their outcomes to a file, which appears once it is complete (mode 0600).

        Args:
            path: ends in .csv, .json, .jsonl, .parquet or .xlsx. Amounts are exact text; what a spreadsheet
                would take for a formula has an apostrophe in front. A workbook has sheets of its own for the
                money by outcome, of all rows, and for the certificate; its texts are never formulas, and its
                amounts of at most 15 digits are numbers.
            states: only rows of these outcomes, words of `Outcome` or `created`; None for all.
            accounts: with the instruments' and customers' data, which are masked otherwise.
            overwrite: replace an existing file; otherwise it is refused, as it may be an earlier result.
            certificate: the file that the commands `reconcile` and `run` write, for a workbook. None for the
                one that the last `reconcile` left in the database; a ledger in a file keeps none.

        Raises:
            BulkError: another suffix, an existing file, a path that is the ledger's or input's own, or a
                certificate that cannot be read, or is of another batch.
            ImportError: the extra of Parquet, or of Excel, is not installed.
            OSError: the file cannot be written.
        """
        return self._bridge.call(
            self._async.export,
            path,
            states=states,
            accounts=accounts,
            overwrite=overwrite,
            certificate=certificate,
        )

    def archive(
        self,
        path: str | os.PathLike[str],
        *,
        accounts: bool = False,
        certificate: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> ArchiveReport:
        """Write all that the ledger knows of a closed batch to a Parquet file, which `check_archive` checks.

        It was checked like that before it appears (mode 0600).

        Args:
            path: ends in .parquet. It has one row for each payout; amounts are exact text.
            accounts: with the bodies that were sent, which have the account data, and with all plain hashes.
                Otherwise keyed hashes stand for them, whose key is in the ledger alone.
            certificate: the file that the commands `reconcile` and `run` write, to be put into it; of the
                batch as it is now. None for the one that the last `reconcile` left in the database, if it
                is; a ledger in a file keeps none.
            overwrite: replace an existing file; otherwise it is refused, as it may be an earlier result.

        Raises:
            LedgerRefused: the batch is not closed, or was changed meanwhile.
            LedgerDamaged: the ledger is not as it was written.
            BulkError: another suffix, an existing file, the ledger's or input's own, or a certificate
                that cannot be read, or is of another batch or of an earlier state of it.
            ImportError: Parquet's extra is not installed.
            OSError: the file cannot be written.
        """
        return self._bridge.call(
            self._async.archive,
            path,
            accounts=accounts,
            certificate=certificate,
            overwrite=overwrite,
        )

    def discard(self) -> None:
        """Discard what was loaded: the ledger is removed when the batch is left. Only before the first `run`.

        For a batch that is cancelled before anything was sent: the same rows, edited or under another
        name, can then be loaded as new. A ledger that holds no batch when it is left needs no such call.

        Raises:
            LedgerRefused: a row was sent, or cancelled: the ledger is the record of that.
        """
        return self._bridge.call(self._async.discard)

    def check(self) -> CheckReport:
        """Check all of the ledger: its structure, its chain, every row and sum.

        A few seconds for 100,000 rows; the service is not asked. What is wrong is in `.findings`.
        """
        return self._bridge.call(self._async.check)

    def status(self) -> BatchReport:
        """Make the batch's report, as of the last commit, with the present activity of this process.

        Raises LedgerMissing before anything was loaded.
        What other processes have changed in a database since is not in it: see `refresh`.
        """
        return self._async.status()

    def refresh(self) -> BatchReport:
        """Read the figures anew, as other processes may have changed them, and make the batch's report.

        Raises LedgerMissing before anything was loaded.
        """
        return self._bridge.call(self._async.refresh)

    def snapshot(self) -> Snapshot:
        """Read what a reader shows of the batch, as of one moment: figures, answers, speed, workers.

        Of a batch in a database it is what all processes have recorded until now. The rows that need a
        person take longer to read: see `causes`.

        Raises LedgerMissing before anything was loaded.
        """
        return self._bridge.call(self._async.snapshot)

    def header(self) -> Header:
        """Show the batch, account and input that the ledger is bound to, and what was imported.

        Raises LedgerMissing before anything was loaded.
        """
        return self._async.header()

    def now(self) -> float:
        """Read the clock of the batch's times, in seconds since 1970: the client's, or the database's."""
        return self._async.now()

    def series(self) -> RunSeries:
        """Read how the runs of this batch went: answers second by second, and a histogram of answer times.

        During a run it has all up to this moment; of a batch in a database, what all workers have recorded.
        It is bounded: after an hour of seconds its buckets become wider.
        """
        return self._bridge.call(self._async.series)

    def run_times(self) -> tuple[RunTime, ...]:
        """Read when each run was at work that sent a row, the last one at the end.

        Reads all entries of the ledger. Of a batch in a database it is not known, and empty.
        """
        return self._bridge.call(self._async.run_times)

    def row(self, name: str | int) -> RowView | None:
        """Read one row: attempts, times, and each status of its payouts, account data masked.

        None when there is none. Statuses are read from the ledger's entries: those of a file with a million
        rows take a second.

        Args:
            name: the row's key, a reference that it has or had, or its number in the input; an int is the
                number alone.
        """
        return self._bridge.call(self._async.row, name)

    def causes(self, most: int = 50) -> tuple[Cause, ...]:
        """Group the rows that need a person by cause: in doubt, in conflict, returned, failed or rejected.

        And those whose payouts contradict themselves, which are not final. Reads all these rows, a page at a
        time: 100,000 of them take some 1.5 seconds.

        Args:
            most: show so many rows in all, each cause its first; `.count` and `.sums` have all.

        `for cause in batch.causes():` gives each `Cause`, the most urgent first: its `outcome`,
        `reason`, `count`, `sums` and first `rows`.
        """
        return self._bridge.call(self._async.causes, most)


class PayoutBatch(AnyBatch):
    """One batch in a file, which records every row: `with PayoutBatch.open(path, client)`."""

    _async: AsyncPayoutBatch

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        client: Payments | None = None,
        *,
        create: bool = True,
        batch_id: str | None = None,
    ) -> Self:
        """A batch whose ledger, a file, is opened and locked by `with`.

        Args:
            path: the ledger, a file on a local disk, made (mode 0600) when it is not there.
            client: pays; its rate limits pace the batch, behind interactive calls. It stays open. Without a
                client the batch can only be read: methods that need the service raise BulkError.
            create: whether a missing ledger is made; never without a client.
            batch_id: the batch's name. A file with another batch is refused; `load` gives it to a new one.

        Raises ImportError, with what to install, without the extra. The address of a database, which is for
        `SharedBatch.open`, is refused by `with`.
        """
        twin = AsyncPayoutBatch.open(
            path,
            None if client is None else client._async,
            create=create,
            batch_id=batch_id,
        )
        return cls(twin, BatchBridge(twin, None if client is None else client._bridge))
