"""The overview with its log, and the page of one request."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from .._api.rule import Rule
from .._common.rate_limits import SandboxLimits
from .._common.values import LoggedRequest
from .._control_api.clock import gauges as gauges_of
from .._control_api.json_views import body_view, exchange_view, rule_view
from .._journal import Item, Journal, LoggedExchange, WebhookTried
from .._traffic import STEP
from . import charts
from .activity import LogMatches, moment_of
from .causes import FailureGroup, causes, failed_items, failed_webhooks
from .filters import got, passed
from .lists import cut
from .log_lines import RecordNames, lines
from .page_request import Context, PageRequest
from .search import KINDS, MARKS, TERMS, SearchQuery, kinds_of, read_query

if TYPE_CHECKING:
    from .._controls import SandboxControls

_ROWS = 24
_SAME = 30
_SEEN = 12
"""Values of a term that are offered, at most."""
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)
_TABS = {"": "All", "request": "Requests", "record": "Records", "webhook": "Webhooks", "failed": "Failed"}
"""The kinds of entries that have a tab, by their term `is:`."""


def overview(page: PageRequest) -> Context:
    """The figures and the chart, and the log; of a search its results alone."""
    sandbox = page.sandbox
    find = page.query.get("find", "").strip()
    with sandbox.reading() as world:
        numbers, items = sandbox.journal.kept()
        names, limits = RecordNames(world, items), world.limits
        payouts = sum(len(tenant.payouts) for tenant in world.tenants.values())
        payments = sum(len(tenant.payments) for tenant in world.tenants.values())
        reach = reach_of(sandbox.journal, items)
        made = sandbox.journal.traffic.count(*page.span)
    is_search = find or page.before or page.has_span
    return {
        "is_empty": not items,
        "log_reach": reach,
        "figures": None if is_search else {**_traffic(sandbox), "payouts": payouts, "payments": payments},
        **_log(page, read_query(find), LogMatches(numbers, items, names.root), names, limits, made),
        "seen": _seen(items),
        "terms": TERMS,
        "find": find,
        "rules": sum(not rule.is_over for rule in sandbox.rules),
        "api_key": sandbox.api_key,
    }


def reach_of(journal: Journal, items: Sequence[Item] = ()) -> Context:
    """How far back the log reaches, by kind of entry, and how many earlier entries are gone.

    Of the entries that are looked through, `items`, also the time up to which bodies are gone.
    """
    gone = {kind: (moment_of(item), count) for kind, (item, count) in journal.reaches.items()}
    requests = (item for item in reversed(items) if isinstance(item, LoggedExchange))
    bodies = next((item.log.at for item in requests if not item.is_whole), None)
    return {"since": journal.oldest and moment_of(journal.oldest), "gone": gone, "bodies": bodies}


def _log(
    page: PageRequest,
    query: SearchQuery,
    every: LogMatches,
    names: RecordNames,
    limits: SandboxLimits,
    made: int | None,
) -> Context:
    """The lines that fit a search, newest first, and the tabs. It holds no lock, since it may take long.

    `made` is how many requests there were in its time, where that is known.
    """
    since, until = page.span
    in_time = every.of((lambda item: since <= moment_of(item) < until) if page.has_span else None)
    base = in_time.of(query.without_kinds.tester(names))
    before = page.before
    kinds = base.by_kind(partial(kinds_of, facts=names), KINDS)
    hits = in_time.of(query.tester(names)) if len(query.kinds) > 1 else kinds.get("".join(query.kinds), base)
    shown = hits.page(int(before) if _NUMBER.fullmatch(before) else every.end, _ROWS)
    wanted = not query.faults
    return {
        "faults": query.faults,
        "rows": lines(shown.entries, names, limits) if wanted else [],
        "older_entries": shown.older if wanted else 0,
        "as_text": [term.value for term in query.terms if term.name and ":" not in term.text],
        "before": shown.before,
        "causes": _causes(page, hits.found, names, limits) if "failed" in query.kinds and wanted else (),
        "tabs": [
            {
                "kind": kind,
                "label": label,
                "find": query.without_kinds.text(*([f"is:{kind}"] if kind else [])),
                "count": kinds[kind].count() if kind and wanted else None,
                "here": query.kinds == ((kind,) if kind else ()),
            }
            for kind, label in _TABS.items()
        ],
        "since": page.query.get("from", "") if since > -math.inf else "",
        "until": page.query.get("to", "") if until < math.inf else "",
        "span": (since, until),
        "made": made,
        "lost": made and made - sum(isinstance(item, LoggedExchange) for item in in_time.found),
    }


def _causes(
    page: PageRequest, found: Sequence[Item], names: RecordNames, limits: SandboxLimits
) -> list[FailureGroup]:
    """The causes of what failed."""
    tried = {item.webhook_id for item in found if isinstance(item, WebhookTried)}
    hooks = [one for one in page.sandbox.webhooks if one.id in tried]
    return causes([*failed_items(found, names.record, limits), *failed_webhooks(hooks)])


def _seen(items: Sequence[Item]) -> Mapping[str, Sequence[str]]:
    """The values of some terms that the journal has now."""
    requests = (item.log for item in items if isinstance(item, LoggedExchange))
    logs = {(log.operation, log.status, log.fault) for log in requests}
    ends = {got(status, fault)[0] for _, status, fault in logs}
    return {
        "status": sorted("none" if end == "no answer" else end for end in ends)[:_SEEN],
        "op": sorted({operation for operation, _, _ in logs if operation}),
        "fault": sorted({fault for _, _, fault in logs if fault})[:_SEEN],
        "is": (*KINDS, *MARKS),
    }


def _traffic(sandbox: SandboxControls) -> Context:
    """The figures and the chart of the last fifteen minutes."""
    with sandbox.reading() as world:
        now, traffic = world.now, sandbox.journal.traffic
        steps, durations, notes = traffic.steps(now), traffic.durations(now), list(traffic.notes)
    latest = steps[-2:]
    tried = sum(step.deliveries for step in steps)
    gauges = [gauge for gauge in gauges_of(sandbox) if not gauge.scope.startswith("record ")]
    return {
        "chart": charts.chart(
            [(step.at, step.requests) for step in steps],
            STEP,
            notes=[(at, _words(note)) for at, note in notes],
        ),
        "rate": sum(step.total for step in latest) / (now - latest[0].at),
        "fullest": gauges[0] if gauges else None,
        "p95": durations[math.ceil(0.95 * len(durations)) - 1] if durations else None,
        "timed": len(durations),
        "deliveries": tried,
        "delivered": sum(step.delivered for step in steps) / tried if tried else None,
    }


def _words(note: object) -> str:
    """What was done: a rule was set, the clock moved by so many seconds, or what the text says."""
    if isinstance(note, Rule):
        return f"{note.id} set: {rule_view(note)['words']} on {note.operation}"
    return f"clock moved ahead by {passed(note)}" if isinstance(note, (float, int)) else str(note)


def request(page: PageRequest, request_id: str) -> Context:
    """One request, with what it caused and those of its idempotency key; `LookupError`."""
    reveal = page.query.get("reveal") == "1"
    with page.sandbox.reading() as world:
        kept, entries = page.sandbox.journal.with_causes(request_id)
        exchange = replace(kept)  # a copy, since the journal may drop its bodies
        line = lines(entries, RecordNames(world), world.limits)
        same, reach = _alike(page.sandbox.journal, exchange.log), reach_of(page.sandbox.journal)
    group = cut(reversed(same), _SAME, attrgetter("request_id"), page.before)
    bodies = [exchange.body, exchange.answer.body if exchange.answer else None]
    hides = any(body_view(body, reveal=True) != body_view(body, reveal=False) for body in bodies)
    shown = exchange_view(exchange, reveal=reveal)
    return {
        "request": shown,
        "line": line[0],
        "same": group,
        "alike": len(same),
        "log_reach": reach,
        "reveal": reveal,
        "hides": hides,
    }


def _alike(journal: Journal, log: LoggedRequest) -> list[LoggedRequest]:
    """The requests with the same idempotency key and API key, oldest first."""
    if log.idempotency_key is None:
        return []
    items = [entry.item for entry in journal.about(log.idempotency_key)]
    logs = [item.log for item in items if isinstance(item, LoggedExchange)]
    return [one for one in logs if (one.idempotency_key, one.key) == (log.idempotency_key, log.key)]
