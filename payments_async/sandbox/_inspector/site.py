"""The inspector's pages, each with its address, template and context, and its assets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import attrs

from ..._loopback.page_files import PageFiles, console_headers
from .._common.operations import CONSOLE
from .._common.values import Answer, Request
from . import log_pages, record_pages, tool_pages
from .filters import FILTERS
from .page_request import Context, PageRequest

if TYPE_CHECKING:
    from .._controls import SandboxControls


@attrs.frozen
class InspectorPage:
    """A page: its address below `/_sandbox/`, and its context."""

    name: str
    title: str
    pattern: re.Pattern[str]
    template: str
    context: Callable[..., Context | str]
    """Gives the context, or the address of the page that is meant."""


def _page(
    name: str,
    title: str,
    context: Callable[..., Context | str],
    pattern: str | None = None,
    template: str | None = None,
) -> InspectorPage:
    template = f"{template or name or 'log'}.html"
    return InspectorPage(name, title, re.compile(pattern or re.escape(name), re.ASCII), template, context)


_NAME = r"(?P<name>[^/]{1,999})"
PAGES: tuple[InspectorPage, ...] = (
    _page("", "Log", log_pages.log),
    _page("", "Request", log_pages.request, r"requests/(?P<request_id>[A-Za-z0-9_-]{1,64})", "request"),
    _page("payments", "Payments", record_pages.payments, template="records"),
    _page("payments", "Payment", record_pages.payment, f"payments/{_NAME}", "record"),
    _page("payouts", "Payouts", record_pages.payouts, template="records"),
    _page("payouts", "Payout", record_pages.payout, f"payouts/{_NAME}", "record"),
    _page("webhooks", "Webhooks", record_pages.webhooks, template="records"),
    _page("webhooks", "Webhook", record_pages.webhook, f"webhooks/{_NAME}", "webhook"),
    _page("faults", "Faults", tool_pages.faults),
    _page("clock", "Clock", tool_pages.clock),
)

_HEADERS = console_headers("'self'")
_ASSETS = "assets/"
FILES = PageFiles(Path(__file__).parent, CONSOLE + _ASSETS, {}, FILTERS)


def answer_page(sandbox: SandboxControls, request: Request) -> Answer:
    """Answer a request for a page or an asset of the inspector."""
    if request.method not in ("GET", "HEAD"):
        text = "Pages can only be read; requests that change something go to /_sandbox/api/."
        return Answer(405, {**_HEADERS, "Content-Type": "text/plain; charset=utf-8"}, text.encode())
    path = request.path.removeprefix(CONSOLE)
    if path.startswith(_ASSETS) and (asset := FILES.asset(path.removeprefix(_ASSETS))):
        headers, content = asset
        return Answer(200, {**_HEADERS, **headers}, content)
    return _page_at(sandbox, request, path)


def _page_at(sandbox: SandboxControls, request: Request, path: str) -> Answer:
    asked = PageRequest(sandbox, dict(parse_qsl(request.query)), request.headers.get("host"), path)
    matches = ((page, page.pattern.fullmatch(path)) for page in PAGES)
    page, match = next(((page, match) for page, match in matches if match), (None, None))
    if page is None or match is None:
        return _missing(asked, "There is no such page.")
    try:
        context = page.context(asked, **match.groupdict())
    except LookupError as missing:
        return _missing(asked, str(missing.args[0]))
    if isinstance(context, str):
        return Answer(303, {**_HEADERS, "Location": context}, b"")
    return _html(200, page.template, asked.common(page.name, page.title) | context)


def _missing(asked: PageRequest, text: str) -> Answer:
    return _html(404, "missing.html", asked.common("", "Page not found") | {"text": text})


def _html(status: int, template: str, context: Mapping[str, object]) -> Answer:
    html = FILES.render(template, context)
    return Answer(status, {**_HEADERS, "Content-Type": "text/html; charset=utf-8"}, html.encode())
