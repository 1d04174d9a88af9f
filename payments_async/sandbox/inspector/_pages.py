"""The pages: which template each has, and what it is given to show."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

import attrs

from .._journal import Exchange, Tried
from .._operations import INTERFACE_VERSION, NAMES, PREFIX
from .._scenarios import WORDS
from .._values import Change, Delivery
from ..control_api import _records, _requests, _time
from ..control_api._views import body_view, entry_view, exchange_view, rule_view
from ..webhooks._letters import ATTEMPT_EVENTS, PAYMENT_EVENTS, PAYOUT_EVENTS
from . import _boards
from .advisor import advise
from .assumptions import assumptions

if TYPE_CHECKING:
    from .._sandbox import Sandbox

Context = dict[str, object]

_ROWS = 80
_PAYMENTS = 15
_RULES = 50
_GAUGES = 60
_FINDINGS = 20
_SAME = 30
_LOOKED_AT = 5_000
"""Entries that the Advisor's page looks at: the newest."""

_LINES = {
    "slow": "the answer came late.",
    "hang": "no answer came, and the connection stayed open.",
    "drop": "the connection was closed before the answer.",
    "reset": "the connection was reset before the answer.",
    "cut": "only the first half of this arrived.",
}
"""What each fault of the line did to an answer."""

_EVENTS = (*PAYMENT_EVENTS, *ATTEMPT_EVENTS, *PAYOUT_EVENTS)
_KINDS: Mapping[str, tuple[type, ...]] = {
    "": (),
    "requests": (Exchange,),
    "changes": (Change,),
    "webhooks": (Delivery, Tried),
}

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
class Look:
    """One look at the sandbox: what was asked for, and by which name of the host."""

    sandbox: Sandbox
    query: Mapping[str, str]
    host: str | None = None

    @property
    def origin(self) -> str:
        """The address as the reader knows it."""
        return f"http://{self.host}" if self.host else self.sandbox.origin

    def common(self, name: str, title: str) -> Context:
        """What every page shows."""
        with self.sandbox.present():
            last = self.sandbox.journal.last
        return {
            "nav": NAV,
            "here": name,
            "title": title,
            "base_url": self.origin + PREFIX,
            "profile": self.sandbox.profile.name,
            "clock": _time.clock_view(self.sandbox),
            "last": last,
            "version": INTERFACE_VERSION,
        }


@attrs.frozen
class Page:
    """An address below `/_sandbox/` and what is there."""

    name: str
    title: str
    pattern: re.Pattern[str]
    template: str
    context: Callable[..., Context]


def _overview(look: Look) -> Context:
    show = look.query.get("show", "")
    kinds = _KINDS.get(show, ())
    entries = look.sandbox.entries(0, _ROWS * 10 if kinds else _ROWS)
    chosen = [entry for entry in reversed(entries) if not kinds or isinstance(entry.item, kinds)]
    with look.sandbox.present() as world:
        payouts = sum(len(tenant.payouts) for tenant in world.tenants.values())
        payments = sum(len(tenant.payments) for tenant in world.tenants.values())
    return {
        "rows": [entry_view(entry) for entry in chosen[:_ROWS]],
        "show": show if show in _KINDS else "",
        "shows": tuple(_KINDS),
        "happened": look.sandbox.journal.last,
        "is_empty": look.sandbox.journal.first > look.sandbox.journal.last,
        "payouts": payouts,
        "payments": payments,
        "rules": len(look.sandbox.unused_rules),
        "api_key": look.sandbox.api_key,
    }


def _request(look: Look, request_id: str) -> Context:
    exchange = _requests.find(look.sandbox, request_id)
    reveal = look.query.get("reveal") == "1"
    log = exchange.log
    same = [one for one in look.sandbox.requests if _same_group(one, log)][-_SAME:]
    shown = exchange_view(exchange, reveal=reveal)
    bodies = [exchange.body, exchange.answer.body if exchange.answer else None]
    hides = any(body_view(body, reveal=True) != body_view(body, reveal=False) for body in bodies)
    return {"request": shown, "same": same, "reveal": reveal, "hides": hides, "lines": _LINES}


def _same_group(one: object, log: object) -> bool:
    key = getattr(log, "idempotency_key", None)
    same = getattr(one, "idempotency_key", None) == key and getattr(one, "key", None) == getattr(
        log, "key", 0
    )
    return key is not None and same


def _payments(look: Look) -> Context:
    with look.sandbox.present() as world:
        found = islice(_records.newest_payments(world), _PAYMENTS)
        shown = [_boards.payment_card(payment, world.now) for payment in found]
        total = sum(len(tenant.payments) for tenant in world.tenants.values())
    return {"payments": shown, "total": total}


def _payouts(look: Look) -> Context:
    with look.sandbox.present() as world:
        columns = _boards.payout_columns(world)
        total = sum(len(tenant.payouts) for tenant in world.tenants.values())
    return {"columns": columns, "total": total}


def _webhooks(look: Look) -> Context:
    return {"webhooks": _boards.webhook_rows(look.sandbox, look.query.get("open", "")), "events": _EVENTS}


def _phone(look: Look) -> Context:
    with look.sandbox.present() as world:
        return {"messages": _boards.phone_messages(world)}


def _faults(look: Look) -> Context:
    rules = sorted(look.sandbox.rules, key=lambda rule: rule.is_used_up)[:_RULES]
    more = len(look.sandbox.rules) - len(rules)
    return {"rules": [rule_view(rule) for rule in rules], "more": more, "operations": NAMES, "words": WORDS}


def _clock(look: Look) -> Context:
    return {"speeds": (("Real time", 1), ("×10", 10), ("×60", 60), ("×3600", 3600))}


def _fullness(gauge: Context) -> float:
    return int(str(gauge["used"])) / int(str(gauge["limit"]))


def _limits(look: Look) -> Context:
    gauges = [gauge for gauge in _time.gauges(look.sandbox) if gauge["used"]] or _time.gauges(look.sandbox)
    return {"gauges": sorted(gauges, key=_fullness, reverse=True)[:_GAUGES]}


def _advisor(look: Look) -> Context:
    entries = look.sandbox.entries(0, _LOOKED_AT)
    requests = sum(isinstance(entry.item, Exchange) for entry in entries)
    findings = advise(entries)
    more = max(0, len(findings) - _FINDINGS)
    return {"findings": findings[:_FINDINGS], "more": more, "looked_at": requests}


def _assumptions(look: Look) -> Context:
    return {"gaps": assumptions(look.sandbox.profile)}


def _page(name: str, title: str, context: Callable[..., Context], pattern: str | None = None) -> Page:
    template = f"{name or 'overview'}.html"
    return Page(name, title, re.compile(pattern or re.escape(name), re.ASCII), template, context)


PAGES: tuple[Page, ...] = (
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
