"""The inspector's pages: the address, the template and the context of each."""

from __future__ import annotations

import re
from collections.abc import Callable

import attrs

from . import list_pages, log_page, record_pages, tool_pages
from .page_request import Context


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
    template = f"{template or name or 'overview'}.html"
    return InspectorPage(name, title, re.compile(pattern or re.escape(name), re.ASCII), template, context)


PAGES: tuple[InspectorPage, ...] = (
    _page("", "Overview", log_page.overview),
    _page("request", "Request", log_page.request, r"requests/(?P<request_id>[A-Za-z0-9_-]{1,64})"),
    _page("payments", "Payments", list_pages.payments),
    _page("payments", "Payment", record_pages.payment, r"payments/(?P<name>[^/]{1,999})", "payment"),
    _page("payouts", "Payouts", list_pages.payouts),
    _page("payouts", "Payout", record_pages.payout, r"payouts/(?P<name>[^/]{1,999})", "payout"),
    _page("webhooks", "Webhooks", list_pages.webhooks),
    _page("webhooks", "Webhook", record_pages.webhook, r"webhooks/(?P<name>[A-Za-z0-9_-]{1,64})", "webhook"),
    _page("phone", "Simulated phone", list_pages.phone),
    _page("faults", "Faults", tool_pages.faults),
    _page("clock", "Clock", tool_pages.clock),
    _page("limits", "Limits", tool_pages.limits),
    _page("advisor", "Advisor", tool_pages.advisor),
    _page("assumptions", "Assumptions", tool_pages.assumptions),
)
