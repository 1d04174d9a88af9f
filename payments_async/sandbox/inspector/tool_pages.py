"""The pages of tools: faults, clock, limits, Advisor, assumptions."""

from __future__ import annotations

from collections.abc import Sequence

from ..advisor import HEADINGS
from ..advisor.assumptions import assumptions as gaps_of
from ..advisor.findings import KeptFinding, findings_of
from ..advisor.webhooks import READ_BACK_WITHIN
from ..common.operations import NAMES
from ..common.scenario_words import WORDS
from ..control_api.clock import gauges as gauges_of
from ..control_api.json_views import rule_view
from . import charts
from .page_request import Context, PageRequest

_RULES = 36
_GAUGES = 60
_DRAWN = 12
"""Windows with a chart, at most."""
_CASES = 6


def faults(page: PageRequest) -> Context:
    """The rules."""
    rules = sorted(page.sandbox.rules, key=lambda rule: rule.is_over)[:_RULES]
    more = len(page.sandbox.rules) - len(rules)
    return {"rules": [rule_view(rule) for rule in rules], "more": more, "operations": NAMES, "words": WORDS}


def clock(page: PageRequest) -> Context:
    """The clock's speeds."""
    return {"speeds": (("Real time", 1), ("×10", 10), ("×60", 60), ("×3600", 3600))}


def limits(page: PageRequest) -> Context:
    """How full each window is."""
    gauges = gauges_of(page.sandbox)
    drawn = {
        place: charts.limit_chart(gauge.minutes, gauge.limit)
        for place, gauge in enumerate(gauges[:_DRAWN])
        if gauge.minutes and any(gauge.minutes)
    }
    return {"gauges": gauges[:_GAUGES], "drawn": drawn, "more": max(0, len(gauges) - _GAUGES)}


def advisor(page: PageRequest) -> Context:
    """The findings, those of one mistake together."""
    findings = findings_of(page.sandbox)
    found = findings.update(page.sandbox)
    return {
        "groups": _groups(found),
        "requests": findings.requests,
        "watched": findings.watched,
        "now": page.sandbox.clock.now(),
        "within": READ_BACK_WITHIN,
    }


def _groups(findings: Sequence[KeptFinding]) -> list[Context]:
    """The findings by rule and reason, in their order."""
    groups: dict[tuple[str, str], list[KeptFinding]] = {}
    for kept in findings:
        groups.setdefault((kept.finding.rule, kept.finding.why), []).append(kept)
    return [
        {
            "heading": HEADINGS[alike[0].finding.rule],
            "severity": alike[0].finding.severity,
            "why": alike[0].finding.why,
            "fix": alike[0].finding.fix,
            "section": alike[0].finding.section,
            "cases": alike[:_CASES],
            "more": max(0, len(alike) - _CASES),
        }
        for alike in groups.values()
    ]


def assumptions(page: PageRequest) -> Context:
    """The gaps of the interface."""
    return {"gaps": gaps_of(page.sandbox.profile)}
