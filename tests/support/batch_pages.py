"""Batches for tests of their page: figures of each state, and a source that gives them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from html import unescape
from typing import Any

import attrs

from payments_async.bulk import (
    AnswerTimes,
    BatchReport,
    Cause,
    Outcome,
    RowAttempt,
    RowAttempts,
    RowView,
    RunSeries,
    RunTime,
    SeriesBucket,
    Snapshot,
    StatusChange,
)
from payments_async.bulk._activity import Activity
from payments_async.bulk._page.feed import PageSource
from payments_async.bulk._page.server import BatchPageServer
from payments_async.bulk._page.source import PageFigures
from payments_async.bulk._protocol.outcomes import ExtraPayout
from payments_async.bulk._protocol.records import Binding, Header
from payments_async.bulk._protocol.run_figures import BOUNDS, time_class
from payments_async.bulk._report import report_of
from payments_async.bulk._texts.ledger_address import LedgerAddress

BEGAN = 1_782_854_366
BINDING = Binding("june-2026", "sandbox", "http://127.0.0.1:20999/v1", "c44c91f2a0d7", "ab" * 32, "")
LEDGER = LedgerAddress("june.csv.ledger")
EACH = Decimal("501.20")


def series(seconds: int = 22) -> RunSeries:
    """Payouts that become faster, and a second and a half in which the limit was closed."""
    buckets = []
    for n in range(seconds):
        is_closed = n in (9, 10)
        limit, closed = 1000.0, 0.75 if is_closed else 0.0
        created = 12 if is_closed else 80 + 14 * n + 17 * (n % 3)
        buckets.append(
            SeriesBucket(BEGAN + n, 1, created, int(n == 9), n % 4, int(n % 7 == 3), limit, closed)
        )
    counts = [0] * (len(BOUNDS) + 1)
    for milliseconds, number in ((48, 300), (70, 900), (110, 1900), (160, 1500), (240, 700), (420, 210)):
        counts[time_class(milliseconds / 1000)] += number
        counts[time_class(milliseconds / 850)] += number // 2
    counts[time_class(1.4)] += 40
    return RunSeries(tuple(buckets), AnswerTimes(tuple(counts), 37))


def row(number: int, **changes: Any) -> RowView:
    """A row that needs a look: its payout has failed after two answers 503."""
    attempts = tuple(
        RowAttempt(BEGAN + n * 2.5, answer, seconds)
        for n, (answer, seconds) in enumerate((("503", 0.09), ("timeout", 2.0), ("201", 0.31)))
    )
    facts: dict[str, Any] = {
        "number": number,
        "line": number + 1,
        "row_key": f"emp-{number:05}",
        "reference": f"nccuq4qomf2whi5tzrh7dyj{number:05}aukiqa",
        "amount": Decimal("1337.76"),
        "currency": "GHS",
        "method": "mtn_gh",
        "outcome": Outcome.FAILED,
        "payout_status": "failed",
        "payout_id": f"pyt_{number:024}",
        "generation": 0,
        "failure_code": "INSUFFICIENT_FUNDS",
        "failure_message": "The balance does not cover this payout.",
        "attempts": RowAttempts(3, attempts),
        "first_sent": BEGAN + 0.2,
        "last_sent": BEGAN + 5.1,
        "base_url": BINDING.base_url,
        "account": {"instrument": {"type": "phone", "phone_number": "***", "country": "GH"}, "customer": {}},
    }
    return RowView(**{**facts, **changes})


def in_doubt(number: int) -> RowView:
    """A row that had no clear answer."""
    return row(
        number,
        outcome=Outcome.IN_DOUBT,
        payout_status=None,
        payout_id=None,
        failure_code=None,
        failure_message=None,
        attempts=RowAttempts(9, row(1).attempts.first, row(1).attempts.first[:2]),
    )


def turned(number: int) -> RowView:
    """A row of an earlier ledger, whose payout arrived, turned and is shown with another amount."""
    return row(
        number,
        outcome=Outcome.RETURNED,
        payout_status="reversed",
        payout_money="GHS 1337.75",
        failure_code="reversed",
        failure_message=None,
        attempts=RowAttempts(),
        first_sent=None,
        last_sent=None,
        statuses=(
            StatusChange("pending", "po_7", BEGAN, BEGAN),
            StatusChange("completed", "po_7", BEGAN + 9.0, BEGAN + 3.0),
            StatusChange("reversed", "po_7", BEGAN + 86_400.0, None),
        ),
    )


def cause(
    outcome: Outcome, count: int, *rows: RowView, reason: str | None = None, currency: str = "GHS"
) -> Cause:
    """So many rows of 501.20 each that have one reason: that of the first row shown, unless given."""
    reason = rows[0].reason if rows and reason is None else reason
    return Cause(outcome, reason, count, {currency: count * EACH}, rows)


def report(
    rows: dict[str, int], *, currencies: int = 1, in_excess: int = 0, moved_in_conflict: int = 0, **more: Any
) -> BatchReport:
    """A report with so many rows of each outcome, and extra payouts: 501.20 for each."""
    names = ["GHS", "XOF", "NGN", "KES", "ZMW", "RWF"][:currencies]
    totals = {(Outcome(word), names[0]): (number, number * EACH) for word, number in rows.items()}
    asked = sum(rows.values())
    payouts = {ExtraPayout.IN_EXCESS: in_excess, ExtraPayout.MOVED_IN_CONFLICT: moved_in_conflict}
    extra = {(word, names[0]): (number, number * EACH) for word, number in payouts.items() if number}
    header = Header(BINDING, float(BEGAN), "0", 1, asked, {names[0]: asked * EACH}, extra)
    plain = report_of(header, totals)
    return attrs.evolve(plain, sums=dict.fromkeys(names, plain.sums[names[0]]), **more)


def snapshot(report: BatchReport | None = None, series: RunSeries | None = None, **facts: Any) -> PageFigures:
    """The figures of a batch; without a report it is the file that is still read."""
    at, batch = facts.pop("at", BEGAN + 22.0), None
    if report is not None:
        header = Header(BINDING, float(BEGAN), "0", 1, 12_000, {})
        batch = Snapshot(at=at, header=header, report=report, series=series or RunSeries())
    default = {"ledger": LEDGER, "phase": "working", "name": "june.csv", "pid": 11300}
    return PageFigures(at=at, batch=batch, **{**default, **facts})


def changed(now: PageFigures, **figures: Any) -> PageFigures:
    """The same with another report or series."""
    assert now.batch is not None
    return attrs.evolve(now, batch=attrs.evolve(now.batch, **figures))


def certificate(
    report: BatchReport, *findings: str, turns: Sequence[str] = (), rounded: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The content of a certificate's file."""
    created = report.counts["created"]
    return {
        "version": 1,
        **{name: getattr(BINDING, name) for name in ("batch_id", "environment", "base_url")},
        "key_fingerprint": BINDING.key_fingerprint,
        "input_hash": BINDING.input_hash,
        "at": BEGAN + 60.0,
        "looked_at": BEGAN + 59.0,
        "agrees": not findings,
        "clean": not findings,
        "settled": not findings and not report.counts["not_final"],
        "findings": list(findings),
        "rows": dict(report.counts),
        "sums": {
            currency: {state: f"{amount:f}" for state, amount in parts.items()}
            for currency, parts in report.sums.items()
        },
        "ledger": {"rows": report.rows, "entries": 412, "head": "5e" * 32, "findings": []},
        "list": {
            "seen": created,
            "missing": 0,
            "differing": len(findings),
            "uncompared": 0,
            "fields": {
                "amount": {"compared": created, "not_shown": 0},
                "currency": {"compared": created, "not_shown": 0},
                "metadata.payments_sdk": {"compared": created, "not_shown": 3},
            },
            "rounded": dict(rounded or {}),
            "findings": list(findings),
            "turns": list(turns),
        },
    }


RUNNING = {"arrived": 5120, "failed": 59, "not_final": 402, "under_way": 96, "not_started": 6323}
UNPAID: dict[str, Any] = {"payout_status": None, "payout_id": None}
UNCLEAR = "completed with failed_at: the service contradicts itself"
INVALID = {"failure_code": "HTTP 422", "failure_message": "The given data was invalid."}


def causes() -> tuple[Cause, ...]:
    """Rows of each outcome that needs a person."""
    taken = {"failure_code": "HTTP 409", "failure_message": "The reference belongs to another payout."}
    once = RowAttempts(1, (RowAttempt(BEGAN + 3.0, "422", 0.08),))
    conflict = row(23, outcome=Outcome.CONFLICT, **UNPAID, **taken)
    returned = row(61, outcome=Outcome.RETURNED, payout_status="reversed", attempts=RowAttempts())
    unclear = row(12, outcome=Outcome.NOT_FINAL, payout_status="completed", attempts=RowAttempts())
    no_reason = {"failure_code": None, "failure_message": None}
    rejected = [row(n, outcome=Outcome.REJECTED, attempts=once, **UNPAID, **INVALID) for n in (7, 8, 9)]
    return (
        cause(Outcome.IN_DOUBT, 2, in_doubt(17), in_doubt(18)),
        cause(Outcome.CONFLICT, 2, conflict),
        cause(Outcome.NOT_FINAL, 1, attrs.evolve(unclear, failure_code=None, failure_message=UNCLEAR)),
        cause(Outcome.RETURNED, 1, attrs.evolve(returned, **no_reason)),
        cause(Outcome.FAILED, 45, row(41), row(107)),
        cause(Outcome.FAILED, 5, row(55, failure_code="RECIPIENT_ERROR", failure_message=None)),
        cause(Outcome.REJECTED, 40, *rejected),
    )


def of(*outcomes: str) -> dict[str, Any]:
    """The causes of these outcomes, after one run."""
    mine = tuple(each for each in causes() if each.outcome in outcomes)
    runs = (RunTime(BEGAN - 0.5, BEGAN + 22.0),)
    return {"series": series(), "runs": runs, "causes": mine, "causes_at": BEGAN + 21.0}


def resumed() -> dict[str, Any]:
    """Two runs before the last one, of which the first was killed."""
    gaps = ((BEGAN - 800, 12, True), (BEGAN - 77, 30, False))
    buckets = [SeriesBucket(at + n, 1, 60 + 9 * n) for at, seconds, _ in gaps for n in range(seconds)]
    runs = [RunTime(float(at), at + seconds - 0.5, killed) for at, seconds, killed in gaps]
    found = of("failed")
    whole = RunSeries((*buckets, *found["series"].buckets), found["series"].times)
    return {**found, "series": whole, "runs": (*runs, *found["runs"])}


def states() -> dict[str, PageFigures]:
    """Every state of the page by name."""
    running = report(RUNNING, activity=Activity(doing="paying"))
    waits = Activity(
        doing="waiting",
        waiting=2,
        why="2 had no clear answer and will be posted again, unchanged",
        next_look=12.0,
    )
    follows = report({"arrived": 11000, "not_final": 1000}, activity=Activity(doing="following", listed=400))
    waiting = report({"arrived": 11000, "not_final": 998, "in_doubt": 2}, activity=waits)
    done = report({"arrived": 12000})
    created = report({"not_final": 12000})
    failed = report({"arrived": 11900, "failed": 50, "rejected": 40, "conflict": 2, "cancelled": 8})
    returned = report({"arrived": 11999, "returned": 1})
    excess = report({"arrived": 12000}, in_excess=2)
    conflict = report({"arrived": 11998, "conflict": 2}, moved_in_conflict=1)
    rejected = report({"not_final": 11960, "rejected": 40})
    unclear = report({"arrived": 11999, "not_final": 1})
    turn = "row 61: po_61 had ended as completed, and the list shows reversed"
    paid_twice = "row 7: po_7, an earlier payout of it, is completed on the list"
    rounds = "row 3: po_3 is of GHS 501.19999999999999999, and GHS 501.20 was asked for"
    contradicts = f"row 12: po_12 is {UNCLEAR}"
    nothing = of()
    killed = RunTime(BEGAN - 0.5, BEGAN + 21.5, is_cut_off=True)
    cut_off = {**nothing, "runs": (killed,), "causes_at": BEGAN + 30.0}

    def ended(now: BatchReport, details: dict[str, Any], *findings: str, **more: Any) -> PageFigures:
        paper = certificate(now, *findings, **more)
        return snapshot(report=now, phase="ended", pid=None, certificate=paper, **details)

    def open_at_rest(now: BatchReport, details: dict[str, Any]) -> PageFigures:
        return snapshot(report=now, phase="ended", pid=None, **details)

    return {
        "empty": snapshot(phase="reading", pid=11300),
        "reading": snapshot(phase="reading", rows_read=7500),
        "starting": snapshot(report=report({"not_started": 12000})),
        "running": snapshot(report=running, **of("failed")),
        "resumed": snapshot(report=running, **resumed()),
        "currencies": snapshot(report=report(RUNNING, currencies=6), **nothing),
        "waiting": snapshot(report=waiting, **of("in_doubt")),
        "following": snapshot(report=follows, **nothing),
        "certifying": snapshot(report=done, phase="certifying", **nothing),
        "stopped": open_at_rest(report({"not_final": 700, "not_started": 500}), nothing),
        "killed": open_at_rest(report({"not_final": 700, "under_way": 96, "not_started": 404}), cut_off),
        "doubt": open_at_rest(report({"not_final": 1198, "in_doubt": 2}), of("in_doubt")),
        "complete": ended(done, nothing),
        "created": ended(created, nothing),
        "rejected": ended(rejected, of("rejected")),
        "failed": ended(failed, of("failed", "rejected", "conflict")),
        "returned": ended(returned, of("returned"), turns=[turn]),
        "excess": ended(excess, nothing, paid_twice, "in excess of what the rows ask for: 2 payouts"),
        "conflict": ended(conflict, of("conflict"), "rows in conflict: 2", "row 23: po_9 moved in conflict"),
        "unclear": ended(unclear, of("not_final"), contradicts),
        "unconfirmed": ended(done, nothing, "row 12: pyt_12 is not in the list", "row 40: shown differently"),
        "rounded": ended(done, nothing, rounds, rounded={"GHS": "-0.00000000000000001"}),
    }


def words_of(html: str) -> str:
    """The words of a page, without its head."""
    body = re.sub(r"(?s)<head>.*?</head>|<title[^>]*>.*?</title>", " ", html)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


@attrs.define(eq=False)
class GivenSource:
    """Gives the figures that a test sets."""

    now: PageFigures
    rows: dict[str, RowView] = attrs.field(factory=dict)
    is_polled: bool = False
    error: Exception | None = None
    readings: int = 0
    ledger: LedgerAddress = LEDGER

    async def snapshot(self) -> PageFigures:
        self.readings += 1
        if self.error:
            raise self.error
        return self.now

    async def row(self, name: str | int) -> RowView | None:
        if self.error:
            raise self.error
        return self.rows.get(str(name))


@asynccontextmanager
async def served(source: PageSource) -> AsyncIterator[BatchPageServer]:
    """The page's server on the running loop."""
    server = BatchPageServer(source)
    server.start()
    try:
        yield server
    finally:
        await asyncio.wait_for(server.close(), 300)
