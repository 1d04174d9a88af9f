"""The figures of a batch, and its reports: of an import, of a moment, of how a run ended."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import attrs

from ._activity import Activity
from ._ledger.operators import ListedWorker
from ._protocol import exit_codes, outcomes
from ._protocol.exit_codes import Stop
from ._protocol.outcomes import EXACT, OPEN, ExtraTotals, RowTotals, brief, counts_of, sums_of, sums_text
from ._protocol.records import Header, InputDifference
from ._protocol.run_figures import RunSeries, SpeedFigures


@attrs.frozen
class BatchFigures:
    """The figures of a batch, as of the last commit, and its present activity.

    `asked` is `not_started`, `cancelled`, `rejected`, `under_way`, `in_doubt`, `conflict` and `created`
    together; `created` is `not_final`, `arrived`, `failed` and `returned` together. For these see `Outcome`.
    Beside the rows, `moved_in_conflict` and `in_excess` count payouts of the batch that stand for no row, and
    arrived or may still arrive, as the latest whole reading of the list has shown.
    """

    counts: Mapping[str, int] = attrs.field(repr=brief)
    """{each of these words: its rows, or its payouts}."""
    sums: Mapping[str, Mapping[str, Decimal]] = attrs.field(repr=brief)
    """{currency: {each of these words: its sum, major units}}, exact."""
    activity: Activity | None = attrs.field(default=None, kw_only=True, repr=False)
    """The present activity; None when nothing is being done, and in the report of a run."""
    speed: SpeedFigures | None = attrs.field(default=None, kw_only=True, repr=False)
    """What came back, and how fast; None where it was not read."""
    contradicting: int = attrs.field(default=0, kw_only=True, repr=False)
    """Payouts that contradict themselves, which are not final; 0 where the causes were not read."""

    @property
    def rows(self) -> int:
        """All rows of the batch."""
        return self.counts["asked"]

    @property
    def done(self) -> int:
        """Rows that are decided."""
        return self.rows - sum(self.counts[outcome] for outcome in OPEN)

    @property
    def over(self) -> int:
        """Payouts that are final."""
        return self.counts["created"] - self.counts["not_final"]

    @property
    def is_untouched(self) -> bool:
        """True if no row was ever sent."""
        return self.rows == self.counts["not_started"] + self.counts["cancelled"]

    @property
    def is_followed(self) -> bool:
        """True while its payouts are followed until they are final."""
        return self.activity is not None and self.activity.doing == "following"

    @property
    def seconds_left(self) -> float | None:
        """Seconds until every open row is decided, if as many are created as so far; None if unknown."""
        rows = self.counts["not_started"] + self.counts["under_way"]
        share = self.counts["created"] / (self.done or 1)
        pace = self.speed.per_second if self.speed else 0.0
        return rows * share / pace if rows and share and pace else None

    @property
    def payable(self) -> dict[str, Decimal]:
        """{currency: the sum to pay}: what is asked without the cancelled rows."""
        sums = {code: EXACT.subtract(each["asked"], each["cancelled"]) for code, each in self.sums.items()}
        return {currency: amount for currency, amount in sums.items() if amount}

    def facts(self) -> dict[str, Any]:
        """The same as JSON values, amounts as text."""
        return {
            "rows": dict(self.counts),
            "done": self.done,
            **({} if self.activity is None else attrs.asdict(self.activity)),
            **({} if self.speed is None else {"answers": self.speed.facts()}),
            "sums": sums_text(self.sums),
        }


@attrs.frozen
class BatchReport(BatchFigures):
    """The state of a batch after a run, or now."""

    batch_id: str
    totals: Mapping[str, Decimal] = attrs.field(repr=brief)
    """{currency: the sum of all rows, major units}, cancelled ones included."""
    complete: bool
    """True if nothing is left to do: every row created, rejected, in conflict or cancelled."""
    balanced: bool
    """True if the rows and amounts of all outcomes are those that were imported."""
    exit_code: int
    """0 every row created · 1 complete otherwise · 2 the service refused the key, or is not at this address ·
    3 rows in doubt · 75 stopped, can be resumed (`resumable` says when).

    1 also when payouts are known to have failed or returned, or stand for no row. When the payouts were
    followed, 0 says that each of them arrived, and 75 also that some are not final yet.
    """
    stopped: str | None = None
    """Why the work ended early; None when it did not."""
    resumable: str | None = None
    """`now`: run it again. `after_change`: it would end the same way, as `stopped` says, until a
    limit of the stop rules, the key or the address is another. None when nothing is left to do."""


def batch_figures_of(
    totals: RowTotals, extra: ExtraTotals | None = None, activity: Activity | None = None
) -> BatchFigures:
    """Make the figures of a ledger."""
    return BatchFigures(counts_of(totals, extra or {}), sums_of(totals, extra or {}), activity=activity)


def report_of(
    header: Header,
    totals: RowTotals,
    stopped: str | None = None,
    *,
    stop: Stop | None = None,
    followed: bool = False,
) -> BatchReport:
    """Make a ledger's report. `followed`: payouts that are not final yet leave it unfinished."""
    report = BatchReport(
        counts_of(totals, header.extra),
        sums_of(totals, header.extra),
        header.binding.batch_id,
        dict(header.totals),
        outcomes.is_complete(totals),
        outcomes.balances(totals, header.rows, header.totals),
        int(exit_codes.exit_code(totals, stop=stop, extra=bool(header.extra))),
        stopped,
    )
    return _ended(report, stop, followed=followed)


def _ended(report: BatchReport, stop: Stop | None, *, followed: bool) -> BatchReport:
    """Complete a report at the end of the work: a complete batch counts as not stopped."""
    if not report.complete or (followed and report.counts["not_final"]):
        code = int(exit_codes.stopped_code(stop)) if report.complete else report.exit_code
        return attrs.evolve(report, exit_code=code, resumable=exit_codes.resumable(stop))
    return attrs.evolve(report, stopped=None)


@attrs.frozen
class ImportReport:
    """The result of loading or previewing a batch's input."""

    batch_id: str
    rows: int
    """Rows of the batch."""
    totals: Mapping[str, Decimal] = attrs.field(repr=brief)
    """{currency: the sum of the rows' amounts, major units}, cancelled rows included."""
    is_new: bool
    """True if the rows were imported now, or would be by `load`; False when the ledger has them already."""
    skipped: int
    """Rows left out because of faults, when they were read now."""
    warnings: tuple[str, ...]
    """The first warnings about values that are allowed but doubtful."""
    corrected: int = 0
    """Rows whose content was replaced, because edits were accepted."""
    cancelled: int = 0
    """Rows that were cancelled, because edits were accepted."""
    differences: tuple[InputDifference, ...] = ()
    """The first rows that differ from the ledger's, in a preview."""
    differing: int = 0
    """The number of all differing rows."""
    input_totals: Mapping[str, Decimal] = attrs.field(
        default=attrs.Factory(lambda self: self.totals, takes_self=True), repr=brief
    )
    """{currency: the sum of the input's rows now}. Differs from `totals` when the input was edited since."""
    payable: Mapping[str, Decimal] = attrs.field(
        default=attrs.Factory(lambda self: self.totals, takes_self=True), repr=brief
    )
    """{currency: the sum to pay}: `totals` without the cancelled rows.

    Confirm this sum before paying.
    """


@attrs.frozen(kw_only=True)
class Snapshot:
    """A batch at one moment."""

    at: float = attrs.field(eq=False)
    """Seconds since 1970, on the client's clock; of a batch in a database on the database's."""
    header: Header
    """The batch, account and input that the ledger is bound to, and what was imported."""
    report: BatchReport
    """Counts, sums and, while this process works on the batch, its present activity."""
    series: RunSeries
    """The answers of all runs so far."""
    rule: str | None = None
    """Why the stop rules let no further row of a batch in a database be taken; None while they do."""
    workers: tuple[ListedWorker, ...] = attrs.field(default=(), eq=False)
    """The workers that hold rows of a batch in a database."""

    @property
    def speed(self) -> SpeedFigures:
        """How it is doing, in a few figures."""
        return SpeedFigures.of(self.series, self.at)
