"""Formats the requests of a test as lines, short and masked, the latest last."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from urllib.parse import unquote

from ..models._masking import clean
from ..models.common import grouped
from ..sandbox import LoggedRequest
from ..sandbox._common.masking import hide, mask
from ..sandbox._journal import JournalEntry, LoggedExchange
from ..sandbox.advisor._evidence import observe, shown_name

LINES = 25
"""The most requests in the log."""

_WIDTH = 100
_SHORT = 40
"""The most characters of an amount."""

_CODE = re.compile(r"[A-Z]{3}", re.ASCII)
"""A currency. Any other text in its place is left out."""


def request_log(entries: Sequence[JournalEntry], tenants: Collection[str]) -> str:
    """Format the latest requests of `tenants`, and of refused keys; empty when there were none."""
    exchanges = [
        entry.item
        for entry in entries
        if isinstance(entry.item, LoggedExchange)
        and (entry.item.log.key is None or entry.item.log.key in tenants)
    ]
    earlier = len(exchanges[:-LINES])
    head = [f"({earlier} earlier requests)"] if earlier else []
    start = exchanges[0].log.at if exchanges else 0.0
    return "\n".join([*head, *(_line(exchange, start) for exchange in exchanges[-LINES:])])


def _line(exchange: LoggedExchange, start: float) -> str:
    log = exchange.log
    parts = [f"{log.at - start:+9.3f} s", log.request_id, f"{log.status or '---'}"]
    return clean("  ".join([*parts, f"{log.method} {_short(log.path)}", *_asked(exchange), *_notes(log)]))


def _asked(exchange: LoggedExchange) -> Iterator[str]:
    """The reference and the amount of a request to create something."""
    fields = observe(exchange).fields
    reference, amount, currency = (fields.get(name) for name in ("reference", "amount", "currency"))
    if isinstance(reference, str):
        yield f"reference {shown_name(reference)}"
    if isinstance(amount, int | Decimal) and not isinstance(amount, bool):
        is_code = isinstance(currency, str) and _CODE.fullmatch(currency)
        number = grouped(Decimal(amount))[:_SHORT]
        yield f"{currency} {number}" if is_code else number


def _short(path: str) -> str:
    masked = str(mask(unquote(path)))
    return masked if len(masked) <= _WIDTH else masked[: _WIDTH - 1] + "…"


def _notes(log: LoggedRequest) -> Iterator[str]:
    if log.fault is not None:
        yield f"fault {log.fault}"
    if log.replayed:
        yield "replayed"
    if log.idempotency_key is not None:
        yield f"key {hide(log.idempotency_key)}"
    if log.key is None:
        yield "unknown API key"
