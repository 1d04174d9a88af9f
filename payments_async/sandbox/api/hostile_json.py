"""Turns a body that keeps to the interface's tables into one that does not, as the profile's switches say."""

from __future__ import annotations

from decimal import Decimal

from ..common.json import JsonObject
from ..common.profiles import Profile

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
