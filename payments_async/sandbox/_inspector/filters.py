"""Filters of the templates: times, numbers, JSON, and the colour of a status."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlencode

import msgspec

from .._common.json import encode
from .._common.operations import CONSOLE
from .._common.patterns import escaped
from .._common.timestamps import stamp
from .._common.values import LoggedRequest
from .._traffic import Outcome, outcome_of
from .._webhooks import Webhook
from ..advisor._evidence import REPLAY_HEADER
from .search import LONGEST

_TONES = {
    "completed": "ok",
    "refunded": "ok",
    "partially_refunded": "ok",
    "failed": "bad",
    "expired": "bad",
    "delivered": "ok",
    "failing": "bad",
    "given up": "bad",
    "dropped": "bad",
    "refused": "wait",
}
_PAGES = {"po_": "payouts", "wh_": "webhooks", "req": "requests"}
_ID = re.compile(
    r"(?<![A-Za-z0-9_])(?:(?:po|pi|cs|pa)_[a-z0-9]{20}|(?:wh|req)_[0-9]{8})(?![A-Za-z0-9_])", re.ASCII
)
_WHOLE, _HEAD, _TAIL = 28, 18, 4
_OUTCOMES: Mapping[Outcome, str] = {"ok": "ok", "refused": "wait", "failed": "bad", "unanswered": "wait"}
_CLASSES = {2: "ok", 3: "wait", 4: "wait", 5: "bad"}


def moment(at: float | str) -> str:
    """A date and time to the second, as in `2026-01-01 00:00:05`."""
    text = stamp(at) if isinstance(at, float) else at
    return text[:19].replace("T", " ")


def day(at: float | str) -> str:
    """The date, as in `2026-01-01`."""
    return moment(at)[:10]


def clock(at: float | str) -> str:
    """The time of day to the millisecond."""
    text = stamp(at) if isinstance(at, float) else at
    return text[11:23]


def when(at: float, now: float) -> str:
    """The time of day to the second, with the date of another day than today."""
    return moment(at)[11 if day(at) == day(now) else 0 :]


def pretty(value: object) -> str:
    """JSON, indented by two spaces."""
    return msgspec.json.format(encode(value), indent=2).decode()


def plain(value: float) -> str:
    """A number without zeros at its end: `86400`, `1.5`."""
    return f"{value:g}"


def lasted(seconds: float | None) -> str:
    """A duration: `under way`, `340 µs`, `12 ms`, `1.25 s`."""
    if seconds is None:
        return "under way"
    for unit, size in (("µs", 1e6), ("ms", 1e3)):
        if round(seconds * size) < 1_000:
            return f"{seconds * size:.0f} {unit}"
    return f"{seconds:,.2f} s"


def passed(seconds: float) -> str:
    """Time between two events: `340 ms`, `5 s`, `2 min`, `1 h 30 min`, `3 days`."""
    if round(seconds * 1e3) < 1_000:
        return f"{seconds * 1e3:.0f} ms"
    if float(short := f"{seconds:.3g}") < 60:
        return f"{short} s"
    if round(seconds) >= 48 * 3_600:
        return f"{seconds / 86_400:,.0f} days"
    minutes, rest = divmod(round(seconds), 60)
    parts = [(minutes // 60, "h"), (minutes % 60, "min"), (rest, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count)


def ago(seconds: float) -> str:
    """How long ago: `now`, `40 s ago`, `12 min ago`, `5 h ago`, `3 days ago`."""
    for unit, size, most in (("s", 1, 60), ("min", 60, 60), ("h", 3_600, 48)):
        if round(seconds / size) < most:
            return f"{seconds / size:.0f} {unit} ago" if seconds >= 1 else "now"
    return f"{seconds / 86_400:,.0f} days ago"


def middle(text: str) -> str:
    """A long id or reference without its middle, as in `june-salaries-2026…a41f`."""
    return text if len(text) <= _WHOLE else f"{text[:_HEAD]}…{text[-_TAIL:]}"


def page_of(name: str) -> str:
    """The address of the page of a request, a webhook, a payout, or a payment by the id of any part of it."""
    return f"{CONSOLE}{_PAGES.get(name[:3], 'payments')}/{name}"


def search_for(text: str, term: str) -> str:
    """The address of the search for a key or reference; empty for one that is too long for a search."""
    find = f'{term}:"{escaped(text)}"'
    return f"{CONSOLE}?{urlencode({'find': find})}" if len(find) <= LONGEST else ""


def linked(text: str) -> str:
    """A text as HTML, in which each id is a link to its page."""
    from markupsafe import Markup, escape  # it comes with jinja2, which a page has imported

    html = _ID.sub(lambda match: f'<a href="{page_of(match[0])}">{match[0]}</a>', escape(text))
    return Markup(html)  # noqa: S704 - the text is escaped, and ids are letters and digits


def tone(status: str) -> str:
    """The colour of a status: ok, bad for what failed, else idle."""
    return _TONES.get(status, "idle")


def tried_tone(status: int | None, error: str | None) -> str:
    """The colour of a webhook's try, by the status that its receiver answered, None for nothing."""
    return "bad" if error or status is None else _CLASSES.get(status // 100, "idle")


def state_of(webhook: Webhook) -> str:
    """The state of a delivery in words; `failing` while it waits for another try after a failure."""
    return "failing" if webhook.state == "waiting" and webhook.tries else webhook.state.replace("_", " ")


def got(status: int, fault: str | None) -> tuple[str, str]:
    """What a request's caller got, the status or `no answer`, and its colour."""
    outcome = outcome_of(status, fault)
    return "no answer" if outcome == "unanswered" else str(status), _OUTCOMES[outcome]


def marks_of(log: LoggedRequest) -> list[tuple[str, str]]:
    """What is unusual of a request, each with its colour."""
    marks = [("idle", log.fault)] if log.fault else []
    marks += [("idle", "replayed")] if log.replayed else []
    return marks + ([("idle", "sent again")] if REPLAY_HEADER in log.headers else [])


_ALL = (
    *(ago, clock, day, got, lasted, linked),
    *(middle, moment, page_of, passed, plain, pretty, search_for, tone, tried_tone, when),
)
FILTERS: Mapping[str, Callable[..., object]] = {function.__name__: function for function in _ALL}
