"""Reports of a batch: of an import, of progress, and of how a run ended. Counts and exact sums."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import attrs

from ._activity import Activity
from .protocol import stop_rules
from .protocol.ends import CreatedMoney, Ends
from .protocol.records import Header, InputDifference, StateTotals
from .protocol.row_state import RowState
from .protocol.stop_rules import Stop, Totals
from .protocol.totals import brief, payable


@attrs.frozen
class Progress:
    """The progress of a batch, as of the last commit, and its present activity."""

    counts: Mapping[RowState, int] = attrs.field(repr=brief)
    """Rows in each state."""
    sums: Mapping[str, Mapping[RowState, Decimal]] = attrs.field(repr=brief)
    """{currency: {state: the sum of its rows, major units}}, exact."""
    rows: int
    """All rows of the batch."""
    activity: Activity | None = attrs.field(default=None, kw_only=True, repr=False)
    """The present activity; None in a report, when nothing is being done."""


@attrs.frozen
class BatchReport(Progress):
    """The state of a batch after a run, or now."""

    batch_id: str
    totals: Mapping[str, Decimal] = attrs.field(repr=brief)
    """{currency: the sum of all rows, major units}, cancelled ones included."""
    complete: bool
    """True if nothing is left to do: every row created, rejected, in conflict or cancelled."""
    balanced: bool
    """True if every row, and every amount, is counted in exactly one state."""
    exit_code: int
    """0 every row created · 1 complete otherwise · 2 the service refused the key, or is not at this address ·
    3 rows in doubt · 75 stopped, can be resumed (`resumable` says when).

    1 also when payouts are known to have failed. When the payouts were followed, 0 says that each of them
    arrived, and 75 also that some are not final yet.
    """
    stopped: str | None = None
    """Why the work ended early; None when it did not."""
    finals: Mapping[str, int] = attrs.field(factory=dict, repr=brief)
    """{final status, as the service calls it: created rows whose payouts have it}, as last read."""
    failed: int = 0
    """Created rows whose payouts have finally failed: `retry_failed` is for these."""
    resumable: str | None = None
    """`now`: run it again. `after_change`: it would end the same way, as `stopped` says, until a
    limit of the stop rules, the key or the address is another. None when nothing is left to do."""

    money: Mapping[str, CreatedMoney] = attrs.field(factory=dict, kw_only=True, repr=False)
    """{currency: the sum of the created rows, and how much of it arrived}, as last read."""

    @property
    def payable(self) -> dict[str, Decimal]:
        """{currency: the sum to pay}: `totals` without the cancelled rows."""
        return payable(
            {(state, code): (1, total) for code, sums in self.sums.items() for state, total in sums.items()}
        )

    @property
    def arrived(self) -> int:
        """Created rows whose payouts have arrived."""
        return sum(self.finals.values()) - self.failed

    @property
    def awaited(self) -> int:
        """Created rows whose payouts are not known to be final."""
        return self.counts[RowState.CREATED] - sum(self.finals.values())


def sums_of(totals: StateTotals) -> dict[str, dict[RowState, Decimal]]:
    """Group a ledger's totals as {currency: {state: sum}}, without empty groups."""
    found: dict[str, dict[RowState, Decimal]] = {}
    for (state, currency), (rows, amount) in sorted(totals.items()):
        if rows:
            found.setdefault(currency, {})[state] = amount
    return found


def _counts(tally: Totals) -> dict[RowState, int]:
    return {state: tally.count(state) for state in RowState}


def progress_of(header: Header, totals: StateTotals, activity: Activity | None = None) -> Progress:
    """Make the progress of a ledger."""
    return Progress(_counts(Totals.of(totals)), sums_of(totals), header.rows, activity=activity)


def report_of(
    header: Header,
    totals: StateTotals,
    stopped: str | None = None,
    *,
    stop: Stop | None = None,
    ends: Ends | None = None,
    followed: bool = False,
) -> BatchReport:
    """Make a ledger's report. `followed`: payouts that are not final yet leave it unfinished."""
    tally, ends = Totals.of(totals), ends or Ends()
    report = BatchReport(
        _counts(tally),
        sums_of(totals),
        header.rows,
        header.binding.batch_id,
        dict(header.totals),
        stop_rules.is_complete(tally),
        stop_rules.balances(tally, header.rows, header.totals),
        stop_rules.exit_code(tally, stop=stop),
        stopped,
        ends.finals,
        ends.count(failed=True),
        money=ends.money(totals),
    )
    return _ended(report, stop, followed=followed)


def _ended(report: BatchReport, stop: Stop | None, *, followed: bool) -> BatchReport:
    """Complete a report at the end of the work: a complete batch counts as not stopped."""
    if not report.complete or (followed and report.awaited):
        code = stop_rules.stopped_code(stop) if report.complete else report.exit_code
        return attrs.evolve(report, exit_code=code, resumable=stop_rules.resumable(stop))
    code = stop_rules.SOME_REFUSED if report.failed else report.exit_code
    return attrs.evolve(report, exit_code=code, stopped=None)


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
