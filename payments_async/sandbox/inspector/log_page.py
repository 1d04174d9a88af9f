"""The overview with its log, and the page of one request."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from .._journal import Item, JournalEntry, LoggedExchange
from ..common.values import LoggedRequest
from ..control_api.clock import gauges as gauges_of
from ..control_api.json_views import body_view, exchange_view
from . import charts
from .activity import STATUSES, contains, has_status, moment_of, newest
from .log_lines import KINDS, RecordNames, delivered, lines, shows
from .page_request import Context, PageRequest

if TYPE_CHECKING:
    from .._controls import SandboxControls

_ROWS = 46
_ENTRIES = _ROWS * 10
"""Entries that the log's lines are made of: a line may need several."""

_LONGEST = 200
_SAME = 30


def overview(page: PageRequest) -> Context:
    """The figures, the chart and the log."""
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


def request(page: PageRequest, request_id: str) -> Context:
    """One request, with what it caused and those of its idempotency key; `LookupError`."""
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
