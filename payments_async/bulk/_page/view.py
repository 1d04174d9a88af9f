"""What the templates of a batch's page show, made of its figures. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import attrs

from ...models._masking import clean
from ...models.common import amount_text, grouped
from .._export.causes import Cause
from .._export.row_view import RowView
from .._protocol.outcomes import Outcome
from .._report import BatchReport
from .._texts.advice import advice_on, going_on
from .._texts.figures import activity_text, leading, leading_sums, length_and_pace, with_causes
from .._texts.outcomes import (
    ALWAYS,
    EXTRA,
    NAMES,
    cause_text,
    failures_text,
    inspector_page,
    more_causes,
    status_text,
)
from .._texts.quantities import clock, counted, duration_text, moment, money_text, rate_text, took_text
from . import charts
from .source import PageFigures

Context = dict[str, object]
FOLDER: Final = Path(__file__).parent
_LONG_NAME: Final = 40
_SHORT: Final = (8, 6)
"""Signs of a long reference that are shown of its beginning and its end."""
_WORKING: Final[Mapping[str, tuple[str, str]]] = {
    "waiting": ("wait", "waiting for rows in doubt"),
    "reading": ("wait", "reading the service's list"),
    "following": ("work", "following the payouts"),
    "reconciling": ("work", "reading the service's list"),
    "certifying": ("work", "certifying"),
}
_GROUPS: Final[Mapping[str, str]] = {
    "in_excess": "these payouts stand for no row, and have arrived or may still arrive",
    "moved_in_conflict": "payouts of rows in conflict that have arrived or may still arrive",
    "in_doubt": "do not pay these again; the run looks them up",
    "conflict": "compare each with the service's payout before you pay it again",
    "not_final": "the payout's status and times contradict each other",
    "returned": "the payout had arrived, and the money came back",
    "failed": "the payout was created, and did not arrive",
    "rejected": "nothing was created",
}
"""{what needs a person, the most urgent first: what it means for the next payment}."""
_TONES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("returned", "failed", *EXTRA), "bad"),
    **dict.fromkeys(("in_doubt", "rejected", "conflict"), "wait"),
    "arrived": "ok",
    "not_final": "work",
    "under_way": "way",
    "not_started": "idle",
    "cancelled": "none",
    "asked": "",
    "created": "",
}
_BAR: Final = (
    *("arrived", "not_final", "under_way", "in_doubt"),
    *("returned", "failed", "rejected", "conflict", "not_started", "cancelled"),
)
"""The parts of the bar, in its order."""
_BESIDE: Final = 4
"""Currencies of one table."""
_MOST_CAUSES: Final = 20


def batch_context(now: PageFigures) -> Context:
    """The page of the batch."""
    common = _common(now)
    if now.batch is None:
        return {**common, "report": None, "rows_read": now.rows_read}
    series, speed = now.batch.series, now.batch.speed if now.phase == "working" else None
    figures = attrs.evolve(with_causes(now.batch.report, now.causes), speed=speed)
    runs = series.by_run(now.runs)
    return {
        **common,
        "report": figures,
        "money": [
            (amount_text(code, done), amount_text(code, asked)) for code, done, asked in leading_sums(figures)
        ],
        "lead": leading(figures),
        "tables": [_table(figures, codes) for codes in _beside([*figures.sums])],
        "decided": figures.done - figures.counts["cancelled"],
        "rows": figures.rows - figures.counts["cancelled"],
        "pace": _pace(now, runs, figures),
        "waits": activity_text(figures.activity),
        "is_waiting": bool(figures.activity and (figures.activity.waiting or figures.activity.why)),
        "parts": charts.stacked([(_TONES[word], _word(word), figures.counts[word]) for word in _BAR]),
        "speed": charts.speed_chart(runs, figures.seconds_left),
        "times": charts.time_chart(series.times),
        "look": _groups(now, figures),
        "look_more": more_causes(now.causes[_MOST_CAUSES:]),
        "look_at": _look_at(now, figures),
        "certificate": _certificate(now.certificate),
        "step": _step(now, figures),
    }


def row_context(now: PageFigures, row: RowView) -> Context:
    """The page of one row."""
    tone, word = _happened(row)
    attempts = list(row.attempts)
    longest = max((each.seconds for each in attempts), default=0.0) or 1.0
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
                "at": clock(each.at),
                "day": moment(each.at),
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
        "show": now.ledger.command("show", row.name),
    }


def missing_context(number: int | None) -> Context:
    """The page of a row that is not there, or of an address that shows nothing."""
    title = "Page not found" if number is None else "Row not found"
    return {"title": title, "number": number, "live": False, "refresh": 0}


def _common(now: PageFigures) -> Context:
    return {
        "title": title_of(now),
        "state": _state(now),
        "facts": _about(now),
        "live": now.phase != "ended",
        "refresh": 0 if now.phase == "ended" else 5,
        "ledger": now.ledger.shown,
        "watch": now.ledger.command("watch"),
        "at": moment(now.at),
    }


def title_of(now: PageFigures) -> str:
    """The batch's name; the file's where the name is a hash."""
    batch_id = now.batch.report.batch_id if now.batch else ""
    return clean(batch_id if batch_id and len(batch_id) <= _LONG_NAME else now.name.removesuffix(".ledger"))


def _about(now: PageFigures) -> list[str]:
    facts = [f"ledger {now.ledger.shown}"]
    facts += [f"process {now.pid}"] if now.pid else []
    if now.batch is not None:
        binding = now.batch.header.binding
        facts.append(f"{binding.environment} key {binding.key_fingerprint}")
    return [clean(fact) for fact in facts]


def _state(now: PageFigures) -> tuple[str, str]:
    """Colour and words of the batch's state."""
    if now.batch is None:
        return "work", "reading the file"
    if now.phase == "reading":  # the same file again, or the confirmation is still awaited
        return "idle", "not paying yet"
    if now.phase != "ended":
        activity = now.batch.report.activity
        doing = "certifying" if now.phase == "certifying" else activity.doing if activity else "paying"
        return _WORKING.get(doing, ("work", "paying"))
    return _ended(with_causes(now.batch.report, now.causes), now.certificate)


def _ended(report: BatchReport, certificate: Mapping[str, Any] | None) -> tuple[str, str]:
    counts = report.counts
    if report.complete:
        if failures := failures_text(report):
            is_bad = report.contradicting or any(
                counts[word] for word, tone in _TONES.items() if tone == "bad"
            )
            return "bad" if is_bad else "wait", f"complete, {failures}"
        if certificate is not None:
            clean_one = bool(certificate["clean"])
            return ("ok", "complete and certified") if clean_one else ("bad", "complete, not confirmed")
        return "ok", "complete"
    if counts["in_doubt"] and not counts["not_started"]:
        return "wait", f"{counted(counts['in_doubt'], 'row')} in doubt"
    if counts["not_started"] + counts["cancelled"] == report.rows:
        return "idle", "nothing was sent yet"
    return "wait", "stopped, can be resumed"


def _beside(currencies: list[str]) -> list[list[str]]:
    """The currencies of each table: so many that they have room on paper."""
    return [currencies[at : at + _BESIDE] for at in range(0, len(currencies), _BESIDE)]


def _table(figures: BatchReport, currencies: list[str]) -> Context:
    """Money by outcome: a line for each word, with its rows or payouts and a sum of each currency."""
    sums = [figures.sums[currency] for currency in currencies]
    lines = [
        {
            "name": name.strip(),
            "is_part": name.startswith(" "),
            "tone": _TONES[word],
            "count": figures.counts[word],
            "sums": [grouped(each[word] or each["asked"] * 0) for each in sums],
            "is_shown": figures.counts[word] or word in ALWAYS,
        }
        for word, name in NAMES.items()
    ]
    return {"currencies": currencies, "lines": lines}


def _pace(now: PageFigures, runs: list[charts.Run], figures: BatchReport) -> tuple[str, str] | None:
    """The large figure at the right, and what it says."""
    if now.phase != "ended":
        left, speed = figures.seconds_left, figures.speed
        if left is None or speed is None:
            return None
        return duration_text(max(1.0, round(left))), f"left at {rate_text(speed.per_second)}"
    found = length_and_pace(runs[-1][1]) if runs else None
    return found and (duration_text(found[0]), f"the last run, {rate_text(found[1])}")


def _groups(now: PageFigures, figures: BatchReport) -> list[Context]:
    """Payouts and rows to look at, by outcome: advice with its command, and the causes."""
    found: dict[str, list[Context]] = {}
    for word in EXTRA:
        if payouts := figures.counts[word]:
            sums = {currency: each[word] for currency, each in figures.sums.items() if each[word]}
            found[word] = [{"text": counted(payouts, "payout"), "money": money_text(sums), "rows": ()}]
    for cause in now.causes[:_MOST_CAUSES]:
        text, money = clean(cause_text(cause)).rsplit(" · ", 1)
        shown: Context = {"text": text, "money": money, "rows": [_line(row) for row in cause.rows]}
        found.setdefault(cause.outcome, []).append(shown)
    return [
        {
            "tone": _TONES[word],
            "heading": f"{NAMES[word].strip().capitalize()}: {meaning}",
            "advice": advice_on(word, figures, now.ledger),
            "causes": found[word],
        }
        for word, meaning in _GROUPS.items()
        if word in found
    ]


def _look_at(now: PageFigures, figures: BatchReport) -> str | None:
    """When the rows to look at were read, if the figures above are newer."""
    counts = Counter[str]()
    for cause in now.causes:
        counts[cause.outcome] += cause.count
    whole = (word for word in Cause.outcomes if word is not Outcome.NOT_FINAL)
    is_same = all(counts[word] == figures.counts[word] for word in whole)
    return None if is_same else clock(now.causes_at)


def _line(row: RowView) -> Context:
    """A row of the table of rows to look at."""
    return {
        "number": row.number,
        "key": _key(row),
        "reference": row.reference,
        "short": shortened(row.reference),
        "amount": amount_text(row.currency, row.amount),
        "attempts": str(row.attempts),
        "at_once": row.payout_id is not None and row.first_sent is not None,
    }


def _key(row: RowView) -> str:
    """The row's key; its number where that is masked."""
    return row.row_key if row.name == row.row_key else f"row {row.number}"


def _word(word: str) -> str:
    """What an outcome is called within a sentence."""
    return NAMES[word].strip().lower()


def _happened(row: RowView) -> tuple[str, str]:
    """Colour and word of what became of a row. The word alone says it, without the colour."""
    tone = _TONES[row.outcome]
    return {"way": "work", "none": "idle"}.get(tone, tone), _word(row.outcome)


def _facts(row: RowView) -> list[tuple[str, str]]:
    found = [
        ("Row", f"{row.number:,}" + (f", line {row.line:,}" if row.line else "")),
        ("Method", row.method),
        ("Outcome", _word(row.outcome)),
        ("Payout", row.payout_id),
        ("Payout is of", row.payout_money),
        ("Status", row.payout_status),
        ("Statuses", _statuses(row)),
        ("Reason", row.reason),
        ("Generation", f"{row.generation}" if row.generation else None),
        ("First sent", moment(row.first_sent) + " UTC" if row.first_sent else None),
        ("Last sent", moment(row.last_sent) + " UTC" if row.last_sent else None),
    ]
    return [(name, clean(text)) for name, text in found if text]


def _statuses(row: RowView) -> str | None:
    """The statuses of a row whose payout's status has changed, by the service's clock where it is known."""
    if len(row.statuses) < 2:
        return None
    times = [each.at if each.service_at is None else each.service_at for each in row.statuses]
    texts = [status_text(attrs.asdict(each)) for each in row.statuses]
    return "; ".join(f"{moment(at)} UTC {text}" for at, text in zip(times, texts, strict=True))


def _certificate(found: Mapping[str, Any] | None) -> Context | None:
    """The certificate for people."""
    if found is None:
        return None
    audit, check = found["list"], found["ledger"]
    compared = [
        (name, f"{each['compared']:,}" + (f", {each['not_shown']:,} not shown" if each["not_shown"] else ""))
        for name, each in audit["fields"].items()
    ]
    rounded = {currency: Decimal(amount) for currency, amount in audit["rounded"].items()}
    return {
        "clean": found["clean"],
        "settled": found["settled"],
        "findings": [clean(text) for text in found["findings"]],
        "turns": [clean(text) for text in audit["turns"]],
        "at": moment(found["at"]),
        "facts": [
            ("Batch", found["batch_id"]),
            ("Account", f"{found['environment']} key {found['key_fingerprint']}"),
            ("Service", found["base_url"]),
            ("List read", moment(found["looked_at"] or found["at"]) + " UTC"),
            (
                "On the list",
                f"{audit['seen']:,} as asked for, {audit['missing']:,} missing, "
                f"{audit['differing']:,} different",
            ),
            *([("Rounded", f"{money_text(rounded)} in all, against what was asked for")] if rounded else []),
            ("Input", found["input_hash"]),
            ("Ledger", f"{check['entries']:,} entries, head {check['head']}"),
        ],
        "fields": compared,
    }


def _step(now: PageFigures, figures: BatchReport) -> str:
    """Advice on the batch as a whole when the run is over."""
    if now.phase != "ended" or figures.is_untouched:
        return ""
    clean_one = None if now.certificate is None else bool(now.certificate["clean"])
    code = figures.exit_code or int(clean_one is False)
    return going_on(figures, code, None, now.ledger, clean=clean_one)


def shortened(text: str) -> str:
    """A long reference without its middle: `nccuq4qo…aukiqa`."""
    begin, end = _SHORT
    return text if len(text) <= begin + end + 3 else f"{text[:begin]}…{text[-end:]}"
