"""The pages of tools: faults, clock, limits, Advisor, assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from .._common.operations import NAMES
from .._common.rate_limits import MINUTES, WINDOW
from .._common.scenario_words import WORDS
from .._control_api.clock import gauges as gauges_of
from .._control_api.json_views import rule_view
from ..advisor import HEADINGS
from ..advisor._assumptions import assumptions as gaps_of
from ..advisor._findings import KeptFinding, findings_of
from ..advisor._webhooks import READ_BACK_WITHIN
from . import charts
from .lists import cut
from .page_request import Context, PageRequest

_RULES = 32
_GAUGES = 60
_DRAWN = 12
"""Windows with a chart, at most."""
_CASES = 6
_MORE_CASES = 20
"""Cases of one mistake: beside others, and by itself."""


def faults(page: PageRequest) -> Context:
    """The rules."""
    rules = sorted(page.sandbox.rules, key=lambda rule: rule.is_over)
    shown = cut(rules, _RULES, attrgetter("id"), page.before)
    views = [rule_view(rule) for rule in shown.shown]
    return {"rules": views, "more": shown.more, "last": shown.last, "operations": NAMES, "words": WORDS}


def clock(page: PageRequest) -> Context:
    """The clock's speeds."""
    return {"speeds": (("Real time", 1), ("×10", 10), ("×60", 60), ("×3600", 3600))}


def limits(page: PageRequest) -> Context:
    """How full each window is, with a chart of the last minutes of each class of requests."""
    with page.sandbox.reading() as world:
        gauges, now = gauges_of(page.sandbox), world.now
    shown = cut(gauges, _GAUGES, lambda one: f"{one.key} {one.scope}", page.before)
    since = (now // WINDOW - MINUTES + 1) * WINDOW
    drawn = {
        number: charts.chart(
            [
                (since + minute * WINDOW, {"ok": ok, "refused": refused})
                for minute, (ok, refused) in enumerate(zip(gauge.minutes, gauge.refused, strict=True))
            ],
            WINDOW,
            gauge.limit,
        )
        for number, gauge in enumerate(shown.shown[:_DRAWN])
        if gauge.minutes and gauge.refused and any([*gauge.minutes, *gauge.refused])
    }
    return {"gauges": shown.shown, "drawn": drawn, "more": shown.more, "last": shown.last}


def advisor(page: PageRequest) -> Context:
    """The findings, those of one mistake together."""
    findings = findings_of(page.sandbox)
    kept = findings.update(page.sandbox)
    return {
        "groups": _groups(kept, page.before),
        "requests": findings.requests,
        "watched": findings.watched,
        "now": page.sandbox.clock.now(),
        "within": READ_BACK_WITHIN,
    }


def _groups(findings: Sequence[KeptFinding], before: str) -> list[Context]:
    """The findings by rule and reason; with `before` only those after this one like it. `LookupError`."""
    groups: dict[tuple[str, str], list[KeptFinding]] = {}
    for kept in findings:
        groups.setdefault((kept.finding.rule, kept.finding.why), []).append(kept)
    every = list(groups.values())
    if before:
        every = [alike for alike in every if any(kept.id == before for kept in alike)]
        if not every:
            raise LookupError(f"{before!r} is not in this list any more")
    return [
        {
            "heading": HEADINGS[alike[0].finding.rule],
            "severity": alike[0].finding.severity,
            "why": alike[0].finding.why,
            "fix": alike[0].finding.fix,
            "section": alike[0].finding.section,
            "count": len(alike),
            "cases": cut(alike, _MORE_CASES if before else _CASES, attrgetter("id"), before),
        }
        for alike in every
    ]


def assumptions(page: PageRequest) -> Context:
    """The gaps of the interface."""
    return {"gaps": gaps_of(page.sandbox.profile)}
