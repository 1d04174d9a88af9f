"""Explains failed requests in a few words, for a line of the log and the top of the request's page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .._common.json import JsonObject, decode
from .._common.masking import mask
from .._common.values import Answer, RequestRefused
from .._journal import LoggedExchange

LINES: Mapping[str, str] = {
    "slow": "the answer came late",
    "hang": "no answer came, and the connection stayed open",
    "drop": "the connection was closed before the answer",
    "reset": "the connection was reset before the answer",
    "cut": "only the first half of the answer arrived",
}
"""The effect of each fault of the line."""

_OTHERS = 3
"""Further invalid fields that are named."""


def reason(exchange: LoggedExchange) -> str | None:
    """The reason of a failure, account data masked; None for a success."""
    answer = exchange.answer
    line = LINES[type(answer.fault).__name__.lower()] if answer and answer.fault else None
    if exchange.log.status == 429:
        return _limited(exchange)
    if exchange.log.status == 0:
        return f"{line or 'no answer came'}; it was not carried out"
    refused = _error_text(answer) if answer and answer.status >= 400 else None
    return "; ".join(filter(None, (line, refused))) or None


def _error_text(answer: Answer) -> str | None:
    """The first invalid field and its problem, and which others are invalid; else the message."""
    try:
        value = decode(answer.body)
    except RequestRefused:
        return "the answer is no JSON"
    if not isinstance(value, dict):
        return None
    errors, text = value.get("errors"), value.get("message")
    if isinstance(errors, dict) and (wrong := list(_fields(errors))):
        (field, problem), *others = wrong
        names = ", ".join(name for name, _ in others[:_OTHERS]) + (", …" if len(others) > _OTHERS else "")
        text = f"{field}: {problem}" + (f" Also wrong: {names}" if others else "")
    return str(mask(text)) if isinstance(text, str) else None


def _fields(errors: JsonObject, above: str = "") -> Iterator[tuple[str, str]]:
    """Fields and texts, in any form that a profile gives the errors (gap P)."""
    for name, value in errors.items():
        if isinstance(value, dict):
            yield from _fields(value, f"{above}{name}.")
        else:
            yield above + name, str(value[0] if isinstance(value, list) and value else value)


def _limited(exchange: LoggedExchange) -> str:
    """The limit that was full, as the answer's header says, and how long to wait."""
    log, answer, wait = exchange.log, exchange.answer, exchange.retry_after
    full = "simulated by a scenario; no limit was reached"
    if log.fault is None:
        named = answer.headers.get("X-RateLimit-Limit") if answer else None
        full = f"limit of {log.operation}" + (f": {named} a minute" if named else "")
    return full + (f"; Retry-After {wait}{' s' if wait.isdigit() else ''}" if wait else "")
