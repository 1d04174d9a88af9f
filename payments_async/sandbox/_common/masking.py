"""Masks account data in texts for people: phones, account and card numbers, names and addresses become dots.

Also masks secrets in a `webhook_url`: a token in its path, and its query string.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote_plus

HIDDEN = "•••"

_CARD = frozenset({"card_number", "pan", "cvc", "cvv"})
_PERSONAL = _CARD | frozenset(
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
# Matches start only at a word's start: from every letter, the search would be quadratic in its length.
_EMAIL = re.compile(r"(?<![^\s@])[^\s@]+@[^\s@]+\.[^\s@]+", re.ASCII)
_PHONE = re.compile(r"\+\d[\d ]{6,}\d", re.ASCII)

_KEY = re.compile(r"(?<!\w)sk_(?:live|sandbox)_[\w-]+", re.ASCII)

_DIGITS = re.compile(r"(?<![\w-])[0-9][0-9 -]{10,60}[0-9](?!\w)")
"""What may be a card number, with the numbers beside it."""

_QUOTED = re.compile(rf'("(?:{"|".join(sorted({*_PERSONAL, "webhook_url"}))})"\s*:\s*")((?:[^"\\]|\\.)*)')
"""Account data in a JSON text."""

_ENDED = re.compile(r"([^?#]*)([?#])", re.DOTALL)
_WORD = re.compile(r"(?=.{1,20}\Z)(?:v\d{1,2}|[A-Za-z]+(?:[-_.][A-Za-z]+)*)", re.ASCII)
"""A segment of a path that is a plain word; a token has digits, or is longer."""

_SHOWN = 2


def mask(value: object, name: str = "") -> object:
    """Mask account data in `value` (JSON), except for the last two characters."""
    if isinstance(value, Mapping):
        return {key: mask(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [mask(item, name) for item in value]
    if isinstance(value, int) and (name in _CARD or has_card_number(str(value))):
        return hide(str(value))
    if not isinstance(value, str) or not value:
        return value
    if name in _PERSONAL:
        return hide(value)
    if name == "webhook_url":
        return address(value)
    return _masked(value)


def mask_text(text: str) -> str:
    """Mask account data in a text that may be JSON, or a part of one."""
    named = _QUOTED.sub(lambda match: match[1] + (match[2] and hide(match[2])), text)
    return _masked(named)


def _masked(text: str) -> str:
    """A text without the account data that is known by its form alone."""
    for kind in (_KEY, _EMAIL, _PHONE):
        text = kind.sub(_hidden, text)
    return _DIGITS.sub(_card_hidden, text)


def mask_path(path: str) -> str:
    """Mask account data in a path and its query, also where signs of it are escaped."""
    head, mark, query = path.partition("?")
    masked = "/".join(_part(part) for part in head.split("/"))
    return masked + mark + "&".join(_part(part) for part in query.split("&"))


def _part(part: str) -> str:
    """A segment of a path or a pair of a query, masked; without account data it stays as it was written."""
    part = _masked(part)  # as it is written: what is decoded has no `+` before a number any more
    written, sign, value = part.rpartition("=")
    name, plain = unquote_plus(written), unquote_plus(value)
    masked = str(mask(plain, name.rstrip("[]").rpartition("[")[2]))  # `metadata[phone]`
    known = _masked(name)
    if (known, masked) == (name, plain):
        return part
    return f"{written if known == name else known}{sign}{masked}".replace(" ", "%20")


def _card_hidden(match: re.Match[str]) -> str:
    return hide(match[0]) if has_card_number(match[0]) else match[0]


def _hidden(match: re.Match[str]) -> str:
    return hide(match[0])


def address(url: str) -> str:
    """Mask a receiver's address: the host and plain words of the path stay; the rest may hold a token."""
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        return url and HIDDEN
    plain, mark = (match[1], match[2]) if (match := _ENDED.match(rest)) else (rest, "")
    host, *segments = plain.split("/")
    _, at, name = host.rpartition("@")
    shown = "/".join([f"{HIDDEN}@{name}" if at else host, *map(_segment, segments)])
    return f"{scheme}://{shown}" + (mark and mark + HIDDEN)


def shown_address(url: str | None) -> str:
    return repr(url and address(url))


def _segment(text: str) -> str:
    return text if not text or _WORD.fullmatch(text) else HIDDEN


def hide(text: str) -> str:
    """Replace a text by dots, except for its last two characters."""
    return HIDDEN + text[-_SHOWN:] if len(text) > 2 * _SHOWN else HIDDEN


# What looks like the number of a real card, which people paste where it does not belong

_LENGTHS = range(12, 20)
_BEGINNING = re.compile("3[04-9]|[4-6]|2[2-7]")


def has_card_number(text: str) -> bool:
    """True if a text has a card number: by its length, beginning and check digit (Luhn's).

    The digits may be spaced in any way, and other words and numbers may stand around them.
    """
    groups = re.findall("[0-9]+", text)
    if sum(map(len, groups)) < _LENGTHS.start:
        return False
    ends = range(1, _LENGTHS.stop)
    return any(
        _is_card_number("".join(groups[start : start + end])) for start in range(len(groups)) for end in ends
    )


def _is_card_number(digits: str) -> bool:
    if len(digits) not in _LENGTHS or not _BEGINNING.match(digits):
        return False
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0
