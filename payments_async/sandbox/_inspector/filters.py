"""Filters of the templates: times, JSON, links, and the colour of a status."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from .._common.json import encode
from .._common.operations import CONSOLE
from .._common.timestamps import stamp

_TONES = {
    "completed": "ok",
    "refunded": "ok",
    "partially_refunded": "ok",
    "delivered": "ok",
    "refused": "wait",
    "failed": "bad",
    "expired": "bad",
    "failing": "bad",
    "given up": "bad",
    "dropped": "bad",
}
_PAGES = {"po_": "payouts", "wh_": "webhooks", "req": "requests"}
_ID = re.compile(
    r"(?<![A-Za-z0-9_])(?:(?:po|pi|cs|pa)_[a-z0-9]{20}|(?:wh|req)_[0-9]{8})(?![A-Za-z0-9_])", re.ASCII
)


def moment(at: float | str) -> str:
    """A date and time to the second, as in `2026-01-01 00:00:05`."""
    text = stamp(at) if isinstance(at, float) else at
    return text[:19].replace("T", " ")


def clock(at: float) -> str:
    """The time of day to the millisecond."""
    return stamp(at)[11:23]


def pretty(value: object) -> str:
    """JSON, indented by two spaces."""
    return msgspec.json.format(encode(value), indent=2).decode()


def lasted(seconds: float | None) -> str:
    """A duration of the machine's time: `under way`, `12.0 ms`, `1.25 s`."""
    if seconds is None:
        return "under way"
    return f"{seconds * 1e3:,.1f} ms" if seconds < 1 else f"{seconds:,.2f} s"


def passed(seconds: float) -> str:
    """Time between two events: `340 ms`, `5 s`, `2 min`, `1 h 30 min`, `3 days`."""
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 48 * 60:
        return f"{minutes // (24 * 60):,} days"
    parts = [(minutes // 60, "h"), (minutes % 60, "min"), (rest, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count)


def page_of(name: str) -> str:
    """The address of the page of a request, a webhook, a payout, or a payment by the id of any part of it."""
    return f"{CONSOLE}{_PAGES.get(name[:3], 'payments')}/{name}"


def linked(text: str) -> str:
    """A text as HTML, in which each id is a link to its page."""
    from markupsafe import Markup, escape  # it comes with jinja2, which a page has imported

    html = _ID.sub(lambda match: f'<a href="{page_of(match[0])}">{match[0]}</a>', escape(text))
    return Markup(html)  # noqa: S704 - the text is escaped, and ids are letters and digits


def tone(status: str) -> str:
    """The colour of a record's or delivery's status: ok, wait, bad for what failed, else idle."""
    return _TONES.get(status, "idle")


_ALL = (clock, lasted, linked, moment, page_of, passed, pretty, tone)
FILTERS: Mapping[str, Callable[..., object]] = {function.__name__: function for function in _ALL}
