"""Answers as the profile shapes them: refusals, limits, and bodies that break the tables.

`docs/interface.md`, Errors; gaps P, R and AC.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

from .._common.json import JsonObject, encode
from .._common.profiles import Profile
from .._common.timestamps import http_date
from .._common.values import Answer, RequestRefused
from .request_schemas import INVALID

Errors = Mapping[str, list[str]]
KEY_REUSED = "The idempotency key was used for another request."
"""The text of a refusal when a key comes with a second body."""


def json_answer(status: int, body: JsonObject, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(status, {"Content-Type": "application/json", **(headers or {})}, encode(body))


def refusal(refused: RequestRefused, profile: Profile) -> Answer:
    body: JsonObject = {"message": refused.message}
    if refused.errors is not None:
        body["errors"] = _shaped(refused.errors, profile)
    return json_answer(refused.status, body, refused.headers)


def limited(profile: Profile, now: float, limit: int, wait: float) -> RequestRefused:
    """429 with the headers the profile has; a simulated one says a limit of 0."""
    seconds = max(0, math.ceil(wait))
    headers: dict[str, str] = {}
    if profile.retry_after == "seconds":
        headers["Retry-After"] = str(seconds)
    elif profile.retry_after == "date":
        headers["Retry-After"] = http_date(int(now) + seconds)
    if profile.rate_headers:
        headers |= {"X-RateLimit-Limit": str(limit), "X-RateLimit-Remaining": "0"}
    return RequestRefused(429, "Too many requests.", headers=headers)


def reused_key(profile: Profile) -> RequestRefused | None:
    """Gap R, one idempotency key under two bodies; None when the first answer comes again."""
    if profile.reused_key == "conflict":
        return RequestRefused(409, KEY_REUSED)
    if profile.reused_key == "invalid":
        return RequestRefused(422, INVALID, {"X-Idempotency-Key": [KEY_REUSED]})
    return None


def _shaped(errors: Errors, profile: Profile) -> JsonObject:
    if profile.errors == "texts":
        return {name: texts[0] for name, texts in errors.items()}
    return _nested(errors) if profile.errors == "nested" else {**errors}


def _nested(errors: Errors) -> JsonObject:
    """Nest errors as objects within objects. A field whose parent is wrong itself keeps its dotted name."""
    tree: JsonObject = {}
    for name, texts in sorted(errors.items()):
        branch, inner = tree, name
        while "." in inner:
            parent, inner = inner.split(".", 1)
            within = branch.setdefault(parent, {})
            if not isinstance(within, dict):
                branch, inner = tree, name
                break
            branch = within
        branch[inner] = texts
    return tree


_DESCRIPTIVE = frozenset(
    {"description", "icon_url", "label", "formatted", "short", "avatar_url", "flag", "expression", "path"}
)
_BARE = {"method": "value", "country": "code"}
_WORDS = frozenset({"status", "type", "intent_status", "attempt_status"})


def distort(body: JsonObject, profile: Profile) -> JsonObject:
    """A distorted copy of a successful body; identifiers, amounts and metadata stay as they are."""
    if not profile.messages:
        body = {name: value for name, value in body.items() if name != "message"}
    return _object(body, profile)


def _object(value: JsonObject, profile: Profile) -> JsonObject:
    changed = {name: _member(name, item, profile) for name, item in value.items()}
    if profile.omits_nulls:
        changed = {name: item for name, item in changed.items() if item is not None}
    if profile.extra_fields:
        changed["x_later"] = {"note": "added after this client was written", "level": 3}
    return changed


def _member(name: str, value: object, profile: Profile) -> object:
    if name == "metadata":
        return value
    if name == "exchange_rate" and (profile.swapped_rates or profile.null_rates):
        return None if profile.null_rates else _swapped(value)
    if name in _DESCRIPTIVE and profile.null_fields:
        return None
    if name in _WORDS and isinstance(value, str):
        return profile.shown_statuses.get(value, value)
    if isinstance(value, dict):
        code = value.get(_BARE.get(name, "")) if profile.bare_codes else None
        return _object(value, profile) if code is None else code
    if isinstance(value, list):
        return [_object(item, profile) if isinstance(item, dict) else item for item in value]
    return value


def _swapped(rate: object) -> object:
    if isinstance(rate, dict):
        return Decimal(str(rate["value"]))
    return {"value": f"{Decimal(str(rate)):.8f}", "from_currency": None, "to_currency": None}
