"""The pages of tools: faults, clock, limits, Advisor, assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

from .._common.operations import CONSOLE, NAMES, OPERATIONS
from .._common.rate_limits import MINUTES, WINDOW
from .._common.scenario_words import WORDS
from .._control_api.clock import gauges as gauges_of
from .._control_api.json_views import rule_view
from ..advisor import HEADINGS
from ..advisor._assumptions import assumptions as gaps_of
from ..advisor._evidence import Finding, grouped, ids_of
from ..advisor._findings import KeptFinding, findings_of
from ..advisor._webhooks import READ_BACK_WITHIN
from . import charts
from .causes import MEMBERS, FailureGroup
from .filters import page_of
from .lists import cut
from .page_request import Context, PageRequest

_RULES = 32
_GAUGES = 48
_DRAWN = 12
"""Windows with a chart, at most."""
_RECORDS = ("po_", "pi_", "pa_", "cs_")
_RISKS: Mapping[str, tuple[str, str]] = {
    "money": ("money at risk", "bad"),
    "secret": ("secret at risk", "bad"),
    "limits": ("limits", "wait"),
    "request": ("may be refused", "wait"),
}
"""The words and the colour of each severity."""


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
            words={"ok": "let through", "refused": "answered 429"},
        )
        for number, gauge in enumerate(shown.shown[:_DRAWN])
        if gauge.minutes and gauge.refused and any([*gauge.minutes, *gauge.refused])
    }
    finds = {scope: _of_class(scope) for scope in {gauge.scope for gauge in shown.shown}}
    return {"gauges": shown.shown, "drawn": drawn, "finds": finds, "more": shown.more, "last": shown.last}


def _of_class(scope: str) -> str:
    """The search for the requests that a limit counts."""
    return " OR ".join(f"op:{operation.name}" for operation in OPERATIONS if operation.limit == scope)


def advisor(page: PageRequest) -> Context:
    """The findings, those of one mistake together."""
    findings = findings_of(page.sandbox)
    mistakes = grouped(findings.update(page.sandbox), attrgetter("mistake"))
    return {
        "mistakes": [_mistake(alike) for alike in mistakes.values()],
        "requests": findings.requests,
        "watched": findings.watched,
        "now": page.sandbox.clock.now(),
        "within": READ_BACK_WITHIN,
    }


def _mistake(alike: Sequence[KeptFinding]) -> Context:
    """Findings about several records that are one mistake, as a cause."""
    finding = alike[0].finding
    end, colour = _RISKS[finding.severity]
    shown = [_about(kept.finding) for kept in alike] if len(alike) > 1 else ids_of(finding)
    cause = FailureGroup(
        HEADINGS[finding.rule],
        end,
        colour,
        finding.fix,
        len(alike),
        (),
        min(kept.first_at for kept in alike),
        max(kept.last_at for kept in alike),
        [(one, page_of(one)) for one in shown[:MEMBERS]],
        CONSOLE + "api/advice",
    )
    return {"cause": cause, "example": alike[0]}


def _about(finding: Finding) -> str:
    """The record of a finding, or the first request or webhook that shows it."""
    return finding.subject if finding.subject[:3] in _RECORDS else ids_of(finding)[0]


def assumptions(page: PageRequest) -> Context:
    """The gaps of the interface."""
    return {"gaps": gaps_of(page.sandbox.profile)}
