"""The overview with its log, and the page of one request."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from .._common.rate_limits import SandboxLimits
from .._common.values import LoggedRequest
from .._control_api.clock import gauges as gauges_of
from .._control_api.json_views import body_view, exchange_view
from .._journal import Item, Journal, LoggedExchange
from . import charts
from .activity import LogMatches, moment_of
from .filters import got
from .lists import cut
from .log_lines import RecordNames, lines
from .page_request import Context, PageRequest
from .search import KINDS, TERMS, EntryTest, SearchQuery, read_query

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
    """The figures, the chart and the log."""
    sandbox = page.sandbox
    find = page.query.get("find", "").strip()
    with sandbox.reading() as world:
        journal = sandbox.journal
        items, numbers = journal.items(), journal.numbers()
        oldest = journal.oldest if journal.first > 1 else None
        names, limits = RecordNames(world, items), world.limits
        payouts = sum(len(tenant.payouts) for tenant in world.tenants.values())
        payments = sum(len(tenant.payments) for tenant in world.tenants.values())
    return {
        **_traffic(sandbox),
        **_log(
            page, read_query(find), LogMatches(items, numbers, names.root, range(len(items))), names, limits
        ),
        "seen": _seen(items),
        "terms": TERMS,
        "find": find,
        "is_empty": not items,
        "reaches_to": moment_of(oldest) if oldest else None,
        "without_success_to": moment_of(items[0]) if oldest and items[0] is not oldest else None,
        "payouts": payouts,
        "payments": payments,
        "rules": sum(not rule.is_over for rule in sandbox.rules),
        "api_key": sandbox.api_key,
    }


def _log(
    page: PageRequest, query: SearchQuery, every: LogMatches, names: RecordNames, limits: SandboxLimits
) -> Context:
    """The lines that fit a search, newest first, and the tabs. It holds no lock, since it may take long."""
    since, until = page.span
    is_all = since == -math.inf and until == math.inf
    in_time = every.of(None if is_all else lambda item: since <= moment_of(item) < until)
    base = in_time.of(query.without_kinds.tester(names))
    before = page.before
    kinds = {kind: base.of(partial(_fits, KINDS[kind], names)) for kind in KINDS}
    hits = in_time.of(query.tester(names)) if len(query.kinds) > 1 else kinds.get("".join(query.kinds), base)
    shown = hits.page(int(before) if _NUMBER.fullmatch(before) else every.end, _ROWS)
    wanted = not query.faults
    return {
        "faults": query.faults,
        "rows": lines(shown.entries, names, limits) if wanted else [],
        "older_entries": shown.older if wanted else 0,
        "as_text": [term.value for term in query.terms if term.name and ":" not in term.text],
        "before": shown.before,
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
    }


def _fits(test: EntryTest, names: RecordNames, item: Item) -> bool:
    return test(item, names)


def _seen(items: Sequence[Item]) -> Mapping[str, Sequence[str]]:
    """The values of some terms that the journal has now."""
    logs = {(log.operation, log.status, log.fault) for log in _logs(items)}
    ends = {got(status, fault)[0] for _, status, fault in logs}
    return {
        "status": sorted("none" if end == "no answer" else end for end in ends)[:_SEEN],
        "op": sorted({operation for operation, _, _ in logs if operation}),
        "fault": sorted({fault for _, _, fault in logs if fault})[:_SEEN],
        "is": tuple(KINDS),
    }


def _logs(items: Sequence[Item]) -> Iterator[LoggedRequest]:
    return (item.log for item in items if isinstance(item, LoggedExchange))


def _traffic(sandbox: SandboxControls) -> Context:
    """The figures and the chart of the last fifteen minutes."""
    with sandbox.reading() as world:
        now, traffic = world.now, sandbox.journal.traffic
        steps, durations = traffic.steps(now), traffic.durations(now)
    latest = steps[-2:]
    tries = sum(step.delivered + step.undelivered for step in steps)
    gauges = [gauge for gauge in gauges_of(sandbox) if not gauge.scope.startswith("record ")]
    return {
        "chart": charts.request_chart(steps),
        "sparkline": charts.sparkline([step.total for step in steps]),
        "rate": sum(step.total for step in latest) / (now - latest[0].at),
        "fullest": gauges[0] if gauges else None,
        "p95": durations[math.ceil(0.95 * len(durations)) - 1] if durations else None,
        "tries": tries,
        "delivered": sum(step.delivered for step in steps) / tries if tries else None,
    }


def request(page: PageRequest, request_id: str) -> Context:
    """One request, with what it caused and those of its idempotency key; `LookupError`."""
    reveal = page.query.get("reveal") == "1"
    with page.sandbox.reading() as world:
        kept, entries = page.sandbox.journal.with_causes(request_id)
        exchange = replace(kept)  # a copy, since the journal may drop its bodies
        line = lines(entries, RecordNames(world), world.limits)
        same = _alike(page.sandbox.journal, exchange.log)
    group = cut(reversed(same), _SAME, attrgetter("request_id"), page.before)
    bodies = [exchange.body, exchange.answer.body if exchange.answer else None]
    hides = any(body_view(body, reveal=True) != body_view(body, reveal=False) for body in bodies)
    shown = exchange_view(exchange, reveal=reveal)
    return {
        "request": shown,
        "line": line[0],
        "same": group,
        "alike": len(same),
        "reveal": reveal,
        "hides": hides,
    }


def _alike(journal: Journal, log: LoggedRequest) -> list[LoggedRequest]:
    """The requests with the same idempotency key and API key, oldest first."""
    if log.idempotency_key is None:
        return []
    logs = _logs([entry.item for entry in journal.about(log.idempotency_key)])
    return [one for one in logs if (one.idempotency_key, one.key) == (log.idempotency_key, log.key)]
