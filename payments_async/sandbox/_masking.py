"""Account data in what people look at: phones, account numbers, names and addresses behind dots.

The query string of a `webhook_url` as well: it may hold a receiver's token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "•••"

_PERSONAL = frozenset(
    {
        "phone_number",
        "number",
        "account_name",
        "account_number",
        "first_name",
        "last_name",
        "email",
        "receipt_email",
        "address",
        "memo_tag",
        "city",
        "state",
        "zip",
        "phone",
    }
)
_TELLING = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+|\+\d[\d ]{6,}\d", re.ASCII)
"""An e-mail address or an international phone number anywhere in a text."""

_SHOWN = 2


def mask(value: object, name: str = "") -> object:
    """`value` (JSON) with account data hidden but for the last two characters."""
    if isinstance(value, Mapping):
        return {key: mask(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [mask(item, name) for item in value]
    if not isinstance(value, str) or not value:
        return value
    if name in _PERSONAL:
        return hide(value)
    if name == "webhook_url":
        return address(value)
    return _TELLING.sub(lambda found: hide(found[0]), value)


def address(url: str) -> str:
    """A receiver's address without its query string, which may hold a token."""
    plain, mark, _ = url.partition("?")
    return f"{plain}?{HIDDEN}" if mark else plain


def hide(text: str) -> str:
    """A text behind dots; its last two characters tell one from another."""
    return HIDDEN + text[-_SHOWN:] if len(text) > 2 * _SHOWN else HIDDEN
