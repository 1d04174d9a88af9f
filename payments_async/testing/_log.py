"""The requests of a test as lines: short, masked, the latest last."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from urllib.parse import unquote

from payments_async.sandbox import LoggedRequest
from payments_async.sandbox._journal import Entry, Exchange
from payments_async.sandbox._masking import hide, mask

LINES = 25
"""How many requests are told at most."""

_WIDTH = 100


def request_log(entries: Sequence[Entry], tenants: Collection[str]) -> str:
    """The requests that `tenants` made, and those whose key was refused; empty when there were none."""
    exchanges = [
        entry.item
        for entry in entries
        if isinstance(entry.item, Exchange) and (entry.item.log.key is None or entry.item.log.key in tenants)
    ]
    left_out = len(exchanges) - LINES
    head = [f"({left_out} earlier requests)"] if left_out > 0 else []
    start = exchanges[0].log.at if exchanges else 0.0
    return "\n".join([*head, *(_line(exchange, start) for exchange in exchanges[-LINES:])])


def _line(exchange: Exchange, start: float) -> str:
    log = exchange.log
    parts = [f"{log.at - start:+9.3f} s", f"{log.status or '---'}", f"{log.method} {_short(log.path)}"]
    return "  ".join([*parts, *_notes(log)])


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
