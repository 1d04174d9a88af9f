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

_PERSONAL = re.compile(r"\+?\d[\d \-]{5,}\d|[^\s@,;:<>\"']+@[^\s@,;:<>\"']+")

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
    return ", ".join(f"{field}: {' '.join(texts)}" for field, texts in list(errors.items())[:10])


def _service_words(body: bytes) -> tuple[str | None, dict[str, list[str]]]:
    """The `message` and `errors` of an error body, personal data masked; nothing when it is not JSON."""
    try:
        tree = _codec.parse(body)
    except _codec.Unreadable:
        return None, {}
    if not isinstance(tree, dict):
        return None, {}
    message = tree.get("message")
    errors: dict[str, list[str]] = {}
    _collect(errors, "", tree.get("errors"))
    return _scrubbed(message) if isinstance(message, str) else None, errors


def _collect(into: dict[str, list[str]], name: str, value: Any, depth: int = 0) -> None:
    """Flatten {field: [texts]}, tolerating bare texts and nested objects (gap P)."""
    if isinstance(value, dict) and depth < 8:
        for key, item in list(value.items())[:100]:
            _collect(into, f"{name}.{key}" if name else _scrubbed(str(key)), item, depth + 1)
    elif isinstance(value, list):
        into.setdefault(name, []).extend(_scrubbed(str(item)) for item in value[:20])
    elif value is not None:
        into.setdefault(name, []).append(_scrubbed(str(value)))


def _scrubbed(text: str) -> str:
    return _PERSONAL.sub("***", text[:1000])
