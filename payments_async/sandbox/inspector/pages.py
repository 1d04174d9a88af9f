"""The inspector's pages: the template and the context of each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import attrs

from .._journal import Item, JournalEntry, LoggedExchange
from .._record_actions import find_payment
from ..advisor import HEADINGS
from ..advisor.assumptions import assumptions
from ..advisor.findings import KeptFinding, findings_of
from ..advisor.webhooks import READ_BACK_WITHIN
from ..common.operations import CONSOLE, NAMES, PREFIX
from ..common.scenario_words import WORDS
from ..common.timestamps import read_timestamp
from ..common.values import LoggedRequest
from ..control_api import clock, records
from ..control_api.json_views import body_view, exchange_view, rule_view
from ..records.emit_webhook import ATTEMPT_EVENTS, PAYMENT_EVENTS, PAYOUT_EVENTS
from . import cards, charts
from .activity import STATUSES, contains, has_status, moment_of, newest
from .log_lines import KINDS, RecordNames, delivered, lines, shows

if TYPE_CHECKING:
    from .._controls import SandboxControls

Context = dict[str, object]

_ROWS = 46
_ENTRIES = _ROWS * 10
"""Entries that the log's lines are made of: a line may need several."""

_LONGEST = 200
_PAYMENTS = 11
_RULES = 36
_GAUGES = 60
_DRAWN = 12
"""Windows with a chart, at most."""
_CASES = 6
_SAME = 30
_EVENTS = (*PAYMENT_EVENTS, *ATTEMPT_EVENTS, *PAYOUT_EVENTS)
NAV = (
    ("", "Overview"),
    ("payments", "Payments"),
    ("payouts", "Payouts"),
    ("webhooks", "Webhooks"),
    ("phone", "Phone"),
    ("faults", "Faults"),
    ("clock", "Clock"),
    ("limits", "Limits"),
    ("advisor", "Advisor"),
    ("assumptions", "Assumptions"),
)


@attrs.frozen
class PageRequest:
    """A request for a page: its query, and the name of the host that it used."""

    sandbox: SandboxControls
    query: Mapping[str, str]
    host: str | None = None

    @property
    def origin(self) -> str:
        """The address that the reader's browser uses."""
        return f"http://{self.host}" if self.host else self.sandbox.origin

    def link(self, **changes: str) -> str:
        """The address of the overview with changes of its query; an empty text leaves one out."""
        wanted = {name: text for name, text in {**self.query, **changes}.items() if text}
        return f"{CONSOLE}?{urlencode(wanted)}" if wanted else CONSOLE

    @property
    def span(self) -> tuple[float, float]:
        """The times in which to look: seconds since 1970."""
        since, until = (read_timestamp(self.query.get(name, "")) for name in ("from", "to"))
        return -math.inf if since is None else since, math.inf if until is None else until

    def common(self, name: str, title: str) -> Context:
        """The context of every page."""
        with self.sandbox.reading():
            changes = self.sandbox.journal.changes
        found = findings_of(self.sandbox).recent(self.sandbox)
        return {
            "findings": len(found),
            "money_at_risk": any(kept.finding.severity == "money" for kept in found),
            "nav": NAV,
            "here": name,
            "title": title,
            "base_url": self.origin + PREFIX,
            "profile": self.sandbox.profile.name,
            "clock": clock.clock_view(self.sandbox),
            "changes": changes,
        }


@attrs.frozen
class InspectorPage:
    """A page: its address below `/_sandbox/`, and its context."""

    name: str
    title: str
    pattern: re.Pattern[str]
    template: str
    context: Callable[..., Context]


def _overview(page: PageRequest) -> Context:
    show, find = page.query.get("show", ""), page.query.get("find", "").strip()[:_LONGEST]
    sandbox, span = page.sandbox, page.span
    is_all = not (show or find or page.query.keys() & {"from", "to"})
    with sandbox.reading() as world:
        names = RecordNames(world)
        entries = sandbox.entries(0, _ENTRIES if is_all else None)
        entries = [entry for entry in entries if span[0] <= moment_of(entry.item) < span[1]]
        chosen = newest(entries, _wanted(entries, show, find, names), _ENTRIES)
        rows = lines(chosen, names, world.limits, show)
        payouts = sum(len(tenant.payouts) for tenant in world.tenants.values())
        payments = sum(len(tenant.payments) for tenant in world.tenants.values())
        last, first = sandbox.journal.last, sandbox.journal.first
    return {
        **_traffic(sandbox),
        "link": page.link,
        "since": page.query.get("from", "") if span[0] > -math.inf else "",
        "until": page.query.get("to", "") if span[1] < math.inf else "",
        "rows": rows[:_ROWS],
        "more": len(rows) > _ROWS or bool(entries and entries[0].seq > first),
        "show": show if show in KINDS else "",
        "shows": tuple(KINDS),
        "find": find,
        "is_empty": first > last,
        "payouts": payouts,
        "payments": payments,
        "rules": sum(not rule.is_over for rule in sandbox.rules),
        "api_key": sandbox.api_key,
    }


def _traffic(sandbox: SandboxControls) -> Context:
    """The figures and the chart of the last fifteen minutes."""
    with sandbox.reading() as world:
        now, traffic = world.now, sandbox.journal.traffic
        steps, durations = traffic.steps(now), traffic.durations(now)
    latest = steps[-2:]
    tries = sum(step.delivered + step.undelivered for step in steps)
    gauges = [gauge for gauge in clock.gauges(sandbox) if not gauge.scope.startswith("record ")]
    return {
        "chart": charts.request_chart(steps),
        "sparkline": charts.sparkline([step.total for step in steps]),
        "rate": sum(step.total for step in latest) / (now - latest[0].at),
        "fullest": gauges[0] if gauges else None,
        "p95": durations[math.ceil(0.95 * len(durations)) - 1] if durations else None,
        "tries": tries,
        "delivered": sum(step.delivered for step in steps) / tries if tries else None,
    }


def _wanted(
    entries: Sequence[JournalEntry], show: str, find: str, names: RecordNames
) -> Callable[[Item], bool]:
    """Make the filter for items of the kind, with the status or the text that is searched for."""
    past = delivered(entries) if show == "wrong" else frozenset()

    def of_kind(item: Item) -> bool:
        return shows(item, show) and getattr(item, "webhook_id", None) not in past

    if not find:
        return of_kind
    status = find.lower()
    if status in STATUSES or any(of_kind(entry.item) and has_status(entry.item, status) for entry in entries):
        return lambda item: of_kind(item) and has_status(item, status)
    return lambda item: of_kind(item) and contains(item, find, names.words)


def _request(page: PageRequest, request_id: str) -> Context:
    entries, exchange = _with_causes(page.sandbox.entries(), request_id)
    reveal = page.query.get("reveal") == "1"
    with page.sandbox.reading() as world:
        line = lines(entries, RecordNames(world), world.limits, "requests")
    same = [one for one in page.sandbox.requests if _same_group(one, exchange.log)][-_SAME:]
    bodies = [exchange.body, exchange.answer.body if exchange.answer else None]
    hides = any(body_view(body, reveal=True) != body_view(body, reveal=False) for body in bodies)
    shown = exchange_view(exchange, reveal=reveal)
    return {"request": shown, "line": line[0], "same": same, "reveal": reveal, "hides": hides}


def _with_causes(entries: list[JournalEntry], request_id: str) -> tuple[list[JournalEntry], LoggedExchange]:
    """A request and what it caused; the request is a copy, since the journal may drop its bodies."""
    for place in range(len(entries) - 1, -1, -1):
        item = entries[place].item
        if isinstance(item, LoggedExchange) and item.log.request_id == request_id:
            return entries[max(0, place - item.caused) : place + 1], attrs.evolve(item)
    raise LookupError(f"no request {request_id!r} in the journal")


def _same_group(one: LoggedRequest, log: LoggedRequest) -> bool:
    key = log.idempotency_key
    return key is not None and (one.idempotency_key, one.key) == (key, log.key)


def _payments(page: PageRequest) -> Context:
    with page.sandbox.reading() as world:
        only = page.query.get("id", "")
        newest = islice(records.newest_payments(world), _PAYMENTS)
        found = [find_payment(world, only)[1]] if only else newest
        shown = [cards.payment_card(payment) for payment in found]
        total = sum(len(tenant.payments) for tenant in world.tenants.values())
    return {"payments": shown, "total": total, "one": only}


def _payouts(page: PageRequest) -> Context:
    with page.sandbox.reading() as world:
        only = page.query.get("id", "")
        columns = cards.payout_columns(world, only)
        total = sum(len(tenant.payouts) for tenant in world.tenants.values())
    return {
        "columns": columns,
        "total": total,
        "one": only,
        "scanned": cards.SCANNED,
        "api_key": page.sandbox.api_key,
    }


def _webhooks(page: PageRequest) -> Context:
    return {"webhooks": cards.webhook_rows(page.sandbox, page.query.get("open", "")), "events": _EVENTS}


def _phone(page: PageRequest) -> Context:
    with page.sandbox.reading() as world:
        return {"messages": cards.phone_messages(world)}


def _faults(page: PageRequest) -> Context:
    rules = sorted(page.sandbox.rules, key=lambda rule: rule.is_over)[:_RULES]
    more = len(page.sandbox.rules) - len(rules)
    return {"rules": [rule_view(rule) for rule in rules], "more": more, "operations": NAMES, "words": WORDS}


def _clock(page: PageRequest) -> Context:
    return {"speeds": (("Real time", 1), ("×10", 10), ("×60", 60), ("×3600", 3600))}


def _limits(page: PageRequest) -> Context:
    gauges = clock.gauges(page.sandbox)
    drawn = {
        place: charts.limit_chart(gauge.minutes, gauge.limit)
        for place, gauge in enumerate(gauges[:_DRAWN])
        if gauge.minutes and any(gauge.minutes)
    }
    return {"gauges": gauges[:_GAUGES], "drawn": drawn, "more": max(0, len(gauges) - _GAUGES)}


def _advisor(page: PageRequest) -> Context:
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


def _assumptions(page: PageRequest) -> Context:
    return {"gaps": assumptions(page.sandbox.profile)}


def _page(
    name: str, title: str, context: Callable[..., Context], pattern: str | None = None
) -> InspectorPage:
    template = f"{name or 'overview'}.html"
    return InspectorPage(name, title, re.compile(pattern or re.escape(name), re.ASCII), template, context)


PAGES: tuple[InspectorPage, ...] = (
    _page("", "Overview", _overview),
    _page("request", "Request", _request, r"requests/(?P<request_id>[A-Za-z0-9_-]{1,64})"),
    _page("payments", "Payments", _payments),
    _page("payouts", "Payouts", _payouts),
    _page("webhooks", "Webhooks", _webhooks),
    _page("phone", "Simulated phone", _phone),
    _page("faults", "Faults", _faults),
    _page("clock", "Clock", _clock),
    _page("limits", "Limits", _limits),
    _page("advisor", "Advisor", _advisor),
    _page("assumptions", "Assumptions", _assumptions),
)
