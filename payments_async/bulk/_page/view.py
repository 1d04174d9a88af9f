"""What the template of a batch's page shows, made of its figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import attrs

from ...models._masking import clean
from ...models.common import amount_text, grouped
from .._export.row_view import RowView
from .._texts.advice import PAUSED, advice_on, going_on, shortfall
from .._texts.figures import activity_text, leading, leading_sums, seconds_left
from .._texts.outcomes import EXTRA, NAMES, cause_text, failures_text, more_causes, title_of
from .._texts.quantities import counted, duration_text, moment, money_text, rate_text
from .feed import PageFigures

Context = dict[str, object]
_WORKING: Final[Mapping[str, tuple[str, str]]] = {
    "paying": ("work", "paying"),
    "waiting": ("wait", "waiting for rows in doubt"),
    "reading": ("wait", "reading the service's list"),
    "following": ("work", "following the payouts"),
    "reconciling": ("work", "reading the service's list"),
}
"""{what a run does: the tone and the words of the batch's state}."""
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
_LEAST_SHARE: Final = 0.8  # percent of the bar that a part takes at least
_BESIDE: Final = 52  # characters of sums that have room beside each other on paper
_MOST_CAUSES: Final = 20


def batch_context(now: PageFigures) -> Context:
    report = now.report
    certificate = now.batch.certificate
    return {
        **_common(now),
        "money": [
            (amount_text(code, done), amount_text(code, asked)) for code, done, asked in leading_sums(report)
        ],
        "lead": leading(report),
        "shortfall": shortfall(report, now.ledger),
        "tables": [_table(now, codes) for codes in _beside(report.sums)],
        "decided": report.done - report.counts["cancelled"],
        "rows": report.rows - report.counts["cancelled"],
        "pace": _pace(now),
        "doing": clean(activity_text(now.activity)),
        "parts": _bar(report.counts),
        "look": _groups(now),
        "look_more": more_causes(now.causes[_MOST_CAUSES:]),
        "certificate": certificate and _certificate(now, certificate),
        "step": _step(now),
    }


def _common(now: PageFigures) -> Context:
    binding = now.batch.binding
    facts = [
        f"ledger {now.ledger.shown}",
        f"{binding.environment} key {binding.key_fingerprint or 'not used yet'}",
    ]
    facts += [f"{counted(now.processes, 'process')} at work"] if now.processes else []
    return {
        "title": clean(title_of(binding.batch_id)).removeprefix("batch "),
        "state": _state(now),
        "facts": [clean(fact) for fact in facts],
        "show": now.ledger.command("show", "ROW"),
        "watch": now.ledger.command("watch", "--page"),
        "at": moment(now.at),
    }


def _doing(now: PageFigures) -> str:
    """What is done with the batch, a word of `Activity`; empty when nobody is known to work on it."""
    if now.activity is not None:
        return now.activity.doing
    return "paying" if now.processes else ""


def _state(now: PageFigures) -> tuple[str, str]:
    """Tone and words of the batch's state."""
    report, counts = now.report, now.report.counts
    if now.batch.paused is not None and not report.is_complete:
        return "wait", "paused"
    if doing := _doing(now):
        return _WORKING[doing]
    if report.is_complete:
        if failures := failures_text(report):
            is_bad = report.contradicting or any(
                counts[word] for word, tone in _TONES.items() if tone == "bad"
            )
            return "bad" if is_bad else "wait", f"complete, {failures}"
        if now.batch.certificate is None:
            return "ok", "complete"
        is_clean = now.batch.certificate["clean"]
        return ("ok", "complete and certified") if is_clean else ("bad", "complete, not confirmed")
    if report.is_untouched:
        return "idle", "nothing was sent yet"
    if counts["in_doubt"] and not counts["not_started"]:
        return "wait", f"{counted(counts['in_doubt'], 'row')} in doubt"
    return "wait", "stopped, can be resumed"


def _beside(sums: Mapping[str, Mapping[str, Decimal]]) -> list[list[str]]:
    """The currencies of each table: as many as have room beside each other."""
    tables, room = list[list[str]](), 0
    for currency, each in sums.items():
        width = 2 + max(len(grouped(amount, currency)) for amount in each.values())
        if not tables or width > room:
            tables.append([])
            room = _BESIDE
        tables[-1].append(currency)
        room -= width
    return tables


def _table(now: PageFigures, currencies: list[str]) -> Context:
    """Money by outcome: a line for each word, with its rows or payouts and a sum of each currency."""
    sums, counts = [(now.report.sums[currency], currency) for currency in currencies], now.report.counts
    lines = [
        {
            "name": name.strip(),
            "is_part": name.startswith(" "),
            "tone": _TONES[word],
            "count": counts[word],
            "sums": [grouped(each[word], currency) for each, currency in sums],
        }
        for word, name in NAMES.items()
    ]
    return {"currencies": currencies, "lines": lines}


def _pace(now: PageFigures) -> tuple[str, str] | None:
    """The large figure at the right, and what it says: the time left. None when that is not known."""
    left = seconds_left(now.report, now.pace)
    if left is None or _doing(now) != "paying":
        return None
    return duration_text(max(1.0, round(left))), f"left at {rate_text(now.pace)}"


def _groups(now: PageFigures) -> list[Context]:
    """Payouts and rows to look at, by outcome: advice with its command, and the causes."""
    found: dict[str, list[Context]] = {}
    for word in EXTRA:
        if payouts := now.report.counts[word]:
            sums = {currency: each[word] for currency, each in now.report.sums.items() if each[word]}
            found[word] = [{"text": f"{counted(payouts, 'payout')} · {money_text(sums)}", "rows": ()}]
    for cause in now.causes[:_MOST_CAUSES]:
        shown: Context = {"text": clean(cause_text(cause)), "rows": [_line(row) for row in cause.rows]}
        found.setdefault(cause.outcome, []).append(shown)
    return [
        {
            "tone": _TONES[word],
            "heading": f"{NAMES[word].strip().capitalize()}: {meaning}",
            "advice": advice_on(word, now.report, now.ledger),
            "causes": found[word],
        }
        for word, meaning in _GROUPS.items()
        if word in found
    ]


def _line(row: RowView) -> Context:
    return {
        "number": row.number,
        "key": row.row_key,
        "reference": row.reference,
        "amount": amount_text(row.currency, row.amount),
        "sends": f"sent {counted(row.sends, 'time')}" if row.sends else "not sent",
    }


def _bar(counts: Mapping[str, int]) -> list[Context]:
    """The chart: one bar of all rows, whose parts are percentages of its width, each seen."""
    there = {word: counts[word] for word in _BAR if counts[word]}
    total = sum(there.values())
    wanted = {word: max(count / total * 100, _LEAST_SHARE) for word, count in there.items()}
    parts, x = list[Context](), 0.0
    for word, count in there.items():
        width = wanted[word] * 100 / sum(wanted.values())
        name = NAMES[word].strip().lower()
        parts.append(
            {"tone": _TONES[word], "word": name, "count": count, "x": round(x, 2), "width": round(width, 2)}
        )
        x += width
    return parts


def _certificate(now: PageFigures, found: Mapping[str, Any]) -> Context:
    audit, facts = found["list"], now.report.facts()
    compared = [
        f"{name}: {each['compared']:,}" + (f", {each['not_shown']:,} not shown" if each["not_shown"] else "")
        for name, each in audit["fields"].items()
    ]
    rounded = {currency: Decimal(amount) for currency, amount in audit["rounded"].items()}
    on_list = (
        f"{audit['seen']:,} as asked for, {audit['missing']:,} missing, {audit['differing']:,} different"
    )
    return {
        "clean": found["clean"],
        "settled": found["settled"],
        "is_earlier": (found["rows"], found["sums"]) != (facts["rows"], facts["sums"]),
        "findings": [clean(text) for text in found["findings"]],
        "turns": [clean(text) for text in audit["turns"]],
        "at": moment(found["at"]),
        "facts": [
            ("Batch", found["batch_id"]),
            ("Account", f"{found['environment']} key {found['key_fingerprint']}"),
            ("Service", found["base_url"]),
            ("List read", f"{moment(found['looked_at'])} UTC"),
            ("On the list", on_list),
            *([("Rounded", f"{money_text(rounded)} in all, against what was asked for")] if rounded else []),
            ("Input", found["input_hash"]),
            ("Compared", " · ".join(compared)),
        ],
    }


def _step(now: PageFigures) -> str:
    """Advice on the batch as a whole, while nobody is known to work on it."""
    report = now.report
    if _doing(now) or report.is_untouched:
        return ""
    if now.batch.paused is not None and not report.is_complete:
        report = attrs.evolve(report, stopped=f"{PAUSED}: {now.batch.paused}")
    return going_on(report, now.ledger, clean=(now.batch.certificate or {}).get("clean"))
