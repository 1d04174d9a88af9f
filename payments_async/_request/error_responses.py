"""Makes typed errors from error answers: the service's message, masked, and a hint. Pure (Errors; gap P)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from .._codec import decode
from .._http.types import HTTPResponse
from .._rate_limit.limits import LONGEST_CLOSURE
from ..errors import (
    APIStatusError,
    ConflictError,
    DuplicateReference,
    Effect,
    IdempotencyConflict,
    RateLimitedError,
    error_class,
)
from ..models import ResponseInfo
from ..models._masking import HIDDEN, clean, secrets_of, without_keys
from ..models._response import is_replayed
from .call import Call
from .key_age import http_date

Mask = Callable[[str], str]

# A local part has at most 64 characters, and the bound keeps the search linear on text without an @.
_PERSONAL = r"\+?\d[\d \-]{5,}\d|[^\s@,;:<>\"']{1,64}@[^\s@,;:<>\"']+"
_NUMBER = r"\+?\d[\d \-]{5,}\d"
"""The part of `_PERSONAL` that may be in a text without an @."""
_DIGITS = frozenset("0123456789")
_SECONDS = r"[0-9]{1,20}(?:\.[0-9]{1,6})?"
_SHORTEST = 3
"""Least characters of a text of the request that is masked as personal data."""
_MOST_VALUES = 500
"""Values of an `errors` object that are read: more than a request has rules, and quick to read."""

_HINTS: Mapping[int, str] = {
    400: "the request is malformed: correct it (extra_body, extra_query, extra_headers are not checked here)",
    401: "the key was refused: check it, or rotate it in the dashboard",
    403: "this machine's address is not on the key's allowlist: add it in the dashboard",
    404: "no such record: check the id, the environment and the base URL",
    422: "correct the fields",
    428: "the idempotency key was refused: give another one, or none",
}
_NO_SUCH_PATH = (
    "no such path or record: check the base URL, what stands before the service, and ids in the path"
)
"""The hint of a creation's 404: what answers may be a proxy."""
_UNDER_A_NEW_KEY = "correct the fields and send it again under a new idempotency key"
_ABOUT_THE_KEY = frozenset({400, 409, 422, 428})
"""Statuses by which a service may say that a key belongs to another body (gap R)."""


def status_error(call: Call, answer: HTTPResponse, now: datetime) -> APIStatusError:
    """Make the error of an answer that is not 2xx, with the service's message and a hint."""
    message, errors = _service_words(answer.body, masking(call))
    reference = call.prepared.reference if call.prepared else None
    cls = error_class(answer.status, message=message, reference=reference)
    fields = [name for name, words in errors.items() if not _names_the_key(name or str(words))]
    if _is_about_the_key(call, answer, errors, fields, message):
        cls = IdempotencyConflict
    facts: dict[str, Any] = {}
    if cls is RateLimitedError:
        limits = ResponseInfo(answer.status, answer.headers, ()).rate_limit
        facts = {"limit": limits.limit, "remaining": limits.remaining}
        facts["retry_after"] = retry_after(answer.headers, now)
    parts = [f"HTTP {answer.status}", message, _joined(errors)]
    hint = _UNDER_A_NEW_KEY if call.operation.creates and answer.status == 422 and fields else None
    parts.append(hint or _hint(call, cls, answer.status, facts))
    return cls(
        f"{call.operation.name}: " + "; ".join(part.removesuffix(".") for part in parts if part),
        status=answer.status,
        service_message=message,
        errors=errors,
        headers=dict(answer.headers),
        body=answer.body,
        operation=call.operation.name,
        effect=_effect(call, answer.status, cls),
        **facts,
    )


def _is_about_the_key(
    call: Call, answer: HTTPResponse, errors: Mapping[str, Any], fields: Iterable[str], message: str | None
) -> bool:
    """Return whether a refusal may be about the key alone: it says nothing of what was done under it before.

    It names only the key; or it names no field of the body, and this client has used the key before.
    """
    if call.prepared is None or answer.status not in _ABOUT_THE_KEY or fields:
        return False
    is_silent = "reference" not in (message or "").lower() and not is_replayed(answer.headers)
    return bool(errors) or (call.is_known_key and is_silent)


def _names_the_key(text: str) -> bool:
    """Return whether the name of a field, or words without one, are about the key: however it is written."""
    return "idempotencykey" in re.sub("[^a-z]", "", text.lower())


def is_definite(status: int) -> bool:
    """Return whether a status proves that the request was not carried out: any 4xx but 408."""
    return 400 <= status < 500 and status != 408


def _hint(call: Call, cls: type[APIStatusError], status: int, facts: Mapping[str, Any]) -> str | None:
    """The advice at the end of the message."""
    if cls is DuplicateReference:
        return "a payout has this reference: client.resolve(error) returns it if it is the one asked for"
    if cls is RateLimitedError:
        seconds = facts["retry_after"]
        believed = seconds is not None and not is_mistaken(seconds)
        return "over the rate limit: wait" + (f" {seconds:g} s" if believed else "")
    if cls is IdempotencyConflict:
        return "the idempotency key belongs to another request: find out what became of that one"
    return _NO_SUCH_PATH if call.operation.creates and status == 404 else _HINTS.get(status)


def _effect(call: Call, status: int, cls: type[APIStatusError]) -> Effect:
    """The effect of a refused write: "none" after a clear 4xx, "unknown" after anything else.

    Of the conflicts only that over a reference is clear: the others may be about this same write.
    """
    if not call.operation.creates:
        return "none"
    vague = issubclass(cls, ConflictError) and cls is not DuplicateReference
    return "none" if is_definite(status) and not vague else "unknown"


def _joined(errors: Mapping[str, list[str]]) -> str:
    """The first words about fields; those of a bare list have no field."""
    first = list(errors.items())[:10]
    text = ", ".join(f"{field}: {' '.join(texts)}" if field else " ".join(texts) for field, texts in first)
    return text if len(text) <= 2000 else f"{text[:2000]}…"


def _service_words(body: bytes, mask: Mask) -> tuple[str | None, dict[str, list[str]]]:
    """Read `message` and `errors` of an error body, personal data masked; empty when it is not JSON."""
    tree = _object(body)
    message = tree.get("message")
    return mask(message) if isinstance(message, str) else None, _flattened(tree.get("errors"), mask)


def _object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body; an empty one when there is none."""
    try:
        tree = decode.parse(body)
    except decode.UnreadableJSON:
        return {}
    return tree if isinstance(tree, dict) else {}


def _flattened(errors: Any, mask: Mask) -> dict[str, list[str]]:
    """Flatten `errors` of any shape to {field, dotted when nested: [texts]}, in order (gap P).

    Without recursion and with a bound on the work: a hostile answer may try to exhaust either.
    """
    found: dict[str, list[str]] = {}
    waiting: list[tuple[str, Any]] = [("", errors)]
    for _ in range(_MOST_VALUES):
        if not waiting:
            break
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(_inside(name, mask(key)), item) for key, item in reversed(list(value.items())[:100])]
        elif isinstance(value, list) and value:
            waiting += [(name, item) for item in reversed(value[:20])]
        elif value is not None:
            found.setdefault(name, []).extend([] if value == [] else [mask(str(value))])
    return found


def _inside(name: str, key: str) -> str:
    return f"{name}.{key}"[:1000] if name else key


def masking(call: Call) -> Mask:
    """Make the function that masks keys, account data and a request's own values in a text from outside."""
    own = _own_texts(_object(call.body or b""))

    def mask(text: str) -> str:
        # cut again at the end, so that no half of a value stays there; keys first, as they hold digits
        masked = without_keys(text[:20_000])[:2000]
        if pattern := _own_pattern(_present(own, masked)):
            masked = pattern.sub(HIDDEN, masked)
        if "@" in masked:
            masked = re.sub(_PERSONAL, HIDDEN, masked)
        elif not (masked.isascii() and _DIGITS.isdisjoint(masked)):
            masked = re.sub(_NUMBER, HIDDEN, masked)
        return (masked if masked == text and text.isprintable() else clean(masked))[:1000]

    return mask


def _present(texts: Iterable[str], text: str) -> Iterable[str]:
    """Those of some texts that a text may hold in any case: their pattern is new for nearly every request."""
    if not text.isascii():  # there a letter may have another, such as ſ for s
        return texts
    lowered = text.lower()
    return [own for own in texts if not own.isascii() or own.lower() in lowered]


def _own_texts(request: Mapping[str, Any]) -> set[str]:
    """Collect the texts of a request's instrument and customer, and what its receiver's address hides.

    The instrument's type is no such text.
    """
    found: set[str] = set()
    urls = [url for name in ("webhook_url", "return_url") if isinstance(url := request.get(name), str)]
    waiting: list[Any] = [
        request.get("instrument"),
        request.get("customer"),
        *map(list, map(secrets_of, urls)),
    ]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [item for name, item in value.items() if name != "type"]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and len(value.strip()) >= _SHORTEST:
            found.add(value.strip())
    return found


def _own_pattern(texts: Iterable[str]) -> re.Pattern[str] | None:
    """Make a pattern of the texts in any case; short ones match whole words ("Amo" is not in "amount")."""
    longest_first = sorted(texts, key=len, reverse=True)
    parts = [
        re.escape(text) if len(text) >= 8 else rf"(?<!\w){re.escape(text)}(?!\w)" for text in longest_first
    ]
    return re.compile("|".join(parts), re.IGNORECASE) if parts else None


# Retry-After (Errors, rule 1)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that `Retry-After` asks for: digits by ASCII rules or an HTTP date; None when unreadable."""
    text = headers.get("Retry-After", "").strip()
    if re.fullmatch(_SECONDS, text):
        return float(text)
    moment = http_date(text)
    if moment is None:
        return None
    return max(0.0, (moment - (http_date(headers.get("Date", "")) or now)).total_seconds())


def is_mistaken(retry_after: float | None) -> bool:
    """Return whether a `Retry-After` is longer than the service can mean."""
    return retry_after is not None and retry_after > LONGEST_CLOSURE
