"""Batches for tests of their page: figures of each state, and a feed that gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from html import unescape
from typing import Any

import attrs

from payments_async.bulk import Activity, Batch, Cause, Outcome, RowView
from payments_async.bulk._ledger.figures import Figures
from payments_async.bulk._page import BatchPage as BatchPage
from payments_async.bulk._page import RowKeys as RowKeys
from payments_async.bulk._page import serve_page as serve_page
from payments_async.bulk._page import write_page as write_page
from payments_async.bulk._page.feed import BatchFeed, PageFigures
from payments_async.bulk._page.page import served as served
from payments_async.bulk._page.site import html_of
from payments_async.bulk._protocol.outcomes import ExtraPayout
from payments_async.bulk._protocol.records import Binding
from payments_async.bulk._texts.figures import with_causes
from payments_async.bulk._texts.ledger_address import LedgerAddress as LedgerAddress
from payments_async.bulk.report import BatchReport, report_of

BEGAN = 1_782_854_366
BINDING = Binding("june-2026", "sandbox", "http://127.0.0.1:20999/v1", "c44c91f2a0d7", "ab" * 32, "")
LEDGER = LedgerAddress("june.csv.ledger")
EACH = Decimal("501.20")
UNCLEAR = "completed with failed_at: the service contradicts itself"
RUNNING = {"arrived": 5120, "failed": 59, "not_final": 402, "under_way": 96, "not_started": 6323}
UNPAID: dict[str, Any] = {"payout_status": None, "payout_id": None}


def row(number: int, **changes: Any) -> RowView:
    """A row that needs a look: its payout has failed after three sends."""
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
        "payout_money": None,
        "generation": 0,
        "failure_code": "INSUFFICIENT_FUNDS",
        "failure_message": "The balance does not cover this payout.",
        "sends": 3,
        "first_sent": BEGAN + 0.2,
        "last_sent": BEGAN + 5.1,
        "sent_under": "0123456789abcdef",
        "decided_at": BEGAN + 6.0,
        "account": {"instrument": {"type": "phone", "phone_number": "***", "country": "GH"}, "customer": {}},
    }
    return RowView(**{**facts, **changes})


def in_doubt(number: int) -> RowView:
    no_reason = {"failure_code": None, "failure_message": None}
    return row(number, outcome=Outcome.IN_DOUBT, sends=9, **UNPAID, **no_reason)


def cause(outcome: Outcome, count: int, *rows: RowView, reason: str | None = None) -> Cause:
    """So many rows of 501.20 each that have one reason: that of the first row shown, unless given."""
    return Cause(outcome, reason or rows[0].reason, count, {"GHS": count * EACH}, rows)


def causes() -> tuple[Cause, ...]:
    taken = {"failure_code": "HTTP 409", "failure_message": "The reference belongs to another payout."}
    invalid = {"failure_code": "HTTP 422", "failure_message": "The given data was invalid."}
    no_reason = {"failure_code": None, "failure_message": None}
    unclear = row(12, outcome=Outcome.NOT_FINAL, payout_status="completed")
    rejected = [row(n, outcome=Outcome.REJECTED, sends=1, **UNPAID, **invalid) for n in (7, 8, 9)]
    return (
        cause(Outcome.IN_DOUBT, 2, in_doubt(17), in_doubt(18)),
        cause(Outcome.CONFLICT, 2, row(23, outcome=Outcome.CONFLICT, **UNPAID, **taken)),
        cause(Outcome.NOT_FINAL, 1, attrs.evolve(unclear, failure_code=None, failure_message=UNCLEAR)),
        cause(Outcome.RETURNED, 1, row(61, outcome=Outcome.RETURNED, payout_status="reversed", **no_reason)),
        cause(Outcome.FAILED, 45, row(41), row(107)),
        cause(Outcome.FAILED, 5, row(55, failure_code="RECIPIENT_ERROR", failure_message=None)),
        cause(Outcome.REJECTED, 40, *rejected),
    )


def figures(
    rows: Mapping[str, int],
    *causes: Cause,
    currencies: int = 1,
    in_excess: int = 0,
    moved_in_conflict: int = 0,
    pace: float = 310.0,
    doing: Activity | None = None,
    processes: int = 0,
    findings: Sequence[str] | None = None,
    at: float = BEGAN + 22.0,
    **batch: Any,
) -> PageFigures:
    """The figures of a batch of so many rows, of 501.20 each. `findings`: those of its certificate."""
    names = ["GHS", "XOF", "NGN", "KES", "ZMW", "RWF"][:currencies]
    totals = {(Outcome(word), names[0]): (number, number * EACH) for word, number in rows.items()}
    payouts = {ExtraPayout.IN_EXCESS: in_excess, ExtraPayout.MOVED_IN_CONFLICT: moved_in_conflict}
    extra = {(word, names[0]): (number, number * EACH) for word, number in payouts.items() if number}
    asked = sum(rows.values())
    known = Batch(BINDING, float(BEGAN), asked, {names[0]: asked * EACH})
    plain = report_of(known, Figures(float(BEGAN), totals, extra, is_balanced=True))
    report = attrs.evolve(plain, sums=dict.fromkeys(names, plain.sums[names[0]]))
    if findings is not None:
        batch["certificate"] = certificate(report, *findings)
    return PageFigures(
        at=at,
        ledger=LEDGER,
        batch=attrs.evolve(known, **batch),
        report=with_causes(report, causes),
        pace=pace,
        causes=causes,
        processes=processes,
        activity=doing,
    )


def certificate(report: BatchReport, *findings: str) -> dict[str, Any]:
    created, facts = report.counts["created"], report.facts()
    turns = [finding for finding in findings if "had ended" in finding]
    findings = tuple(finding for finding in findings if finding not in turns)
    is_rounded = any("was asked for" in finding for finding in findings)
    return {
        "version": 2,
        **{name: getattr(BINDING, name) for name in ("batch_id", "environment", "base_url")},
        "key_fingerprint": BINDING.key_fingerprint,
        "input_hash": BINDING.input_hash,
        "at": BEGAN + 60.0,
        "looked_at": BEGAN + 59.0,
        "agrees": not findings,
        "clean": not findings,
        "settled": not findings and not report.counts["not_final"],
        "findings": list(findings),
        "rows": facts["rows"],
        "sums": facts["sums"],
        "list": {
            "seen": created,
            "missing": 0,
            "differing": len(findings),
            "uncompared": 0,
            "fields": {
                "amount": {"compared": created, "not_shown": 0},
                "metadata.payments_sdk": {"compared": created, "not_shown": 3},
            },
            "rounded": {"GHS": "-0.00000000000000001"} if is_rounded else {},
            "findings": list(findings),
            "turns": turns,
        },
    }


def states() -> dict[str, PageFigures]:
    of = {outcome: [each for each in causes() if each.outcome == outcome] for outcome in Cause.outcomes}
    waits = Activity(doing="waiting", why="rows have no clear answer yet", next_look=12.0)
    done = {"arrived": 12000}
    failed = {"arrived": 11900, "failed": 50, "rejected": 40, "conflict": 2, "cancelled": 8}
    turn = "row 61: po_61 had ended as completed, and the list shows reversed"
    rounds = "row 3: po_3 is of GHS 501.19999999999999999, and GHS 501.20 was asked for"
    mixed = (*of[Outcome.CONFLICT], *of[Outcome.FAILED], *of[Outcome.REJECTED])
    return {
        "untouched": figures({"not_started": 12000}, pace=0.0),
        "running": figures(RUNNING, *of[Outcome.FAILED], processes=2),
        "currencies": figures(RUNNING, currencies=6, processes=1),
        "waiting": figures(
            {"arrived": 11000, "not_final": 998, "in_doubt": 2}, *of[Outcome.IN_DOUBT], doing=waits
        ),
        "reading": figures(RUNNING, doing=Activity(doing="reading", listed=400)),
        "following": figures(
            {"arrived": 11000, "not_final": 1000}, doing=Activity(doing="following", next_look=3.0)
        ),
        "paused": figures({"not_final": 700, "not_started": 500}, paused="lunch"),
        "stopped": figures({"not_final": 700, "under_way": 96, "not_started": 404}),
        "doubt": figures({"not_final": 1198, "in_doubt": 2}, *of[Outcome.IN_DOUBT]),
        "complete": figures(done, findings=()),
        "uncertified": figures(done),
        "created": figures({"not_final": 12000}, findings=()),
        "rejected": figures({"not_final": 11960, "rejected": 40}, *of[Outcome.REJECTED], findings=()),
        "failed": figures(failed, *mixed, findings=()),
        "returned": figures({"arrived": 11999, "returned": 1}, *of[Outcome.RETURNED], findings=[turn]),
        "excess": figures(done, in_excess=2, findings=["in excess of what the rows ask for: 2 payouts"]),
        "conflict": figures(
            {"arrived": 11998, "conflict": 2},
            *of[Outcome.CONFLICT],
            moved_in_conflict=1,
            findings=["row 23: po_9 moved in conflict"],
        ),
        "unclear": figures(
            {"arrived": 11999, "not_final": 1},
            *of[Outcome.NOT_FINAL],
            findings=[f"row 12: po_12 is {UNCLEAR}"],
        ),
        "unconfirmed": figures(done, findings=["row 12: pyt_12 is not in the list"]),
        "rounded": figures(done, findings=[rounds]),
    }


def page_of(now: PageFigures, *, has_script: bool = True) -> str:
    return html_of(now, has_script=has_script)


def words_of(html: str) -> str:
    body = re.sub(r"(?s)<(head|title|script)\b.*?</\1>", " ", html)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


class GivenFeed(BatchFeed):
    """A feed of the figures that a test sets."""

    def __init__(self, now: PageFigures) -> None:
        super().__init__(None, now.ledger)  # type: ignore[arg-type] # nothing is read of it
        self.now = now

    async def figures(self) -> PageFigures:
        return self.now
