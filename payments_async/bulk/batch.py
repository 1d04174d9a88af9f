"""A batch of payouts: load an input, and run it in any number of processes, again after any interruption.

    async with PayoutBatch.open("june.ledger", client, batch_id="june") as batch:
        await batch.load("june.csv")
        report = await batch.run()

Each row is paid at most once, whatever dies and whenever; none is lost, and every row in doubt is shown.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from decimal import Decimal
from typing import Final, Self

import attrs

from .._runtime import SYSTEM, Runtime
from ..client import AsyncPayments
from ..params import Money
from . import _options
from ._export.causes import Cause
from ._export.export import ExportReport
from ._export.row_view import RowView
from ._ledger import figures, loading, views
from ._ledger.database import DatabaseAddress, path_of
from ._ledger.ledger import Ledger
from ._loading.load import Input
from ._protocol import exit_codes
from ._protocol.answers import unread_code
from ._protocol.exit_codes import Exit
from ._protocol.records import Batch
from ._run.account import admit
from ._run.certificate import certify
from ._run.progress import repeated
from ._run.retry import RetryReport, retry_failed, retry_rejected
from ._run.run import Run, RunSettings
from ._run.service import Service
from ._run.stopping import Stopping
from .errors import BulkError, LedgerMissing
from .report import (
    Activity,
    BatchFigures,
    BatchReport,
    Certificate,
    ImportReport,
    batch_figures_of,
    report_of,
)

_YOUNG: Final = 60.0
"""Seconds for which a certificate is not made again: the processes of one run end with one."""
_NO_CLIENT: Final = "open the batch with a client: PayoutBatch.open(ledger, client)"


class PayoutBatch:
    """One batch in a ledger: `async with PayoutBatch.open(ledger, client, batch_id="june") as batch`."""

    def __init__(
        self, address: DatabaseAddress, service: Service | None, batch_id: str | None, *, create: bool
    ) -> None:
        """Use `PayoutBatch.open`."""
        self._address, self._service_now, self._name = address, service, batch_id
        self._create = create and service is not None
        self._ledger_now: Ledger | None = None
        self._stopping: Stopping | None = None
        self._stop_asked: str | None = None
        """Why the next run shall end, asked before it began: a signal may come while the input is loaded."""

    @classmethod
    def open(
        cls,
        ledger: str | os.PathLike[str],
        client: AsyncPayments | None = None,
        *,
        batch_id: str | None = None,
        create: bool = True,
        insecure_database: bool = False,
    ) -> Self:
        """A batch whose ledger is opened by `async with`. Any number of processes may do so at once.

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
        _options.require_batch_id(batch_id)
        address = DatabaseAddress(os.fspath(ledger), insecure_database)
        service = None if client is None else Service(client)
        return cls(address, service, _options.composed(batch_id), create=create)

    async def __aenter__(self) -> Self:
        self._ledger_now = await Ledger.open(self._address, self._runtime, self._name, create=self._create)
        return self

    async def __aexit__(self, *_: object) -> None:
        ledger, self._ledger_now = self._ledger, None
        await ledger.close()

    @property
    def _runtime(self) -> Runtime:
        return SYSTEM if self._service_now is None else self._service_now.runtime

    @property
    def _ledger(self) -> Ledger:
        if self._ledger_now is None:
            raise BulkError("the batch is not open: work with it inside its `with` block (`async with`)")
        return self._ledger_now

    @property
    def _service(self) -> Service:
        if self._service_now is None:
            raise BulkError(_NO_CLIENT)
        return self._service_now

    @property
    def batch_id(self) -> str:
        """The batch's name; "" before it has one."""
        return self._ledger.batch_id

    # Loading

    async def load(
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
        from ._loading.load import LoadSettings, load, name_of, source_of

        settings = LoadSettings(
            batch_id=name_of(self._ledger.batch_id or self._name, batch_id),
            skip_invalid=skip_invalid,
            rejects=rejects,
            doubts=doubts,
            accept_edits=accept_edits,
            pay_again=pay_again,
            guard=self._service.guard,
        )
        report = await load(self._ledger, self._service.account, source_of(source), settings)
        await self._record_guard()
        return report

    async def preview(
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

        Takes the arguments of `load`, but `accept_edits` and `pay_again`.

        Raises what `load` does, except LedgerOfAnotherInput and InputPaidElsewhere: the report shows these.
        """
        from ._loading.load import LoadSettings, name_of, preview, source_of

        service, rows = self._service_now, source_of(source)
        account = None if service is None else service.account
        settings = LoadSettings(
            batch_id=name_of(self._name, batch_id),
            skip_invalid=skip_invalid,
            rejects=rejects,
            doubts=doubts,
            guard=None if service is None else service.guard,
        )
        path, ledger = path_of(self._address.text), self._ledger_now
        async with AsyncExitStack() as opened:
            if ledger is None:
                with suppress(LedgerMissing):
                    ledger = await Ledger.open(self._address, self._runtime, self._name, create=False)
                    opened.push_async_callback(ledger.close)
            return await preview(path, ledger, account, rows, settings)

    # Running

    async def run(
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
        _options.require_count("concurrency", concurrency)
        for name, seconds in (("patience", patience), ("drain", drain)):
            _options.require_seconds(name, seconds, allows_none=True)
        for name, length in (("for_seconds", for_seconds), ("wait_final", wait_final)):
            if length is not None:
                _options.require_seconds(name, length)
        settings = RunSettings(
            concurrency=concurrency,
            patience=patience,
            drain=drain,
            for_seconds=for_seconds,
            wait_final=wait_final,
            follow=follow,
        )
        return await self._run(settings, on_progress)

    async def _run(
        self, settings: RunSettings, on_progress: Callable[[BatchFigures], object] | None
    ) -> BatchReport:
        ledger, service = self._ledger, self._service
        if self._stopping is not None:
            raise BulkError("the batch is being run already: open it once more to run it twice at once")
        self._stopping = Stopping(service.runtime)
        if self._stop_asked is not None:
            self.stop(self._stop_asked)
            self._stop_asked = None
        try:
            await self._begin_outbox(settings)
            await self._record_guard()
            run = Run(ledger, service, settings, self._stopping, on_progress)
            ended = await run.run()
        finally:
            self._stopping = None
        is_awaited = settings.wait_final is not None and (await figures.awaited(ledger)).count > 0
        report = report_of(ledger.known, ended.figures, ended, awaited=is_awaited)
        report = attrs.evolve(report, unreadable=(*run.sending.trouble, *report.unreadable))
        code, is_outbox = exit_codes.stopped_code(ended.stop), ledger.known.is_outbox
        if report.is_complete and code is Exit.USAGE:
            return _uncertified(report, ended.stopped or "", code)
        return await self._certified(report, run) if report.is_complete and not is_outbox else report

    async def _record_guard(self) -> None:
        """Record the guard of the client's key; another one than before voids the confirmed total."""
        await self._ledger.refresh()
        if self._ledger.known.guard != self._service.guard_digest:
            await self._ledger.change(guard=self._service.guard_digest, confirmed=None)

    async def _begin_outbox(self, settings: RunSettings) -> None:
        """An outbox has its line from the first run that follows it, or whose rows an app has added."""
        ledger, account = self._ledger, self._service.account
        if ledger.batch is None and ledger.batch_id and (settings.follow or await views.has_rows(ledger)):
            await loading.open_outbox(ledger, account.environment, account.base_url)
        if settings.follow and not ledger.known.is_outbox:
            raise BulkError(f"{ledger.label}: follow is for an outbox, and this batch is of a file")
        if ledger.known.is_outbox and account.environment == "live" and self._service.guard is None:
            raise BulkError(
                "an outbox has no total to confirm: with a live key give the client a guard, which bounds "
                "what may be paid (docs/guard.md)"
            )

    async def _certified(self, report: BatchReport, run: Run) -> BatchReport:
        """The report with the certificate's word, made now unless one fits these figures already."""
        from ..errors import PaymentsError

        ledger = self._ledger
        if (kept := ledger.known.certificate) is not None and _fits(ledger.known, report):
            return report if kept["clean"] else attrs.evolve(report, exit_code=max(report.exit_code, 1))
        run.progress.doing(Activity(doing="reconciling"))
        try:
            certificate = await certify(ledger, self._service, run.progress.tell)
        except PaymentsError as error:
            if isinstance(error, BulkError):
                raise
            told = f"every row is decided, and the list cannot be read for the certificate ({error})"
            return _uncertified(report, told, unread_code(error))
        now = certificate.report
        code = now.exit_code if certificate.is_clean else 1
        if report.exit_code == 75:  # followed, and not all are final
            code = 75
        return attrs.evolve(report, counts=now.counts, sums=now.sums, exit_code=code, certificate=certificate)

    def stop(self, reason: str = "stopped") -> None:
        """End the running work early: what has left finishes, the rest is given back. It can be run again.

        Called before a run, it ends the next one before that begins a row.
        Call this on the run's own event loop, from a signal handler for instance.
        """
        if self._stopping is None:
            self._stop_asked = reason
        else:
            self._stopping.drain(reason)

    async def reconcile(self, on_progress: Callable[[BatchFigures], object] | None = None) -> Certificate:
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
        ledger, service = self._ledger, self._service
        service.bind()
        await admit(ledger, service)

        def tell() -> None:
            if on_progress is not None:
                activity = Activity(doing="reconciling", listed=service.listed)
                on_progress(batch_figures_of(found.totals, found.extra, activity))

        found = await figures.figures(ledger, self._environment)
        with repeated(service.runtime, tell):
            return await certify(ledger, service, tell)

    async def retry_failed(
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
        ledger = self._ledger
        self._service.bind()
        await admit(ledger, self._service)
        if rejected:
            report = await retry_rejected(ledger, rows, environment=self._environment, dry_run=dry_run)
        else:
            report = await retry_failed(ledger, self._service, rows, dry_run=dry_run)
        if report.rows and not dry_run:
            await ledger.change(certificate=None)  # it is not of the payouts that are made now
        return report

    # An operator's decisions, which each process learns within five seconds

    async def pause(self, reason: str = "paused") -> None:
        """Send nothing more, in no process, until `resume`. The list is still read. Raises LedgerError."""
        self._ledger.known  # noqa: B018 - it is there
        await self._ledger.change(paused=reason[:500])

    async def resume(self) -> None:
        """Send again. Raises LedgerError."""
        self._ledger.known  # noqa: B018 - it is there
        await self._ledger.change(paused=None)

    async def cancel_rest(self) -> int:
        """Cancel each row whose every send is proven to have made nothing; how many. Raises LedgerError."""
        self._ledger.known  # noqa: B018 - it is there
        return await loading.cancel_rest(self._ledger, self._environment)

    async def limit(
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
        most, rows, rate = _options.limits(max_amount, max_rows, max_failure_rate)
        limits = {"--max-rows": rows, "--max-amount": most}
        reason = " and ".join(f"{name} {value}" for name, value in limits.items() if value is not None)
        if reason or rate is None:
            last = await loading.last_row(self._ledger, rows, most)
            await self._ledger.change(last_row=last, limit_reason=reason or None)
        if rate is not None or not reason:
            await self._ledger.change(max_failure_rate=rate)

    async def confirm(self, totals: Mapping[str, Money], by: str = "") -> None:
        """Say yes to the total of what was loaded, which a live key asks for before it pays.

        Args:
            totals: {currency: sum}, as `status().payable` has it.
            by: who says so, for the record.

        Raises BulkError where the totals are others, also by edits made meanwhile, and LedgerError.
        """
        report = await self.status()
        seen = self._ledger.known.binding.input_hash
        given = {code: Decimal(str(amount)) for code, amount in totals.items()}
        facts = {"by": by[:100], "totals": {code: str(amount) for code, amount in given.items()}}
        is_so = given == report.payable
        if not (is_so and await self._ledger.change(input_hash=seen, confirmed=json.dumps(facts))):
            raise BulkError("the totals are not those of the batch; nothing was confirmed")

    async def discard(self) -> None:
        """Delete a batch of which no row was ever sent or found, so that its rows can be loaded anew.

        Raises BulkError for any other, and LedgerError.
        """
        if not await loading.discard(self._ledger):
            raise BulkError("a row of the batch was sent: the ledger is the record of that")

    async def forget(self, before: datetime, *, dry_run: bool = False) -> int:
        """Delete the rows of a settled batch that were all decided before a moment; of an outbox, each such.

        The batch's line stays, with its input's hash, sums and certificate: its name and its input are
        refused from then on. Returns how many rows.

        Args:
            before: aware.
            dry_run: only count them.

        Raises BulkError for a batch whose latest certificate is not of all payouts' ends, and LedgerError.
        """
        if before.tzinfo is None:
            raise BulkError("before must be aware: which moment it is depends on the time zone")
        known = self._ledger.known
        if not known.is_outbox and not (known.certificate or {}).get("settled"):
            raise BulkError("the batch has no certificate that says that it is settled: run it again")
        return await loading.forget(self._ledger, before.timestamp(), dry_run=dry_run)

    # Looking

    async def batches(self) -> tuple[Batch, ...]:
        """Read the facts of all batches of this ledger, the newest first. Raises LedgerError."""
        return tuple(await self._ledger.all_batches())

    @property
    def _environment(self) -> str:
        """Of an outbox, whose rows count: that of the client's key, else of the key that ran it first."""
        known, service = self._ledger.known, self._service_now
        if not known.is_outbox:
            return ""
        return known.binding.environment if service is None else service.account.environment

    async def status(self) -> BatchReport:
        """Read the batch's figures, of all processes, and make its report. Raises LedgerError."""
        await self._ledger.refresh()
        found = await figures.figures(self._ledger, self._environment)
        return report_of(self._ledger.known, found)

    async def facts(self) -> Batch:
        """Read what is known of the batch as a whole. Raises LedgerMissing before anything was loaded."""
        await self._ledger.refresh()
        return self._ledger.known

    async def holders(self) -> list[str]:
        """The processes that have rows in hand now, as `host:process:…`. Raises LedgerError."""
        return await self._ledger.holders()

    async def pace(self) -> float:
        """Read how many rows were decided a second over the last minute. Raises LedgerError."""
        return await figures.pace(self._ledger)

    async def row(self, name: str | int) -> RowView | None:
        """Read one row: state, payout, times, and each status of its payouts, account data masked.

        None when there is none.

        Args:
            name: the row's key, a reference that it has or had, or its number in the input; an int is the
                number alone.
        """
        from ._export.row_view import row_view

        return await row_view(self._ledger, name)

    async def causes(self, most: int = 50) -> tuple[Cause, ...]:
        """Group the rows that need a person by cause: in doubt, in conflict, returned, failed or rejected.

        And those whose payouts contradict themselves, which are not final.

        Args:
            most: show so many rows in all, each cause its first; `.count` and `.sums` have all.

        `for cause in await batch.causes():` gives each `Cause`, the most urgent first: its `outcome`,
        `reason`, `count`, `sums` and first `rows`.
        """
        from ._export.causes import causes

        return await causes(self._ledger, most)

    async def export(
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
        from ._export.export import export

        return await export(self._ledger, path, states, accounts=accounts, overwrite=overwrite)


def _uncertified(report: BatchReport, stopped: str, code: Exit) -> BatchReport:
    """A complete batch of which the list could not be asked: never 0; rows that were not paid count more."""
    if code is not Exit.USAGE and report.exit_code:
        code = Exit(report.exit_code)
    when = {Exit.RESUMABLE: "now", Exit.USAGE: "after_change"}.get(code)
    told = report.stopped or stopped
    return attrs.evolve(
        report, exit_code=int(code), stopped=told, resumable=when, next=60.0 if when else None
    )


def _fits(known: Batch, report: BatchReport) -> bool:
    """Whether the latest certificate is of these figures, and young: another process has just made it."""
    facts, now = known.certificate or {}, report.facts()
    is_same = facts["rows"] == now["rows"] and facts["sums"] == now["sums"]
    return bool(is_same and 0.0 <= known.now - facts["at"] < _YOUNG)
