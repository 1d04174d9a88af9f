"""The figures of a batch, and its reports: of an import, of a moment, of how a run ended; its certificate."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import attrs

from ..models._masking import clean
from ._protocol import exit_codes, outcomes
from ._protocol.audit import Audit
from ._protocol.exit_codes import Stop
from ._protocol.outcomes import EXACT, OPEN, ExtraTotals, RowTotals, brief, counts_of, sums_of, sums_text
from ._protocol.records import Batch, InputDifference

if TYPE_CHECKING:
    from ._ledger.figures import Figures

Doing = Literal["paying", "waiting", "reading", "following", "reconciling"]
_HELD = 60.0  # seconds until a batch is asked again whether a person has acted


@attrs.frozen(kw_only=True)
class Activity:
    """The present activity of a batch."""

    doing: Doing
    """`paying`, `waiting` (every other row is decided), `reading` (the list, for these rows), `following` or
    `reconciling`."""
    why: str | None = None
    """What rows wait for, in words; None when none waits."""
    next_look: float | None = None
    """Seconds until the next post of a waiting row, or the next reading of the list; None while undecided."""
    listed: int = 0
    """Payouts that this work has read from the service's list."""


@attrs.frozen
class BatchFigures:
    """The figures of a batch, and its present activity.

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
    """The present activity of this process; None when nothing is being done, and in the report of a run."""
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
            "sums": sums_text(self.sums),
        }


@attrs.frozen
class BatchReport(BatchFigures):
    """The state of a batch after a run, or now: of all processes, and not of this one."""

    batch_id: str
    totals: Mapping[str, Decimal] = attrs.field(repr=brief)
    """{currency: the sum of all rows, major units}, cancelled ones included."""
    is_complete: bool
    """True if nothing is left to do: every row created, rejected, in conflict or cancelled."""
    is_balanced: bool
    """True if the rows and amounts of all outcomes are those that were imported."""
    exit_code: int
    """0 every row created and certified · 1 complete otherwise · 2 the service refused the key, or is not at
    this address · 3 rows in doubt · 75 stopped, or a turn is over (`next` says when to come again).

    1 also when payouts are known to have failed or returned, or stand for no row. When the payouts were
    followed, 0 says that each of them arrived, and 75 also that some are not final yet.
    """
    stopped: str | None = None
    """Why the work ended early; None when it did not."""
    resumable: str | None = None
    """`now`: run it again. `after_change`: it would end the same way, as `stopped` says, until the pause, the
    key or the address is another. None when nothing is left to do."""
    next: float | None = None
    """After a run, seconds until there is more to do: a minute where a person has to act first. None when
    nothing is left."""
    throttled: int = 0
    """How many 429s the run was given."""
    others: int = 0
    """Rows of an outbox that are of the other environment: in no figure; no run of this one sends them."""
    certificate: Certificate | None = attrs.field(default=None, repr=False)
    """What the service's list says of the batch, if it was read for that."""
    unreadable: tuple[str, ...] = ()
    """What is wrong with rows that cannot be read."""
    doubts: int = 0
    """Rows with a value that is allowed, and probably a slip, as the import has warned."""


def batch_figures_of(
    totals: RowTotals, extra: ExtraTotals | None = None, activity: Activity | None = None
) -> BatchFigures:
    """Make the figures of a ledger."""
    return BatchFigures(counts_of(totals, extra or {}), sums_of(totals, extra or {}), activity=activity)


@attrs.frozen
class Ended:
    """How a run ended."""

    figures: Figures
    stopped: str | None
    """Why it ended early; None when it did not."""
    stop: Stop
    next: float
    """Seconds until there is more to do, if anything is left."""
    throttled: int


def report_of(
    batch: Batch, found: Figures, ended: Ended | None = None, *, awaited: bool = False
) -> BatchReport:
    """Make a batch's report. `awaited`: payouts were followed, and some may still end: it is unfinished."""
    totals, extra = found.totals, found.extra
    stop, next_in = (None, None) if ended is None else (ended.stop, ended.next)
    report = BatchReport(
        counts_of(totals, extra),
        sums_of(totals, extra),
        batch.binding.batch_id,
        dict(batch.totals) if not batch.is_outbox else outcomes.by_currency(totals),
        outcomes.is_complete(totals),
        found.is_balanced,
        int(exit_codes.exit_code(totals, stop=stop, extra=bool(extra))),
        None if ended is None else ended.stopped,
        next=next_in,
        throttled=0 if ended is None else ended.throttled,
        others=found.others,
        unreadable=found.unreadable,
        doubts=batch.doubts,
    )
    if not report.is_complete or awaited:
        code = int(exit_codes.stopped_code(stop)) if report.is_complete else report.exit_code
        when = exit_codes.resumable(stop)
        seconds = next_in if next_in is None or when == "now" else _HELD
        return attrs.evolve(report, exit_code=code, resumable=when, next=seconds)
    return attrs.evolve(report, stopped=None, next=None)


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
    doubts: int = 0
    """Rows with such a value."""
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


@attrs.frozen
class Certificate:
    """The state of a batch, by the ledger and by the service's own list."""

    report: BatchReport
    environment: str
    """`live` or `sandbox`."""
    base_url: str
    key_fingerprint: str
    """A fingerprint that distinguishes API keys without revealing them."""
    input_hash: str
    at: float
    """When it was made, in seconds since 1970, by the ledger's database."""
    looked_at: float
    """When the reading of the list began."""
    since: float | None
    """From when on the list was read, by the service's time; None for all of it."""
    audit: Audit
    """The comparison of the ledger with the service's list."""
    guard: str = ""
    """The digest of the guard that the batch was run under last; "" for none."""

    @property
    def agrees(self) -> bool:
        """True if the list agrees with the ledger in every row.

        Not when an amount or a currency of a row was not compared: see `audit.fields`.
        """
        return not self.audit.findings

    @property
    def is_clean(self) -> bool:
        """True if it agrees, and the batch is complete and adds up."""
        return not self.findings

    @property
    def is_settled(self) -> bool:
        """True if it is clean, and every payout is final."""
        return self.is_clean and not self.report.counts["not_final"]

    @property
    def findings(self) -> tuple[str, ...]:
        """All that is wrong: with the batch, and in the list's audit."""
        found = (*shortcomings(self.report), *self.audit.findings)
        return tuple(map(clean, found))  # these may contain the service's own texts

    def to_json(self) -> str:
        """Encode the certificate as JSON text, amounts as text. It holds no account data."""
        report = self.report
        facts: dict[str, Any] = {
            "version": 2,
            "batch_id": report.batch_id,
            "environment": self.environment,
            "base_url": self.base_url,
            "key_fingerprint": self.key_fingerprint,
            "input_hash": self.input_hash,
            "at": self.at,
            "looked_at": self.looked_at,
            "since": self.since,
            "guard": self.guard or None,
            "agrees": self.agrees,
            "clean": self.is_clean,
            "settled": self.is_settled,
            "findings": list(self.findings),
            "rows": dict(report.counts),
            "doubts": report.doubts,
            "sums": sums_text(report.sums),
            "list": self.audit.facts(),
        }
        return json.dumps(facts, indent=2)


def shortcomings(report: BatchReport) -> Iterator[str]:
    """Find what a batch lacks, by its own counts and sums."""
    if not report.is_complete:
        open_rows = {outcome.replace("_", " "): report.counts[outcome] for outcome in OPEN}
        left = ", ".join(f"{rows:,} {words}" for words, rows in open_rows.items() if rows)
        yield f"the batch is not complete: of {report.rows:,} rows, {left}"
    if not report.is_balanced:
        yield "the batch does not add up: its rows or amounts by state are not those that were imported"
