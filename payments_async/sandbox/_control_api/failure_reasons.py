"""Explains failed requests in a few words, for a line of the log and the top of the request's page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .._common.json import JsonObject, decode
from .._common.masking import mask
from .._common.operations import find_operation
from .._common.rate_limits import SandboxLimits
from .._common.values import RequestRefused
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


def reason(exchange: LoggedExchange, limits: SandboxLimits) -> str | None:
    """The reason of a failure, account data masked; None for a success."""
    answer = exchange.answer
    if exchange.log.status == 429:
        return _limited(exchange, limits)
    if exchange.log.status == 0:
        carried = "it was not carried out"
        line = LINES[type(answer.fault).__name__.lower()] if answer and answer.fault else "no answer came"
        return f"{line}; {carried}"
    if answer is None:
        return None
    disturbed = LINES[type(answer.fault).__name__.lower()] if answer.fault else None
    refused = _error_text(answer.body) if answer.status >= 400 else None
    return "; ".join(filter(None, (disturbed, refused))) or None


def _error_text(body: bytes) -> str | None:
    """The first invalid field and its problem, or the message."""
    try:
        value = decode(body)
    except RequestRefused:
        return "the answer is no JSON"
    if not isinstance(value, dict):
        return None
    errors = value.get("errors")
    wrong = list(_fields(errors)) if isinstance(errors, dict) else []
    text = _sentence(wrong) if wrong else value.get("message")
    return str(mask(text)) if isinstance(text, str) else None


def _fields(errors: JsonObject, above: str = "") -> Iterator[tuple[str, str]]:
    """Fields and texts, in any form that a profile gives the errors (gap P)."""
    for name, value in errors.items():
        if isinstance(value, dict):
            yield from _fields(value, f"{above}{name}.")
        else:
            yield above + name, str(value[0] if isinstance(value, list) and value else value)


def _sentence(wrong: list[tuple[str, str]]) -> str:
    (field, text), *others = wrong
    if not others:
        return f"{field}: {text}"
    names = ", ".join(name for name, _ in others[:_OTHERS]) + (", …" if len(others) > _OTHERS else "")
    return f"{field}: {text} Also wrong: {names}"


def _limited(exchange: LoggedExchange, limits: SandboxLimits) -> str:
    wait = exchange.retry_after
    after = f"; Retry-After {wait}{' s' if wait.isdigit() else ''}" if wait else ""
    return _window(exchange, limits) + after


def _window(exchange: LoggedExchange, limits: SandboxLimits) -> str:
    """The limit that was full, of a class or of one record; the answer's headers say which."""
    log, answer = exchange.log, exchange.answer
    if log.fault is not None:
        return "simulated by a scenario; no limit was reached"
    matched = find_operation(log.method, log.path.partition("?")[0])
    if matched is None:  # pragma: no cover  # a limit is looked at after the operation is known
        return "a limit was reached"
    operation, values = matched
    scopes = limits.scopes(operation.limit, values[operation.record] if operation.record else None)
    named = answer.headers.get("X-RateLimit-Limit") if answer else None
    full = [(scope, rate) for scope, rate in scopes if named is None or str(rate) == named] or scopes
    return " or ".join(f"limit of {scope}: {rate:,} a minute" for scope, rate in full)
