"""Error answers as typed errors: the service's words, cleaned, and a hint. Pure (Errors; gap P)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from . import _codec, _retry
from ._calls import Call
from ._wire import Answer
from .errors import APIStatusError, RateLimitedError, error_class
from .models import ResponseInfo

# A local part has at most 64 characters, and the bound keeps the search linear on text without an @.
_PERSONAL = re.compile(r"\+?\d[\d \-]{5,}\d|[^\s@,;:<>\"']{1,64}@[^\s@,;:<>\"']+")
_MOST_VALUES = 500
"""Values of an `errors` object that are looked at: more than a request has rules, and quick to read."""

_HINTS: Mapping[int, str] = {
    401: "the key was refused: check it, or rotate it in the dashboard",
    403: "this machine's address is not on the key's allowlist: add it in the dashboard",
    404: "no such record: check the id, the environment and the base URL",
    422: "correct the fields and send it again under a new idempotency key",
    429: "over the rate limit: wait retry_after seconds",
}


def status_error(call: Call, answer: Answer, now: datetime) -> APIStatusError:
    """The error for an answer that is not 2xx: what the service said, and what to do about it."""
    message, errors = _service_words(answer.body)
    reference = call.prepared.reference if call.prepared else None
    cls = error_class(answer.status, message=message, reference=reference)
    facts: dict[str, Any] = {}
    if cls is RateLimitedError:
        told = ResponseInfo(answer.status, answer.headers, ()).rate_limit
        facts = {"limit": told.limit, "remaining": told.remaining}
        facts["retry_after"] = _retry.retry_after(answer.headers, now)
    parts = [f"HTTP {answer.status}", message, _told(errors), _HINTS.get(answer.status)]
    return cls(
        f"{call.operation.name}: " + "; ".join(part for part in parts if part),
        status=answer.status,
        service_message=message,
        errors=errors,
        headers=dict(answer.headers),
        body=answer.body,
        operation=call.operation.name,
        effect=_effect(call, answer.status, cls.__name__),
        **facts,
    )


def _effect(call: Call, status: int, name: str) -> Any:
    """What a refusal says of a write: a clear 4xx, nothing was done; anything else, nobody can tell."""
    if not call.operation.creates:
        return "none"
    vague = name in ("IdempotencyConflict", "ConflictError") or not 400 <= status < 500 or status == 408
    return "unknown" if vague else "none"


def _told(errors: Mapping[str, list[str]]) -> str:
    told = ", ".join(f"{field}: {' '.join(texts)}" for field, texts in list(errors.items())[:10])
    return told if len(told) <= 2000 else f"{told[:2000]}…"


def _service_words(body: bytes) -> tuple[str | None, dict[str, list[str]]]:
    """The `message` and `errors` of an error body, personal data masked; nothing when it is not JSON."""
    try:
        tree = _codec.parse(body)
    except _codec.Unreadable:
        return None, {}
    if not isinstance(tree, dict):
        return None, {}
    message = tree.get("message")
    return _scrubbed(message) if isinstance(message, str) else None, _flattened(tree.get("errors"))


def _flattened(errors: Any) -> dict[str, list[str]]:
    """{field, dotted when nested: [texts]} of whatever shape came, in its order (gap P).

    No recursion and a bound on the work: the answer may have been made to exhaust either.
    """
    found: dict[str, list[str]] = {}
    waiting: list[tuple[str, Any]] = [("", errors)]
    for _ in range(_MOST_VALUES):
        if not waiting:
            break
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(_inside(name, key), item) for key, item in reversed(list(value.items())[:100])]
        elif isinstance(value, list) and value:
            waiting += [(name, item) for item in reversed(value[:20])]
        elif value is not None:
            found.setdefault(name, []).extend([] if value == [] else [_scrubbed(str(value))])
    return found


def _inside(name: str, key: str) -> str:
    key = _scrubbed(key)
    return f"{name}.{key}"[:1000] if name else key


def _scrubbed(text: str) -> str:
    return _PERSONAL.sub("***", text[:1000])
