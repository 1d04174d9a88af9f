"""A batch of payouts: load an input, run it, and run it again after whatever happened.

    async with PayoutBatch.open("june.ledger", client) as batch:
        await batch.load("june.csv")
        report = await batch.run()

Each row is paid at most once, whatever dies and whenever; none is lost, and what nobody can tell is shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from ..client import AsyncPayments
from ..params import Money
from . import _options, _placing
from ._report import BatchReport, Progress, report_of
from ._service import Service
from ._session import Session
from ._stopping import Stopping
from .errors import BulkError

if TYPE_CHECKING:
    from ._certificate import Certificate
    from ._loading import ImportReport, Input
    from .ledger import Ledger


class PayoutBatch:
    """One batch and its ledger, which remembers every row: `async with PayoutBatch.open(path, client)`."""

    def __init__(
        self, path: str | os.PathLike[str], client: AsyncPayments | None = None, *, create: bool = True
    ) -> None:
        """Use `open`."""
        self._session = Session(path, client, create=create)
        self._stopping: Stopping | None = None

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], client: AsyncPayments | None = None, *, create: bool = True
    ) -> Self:
        """A batch whose ledger is opened, and locked, by `async with`.

        Args:
            path: the ledger: a file on a local disk, made (mode 0600) when it is not there.
            client: pays; its rate limits pace the batch, behind interactive calls. It stays open. Without
                one the batch is there to be looked at: what needs the service raises BulkError.
            create: whether a missing ledger is made; never without a client.
        """
        return cls(path, client, create=create)

    async def __aenter__(self) -> Self:
        await self._session.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    @property
    def _ledger(self) -> Ledger:
        return self._session.ledger

    @property
    def _service(self) -> Service:
        return self._session.service

    async def load(
        self,
        source: Input,
        *,
        batch_id: str | None = None,
        reference_prefix: str = "",
        proofs: bool = True,
        skip_invalid: bool = False,
        rejects: str | os.PathLike[str] | None = None,
        strict_amounts: bool = False,
    ) -> ImportReport:
        """Import the rows to pay; of an input that the ledger has already, see that it is the same.

        Args:
            source: a file (.csv, .jsonl, .ndjson, .parquet), a source of `bulk.sources`, or payouts
                (`PayoutRequest` or `(row_key, PayoutRequest)`) that can be read twice, such as a list.
            batch_id: names the batch; else it is the hash of the input. Every row's reference is made of it,
                so that the same batch is never paid twice, not even from another ledger.
            reference_prefix: in front of every reference that is made.
            proofs: mark each payout with one metadata pair that shows whose it is; rows keep nine.
            skip_invalid: leave rows with faults out, instead of refusing the input.
            rejects: where to write the rows with faults, to be corrected (mode 0600).
            strict_amounts: refuse amounts of more than 15 significant digits.

        Raises:
            SourceErrors: rows are at fault, all told together; nothing was imported.
            SourceUnreadable: the input cannot be read.
            LedgerOfAnotherInput: the ledger was begun with another input, or this one was edited.
            LedgerError: see `bulk.ledger_errors`.
        """
        from . import _loading

        wishes = _loading.Wishes(
            batch_id=batch_id,
            prefix=reference_prefix,
            proofs=proofs,
            skip_invalid=skip_invalid,
            rejects=rejects,
        )
        rows = _loading.source_of(source, strict_amounts=strict_amounts)
        return await _loading.load(self._ledger, self._service.place, rows, wishes)

    async def run(
        self,
        on_progress: Callable[[Progress], object] | None = None,
        *,
        max_amount: Money | None = None,
        max_rows: int | None = None,
        max_failure_rate: float | None = None,
        concurrency: int = 64,
        patience: float = 3600.0,
        drain: float = 30.0,
    ) -> BatchReport:
        """Pay: rows that an earlier run left unfinished first, then new ones, then what is in doubt.

        Cancelled or killed, it can be run again at any time; nothing is paid twice (Endpoints,
        POST /payouts).

        Args:
            on_progress: called after each commit; it cannot break the run.
            max_amount: take no row that would bring a currency over this, in major units.
            max_rows: take no more rows than this, those of earlier runs included.
            max_failure_rate: 0 to 1; take no more rows once more than this share has failed.
            concurrency: rows under way at a time.
            patience: seconds to wait at the end for rows in doubt of which only time can tell.
            drain: seconds that rows under way are given after `stop`.

        Raises:
            LedgerOfAnotherKey: the key was replaced, and the new one does not see the ledger's payouts.
            LedgerMismatch: begun in another environment or at another address.
            OutcomesUnrecorded: the ledger cannot record what was learned; the next run learns it again.
            LedgerError: see `bulk.ledger_errors`.
        """
        from ._engine import Engine, Pace

        if self._stopping is not None:
            raise BulkError("this batch is being run already")
        rules = _options.stop_rules(max_amount, max_rows, max_failure_rate, concurrency)
        pace = Pace(concurrency=concurrency, rules=rules, patience=patience, drain=drain)
        stopping = self._stopping = Stopping(self._service.runtime)
        try:
            await _placing.require_place(self._ledger, self._service)
            engine = Engine(
                self._ledger, self._service, pace, stopping, lambda: self._session.committed(on_progress)
            )
            await engine.run()
        finally:
            self._stopping = None
            self._session.tell(running=False)
        return report_of(self._ledger.header, self._ledger.totals, stopping.reason)

    def stop(self, reason: str = "stopped") -> None:
        """End the run under way: rows under way are finished, no new ones taken. It can be run again.

        To be called on the run's own event loop, by a signal handler for instance.
        """
        if self._stopping is not None:
            self._stopping.drain(reason)

    def status(self) -> BatchReport:
        """Where the batch stands, as of the last commit. Raises LedgerMissing before anything was loaded."""
        return report_of(self._ledger.header, self._ledger.totals)

    async def certify(self) -> Certificate:
        """Compare the ledger with the service's list and with itself, row by row, and say what was found.

        Raises PaymentsError when the list cannot be read to its end.
        """
        from ._certificate import certify

        return await certify(self._ledger, self._service)
