"""What the templates of a batch's page show, made of its figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from ...bulk import BatchReport, Outcome, RowsToLookAt, RowView, RunSeries
from ...bulk.protocol.records import HIDDEN
from ...bulk.protocol.totals import EXACT
from ...models._masking import clean
from ...models.common import amount_text
from .._text import took_text
from ..payouts import messages
from ..payouts.messages import counted
from ..payouts.row import inspector_page
from ..payouts.summary import (
    BatchFigures,
    activity_text,
    duration_text,
    failures_text,
    figures_of,
    rate_text,
)
from . import charts
from .source import BatchSnapshot

Context = dict[str, object]
FOLDER: Final = Path(__file__).parent
_LONG_NAME: Final = 40
_SHORT_RUN: Final = 3.0
"""Seconds below which a run has no speed: it is counted in whole seconds."""
_SHORT: Final = (8, 6)
"""Signs of a long reference that are shown of its beginning and its end."""
_SELDOM: Final = ("returned", "in conflict", "cancelled")
"""Parts of the bar that are named only when there are such rows."""
_WORKING: Final[Mapping[str, tuple[str, str]]] = {
    "waiting": ("wait", "waiting for rows in doubt"),
    "following": ("work", "following the payouts"),
    "reconciling": ("work", "reading the service's list"),
    "certifying": ("work", "certifying"),
}
_HEADINGS: Final[Mapping[Outcome, str]] = {
    Outcome.IN_DOUBT: "In doubt: do not pay these again; the run looks them up",
    Outcome.CONFLICT: "In conflict: compare each with the service's payout before you pay it again",
    Outcome.REJECTED: "Rejected: nothing was created",
    Outcome.FAILED: "Failed: the payout was created, and did not arrive",
    Outcome.RETURNED: "Returned: the payout had arrived, and the money came back",
}
_OUTCOMES: Final[Mapping[str, tuple[str, str]]] = {
    "arrived": ("ok", "arrived"),
    "returned": ("bad", "returned"),
    "failed": ("bad", "failed"),
    "not_final": ("work", "not final yet"),
    "rejected": ("bad", "rejected"),
    "conflict": ("bad", "in conflict"),
    "in_doubt": ("wait", "in doubt"),
    "under_way": ("way", "under way"),
    "not_started": ("idle", "not started"),
    "cancelled": ("none", "cancelled"),
}
"""{outcome: its colour and its words}, in the order of the page."""
_BAR: Final = (
    *("arrived", "not_final", "under_way", "in_doubt"),
    *("returned", "failed", "rejected", "conflict", "not_started", "cancelled"),
)
"""The parts of the bar, in its order."""


def batch_context(now: BatchSnapshot) -> Context:
    """The page of the batch."""
    common = _common(now)
    if now.report is None:
        return {**common, "report": None, "rows_read": now.rows_read}
    figures, series = figures_of(now.report), now.details.series
    run = charts.last_run(series, now.began)
    rate = charts.recent_rate(series, now.at, now.began) if now.phase == "working" else 0.0
    open_rows = figures.counts["not_started"] + figures.counts["under_way"]
    left = open_rows / rate if rate and open_rows else None
    return {
        **common,
        "report": now.report,
        "money": _money(figures),
        "decided": figures.done - figures.counts["cancelled"],
        "rows": figures.rows - figures.counts["cancelled"],
        "pace": _pace(now, run, rate, left),
        "waits": activity_text(figures.activity),
        "is_waiting": bool(now.report.activity and now.report.activity.waiting),
        "parts": charts.stacked(_parts(figures)),
        "speed": charts.speed_chart(run, left),
        "times": charts.time_chart(series.times),
        "times_of": ", all runs" if len(run.buckets) < len(series.buckets) else "",
        "look": _groups(now.details.look),
        "look_shown": len(now.details.look.rows),
        "look_total": now.details.look.total,
        "look_note": _look_note(figures),
        "certificate": _certificate(now.certificate),
        "steps": _steps(now, figures),
        "export": now.ledger.command("export", "rows.csv"),
    }


def row_context(now: BatchSnapshot, row: RowView) -> Context:
    """The page of one row."""
    tone, word = _happened(row)
    attempts = list(row.attempts)
    longest = max((each.seconds for each in attempts), default=0.0) or 1.0
    names = (row.row_key, row.reference, str(row.number))
    return {
        **_common(now),
        "row": row,
        "key": _key(row),
        "tone": tone,
        "word": word,
        "amount": amount_text(row.currency, row.amount),
        "facts_of_row": _facts(row),
        "accounts": [
            (f"{part} {name}", value) for part, of in row.account.items() for name, value in of.items()
        ],
        "attempts": [
            {
                "at": charts.clock(each.at),
                "day": charts.moment(each.at),
                "answer": each.answer,
                "tone": charts.attempt_tone(each.answer),
                "seconds": took_text(each.seconds),
                "width": round(max(each.seconds / longest * 100, 1), 1),
                "replayed": each.replayed,
                "gap": row.attempts.omitted if place == len(row.attempts.first) - 1 else 0,
            }
            for place, each in enumerate(attempts)
        ],
        "inspector": inspector_page(row.facts()),
        "show": now.ledger.command("show", next(name for name in names if name != HIDDEN)),
    }


def missing_context(number: int | None) -> Context:
    """The page of a row that is not there, or of an address that shows nothing."""
    title = "Page not found" if number is None else "Row not found"
    return {"title": title, "number": number, "live": False, "refresh": 0}


def _common(now: BatchSnapshot) -> Context:
    return {
        "title": title_of(now),
        "state": _state(now),
        "facts": _about(now),
        "live": now.phase != "ended",
        "refresh": 0 if now.phase == "ended" else 5,
        "ledger": now.ledger.shown,
        "watch": now.ledger.command("watch"),
        "at": charts.moment(now.at),
    }


def title_of(now: BatchSnapshot) -> str:
    """The batch's name; the file's where the name is a hash."""
    batch_id = now.report.batch_id if now.report else ""
    return clean(batch_id if batch_id and len(batch_id) <= _LONG_NAME else now.name.removesuffix(".ledger"))


def _about(now: BatchSnapshot) -> list[str]:
    facts = [f"ledger {now.ledger.shown}"]
    facts += [f"process {now.pid}"] if now.pid else []
    if now.header is not None:
        binding = now.header.binding
        facts.append(f"{binding.environment} key {binding.key_fingerprint}")
    return [clean(fact) for fact in facts]


def _state(now: BatchSnapshot) -> tuple[str, str]:
    """Colour and words of the batch's state."""
    if now.report is None:
        return "work", "reading the file"
    if now.phase == "reading":  # the same file again, or the confirmation is still awaited
        return "idle", "not paying yet"
    if now.phase != "ended":
        activity = now.report.activity
        doing = "certifying" if now.phase == "certifying" else activity.doing if activity else "paying"
        return _WORKING.get(doing, ("work", "paying"))
    return _ended(now.report, now.certificate)


def _ended(report: BatchReport, certificate: Mapping[str, Any] | None) -> tuple[str, str]:
    counts = report.counts
    if report.complete:
        if failures := failures_text(counts):
            return "bad", f"complete, {failures}"
        if certificate is not None:
            clean_one = bool(certificate["clean"])
            return ("ok", "complete and certified") if clean_one else ("bad", "complete, not confirmed")
        return "ok", "complete"
    if counts["in_doubt"] and not counts["not_started"]:
        return "wait", f"{counted(counts['in_doubt'], 'row')} in doubt"
    if counts["not_started"] + counts["cancelled"] == report.rows:
        return "idle", "nothing was sent yet"
    return "wait", "stopped, can be resumed"


def _money(figures: BatchFigures) -> list[tuple[str, str, str]]:
    """What arrived of each currency, its total, and `arrived`; until all are sent, what was created."""
    word = "arrived" if figures.over and figures.done == figures.rows else "created"
    return [
        (amount_text(currency, figures.sums[currency][word] or total * 0), amount_text(currency, total), word)
        for currency, total in figures.payable().items()
    ]


def _pace(now: BatchSnapshot, run: RunSeries, rate: float, left: float | None) -> tuple[str, str] | None:
    """The large figure at the right, and what it says."""
    if now.phase != "ended":
        return None if left is None else (duration_text(max(1.0, round(left))), f"left at {rate_text(rate)}")
    total = run.total
    if not total.created or total.seconds < _SHORT_RUN:
        return None
    return duration_text(total.seconds), f"the last run, {rate_text(total.per_second)}"


def _parts(figures: BatchFigures) -> list[tuple[str, str, int]]:
    """Tone, word and rows of each part of the bar."""
    parts = [(*_OUTCOMES[word], figures.counts[word]) for word in _BAR]
    return [part for part in parts if part[2] or part[1] not in _SELDOM]


def _groups(look: RowsToLookAt) -> list[tuple[str, list[dict[str, object]]]]:
    """The rows to look at below what their state means for the next payment, the most urgent first."""
    found: dict[str, list[dict[str, object]]] = {}
    for row in look:
        found.setdefault(_HEADINGS[row.outcome], []).append(_line(row))
    return [*found.items()]


def _line(row: RowView) -> dict[str, object]:
    """A row of the table of rows to look at."""
    tone, word = _happened(row)
    return {
        "number": row.number,
        "key": _key(row),
        "reference": row.reference,
        "short": shortened(row.reference),
        "amount": amount_text(row.currency, row.amount),
        "tone": tone,
        "word": word,
        "reason": row.reason,
        "attempts": str(row.attempts),
        "at_once": row.payout_id is not None,
    }


def _key(row: RowView) -> str:
    """The row's key; its number where that is masked."""
    return f"row {row.number}" if row.row_key == HIDDEN else row.row_key


def _happened(row: RowView) -> tuple[str, str]:
    """Colour and word of what became of a row. The word alone says it, without the colour."""
    tone, words = _OUTCOMES[row.outcome]
    return {"way": "work", "none": "idle"}.get(tone, tone), words


def _look_note(figures: BatchFigures) -> str:
    found = [(figures.counts[outcome], _OUTCOMES[outcome][1]) for outcome in _HEADINGS]
    return " · ".join(f"{count:,} {words}" for count, words in found if count)


def _facts(row: RowView) -> list[tuple[str, str]]:
    found = [
        ("Row", f"{row.number:,}" + (f", line {row.line:,}" if row.line else "")),
        ("Method", row.method),
        ("Outcome", _OUTCOMES[row.outcome][1]),
        ("Payout", row.payout_id),
        ("Status", row.payout_status),
        ("Reason", row.reason),
        ("Generation", f"{row.generation}" if row.generation else None),
        ("First sent", charts.moment(row.first_sent) + " UTC" if row.first_sent else None),
        ("Last sent", charts.moment(row.last_sent) + " UTC" if row.last_sent else None),
    ]
    return [(name, clean(text)) for name, text in found if text]


def _certificate(found: Mapping[str, Any] | None) -> Context | None:
    """The certificate for people."""
    if found is None:
        return None
    audit, check = found["list"], found["ledger"]
    compared = [
        (name, f"{each['compared']:,}" + (f", {each['not_shown']:,} not shown" if each["not_shown"] else ""))
        for name, each in audit["fields"].items()
    ]
    return {
        "clean": found["clean"],
        "settled": found["settled"],
        "findings": [clean(text) for text in found["findings"]],
        "turns": [clean(text) for text in audit["turns"]],
        "at": charts.moment(found["at"]),
        "money": [_paid(currency, sums) for currency, sums in sorted(found["sums"].items())],
        "arrived": [
            amount_text(currency, Decimal(sums["arrived"])) for currency, sums in found["sums"].items()
        ],
        "facts": [
            ("Batch", found["batch_id"]),
            ("Account", f"{found['environment']} key {found['key_fingerprint']}"),
            ("Service", found["base_url"]),
            ("Rows", f"{found['rows']['asked']:,}: {_by_outcome(found['rows'])}"),
            *_extra(found),
            (
                "On the service's list",
                f"{audit['seen']:,} as asked for, {audit['missing']:,} missing, "
                f"{audit['differing']:,} different",
            ),
            ("Input", found["input_hash"]),
            ("Ledger", f"{check['entries']:,} entries, head {check['head']}"),
        ],
        "fields": compared,
    }


def _extra(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The payouts that stand for no row, with their money."""
    words = {"moved_in_conflict": "Moved in conflict", "in_excess": "In excess"}
    return [
        (
            name,
            ", ".join(
                amount_text(currency, amount)
                for currency, sums in sorted(found["sums"].items())
                if (amount := Decimal(sums[word]))
            ),
        )
        for word, name in words.items()
        if found["rows"][word]
    ]


def _paid(currency: str, sums: Mapping[str, str]) -> tuple[str, str]:
    """Created and total of a currency, without cancelled rows."""
    total = EXACT.subtract(Decimal(sums["asked"]), Decimal(sums["cancelled"]))
    return amount_text(currency, Decimal(sums["created"]) or total * 0), amount_text(currency, total)


def _by_outcome(counts: Mapping[str, int]) -> str:
    """`11,950 arrived, 40 rejected`."""
    return ", ".join(f"{counts[word]:,} {words}" for word, (_, words) in _OUTCOMES.items() if counts[word])


def _steps(now: BatchSnapshot, figures: BatchFigures) -> list[str]:
    """Advice when the run is over."""
    report = now.report
    if now.phase != "ended" or report is None or figures.is_untouched:
        return []
    unclean = None if now.certificate is None else bool(now.certificate["clean"])
    return messages.after_run(figures, report.exit_code, None, now.ledger, clean=unclean)


def shortened(text: str) -> str:
    """A long reference without its middle: `nccuq4qo…aukiqa`."""
    begin, end = _SHORT
    return text if len(text) <= begin + end + 3 else f"{text[:begin]}…{text[-end:]}"
