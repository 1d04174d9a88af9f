"""Masks secret keys, control characters and receivers' tokens in text from outside.

Such a text is a cell of an input, an id or the service's message. Pure. The sandbox has its own copy of the
rule for addresses: it shares no code with the client.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

HIDDEN = "***"

# Compiled by `re` at their first use: most calls never need one.
_KEYS = r"(?i)sk_(live|sandbox)_[a-z0-9_-]+"
_WORD = r"(?a)(?=.{1,20}\Z)(?:v\d{1,2}|[A-Za-z]+(?:[-_.][A-Za-z]+)*)"
"""A segment of a path that is a word; a token has digits, or is longer."""


class HiddenPairs(Mapping[str, Any]):
    """A mapping with a masked repr: tracebacks print local variables, Sentry the items of mappings."""

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Mapping[str, Any]) -> None:
        self._pairs = pairs

    def __getitem__(self, name: str) -> Any:
        return self._pairs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __repr__(self) -> str:
        return f"<{len(self)} pairs>"

    __sentry_repr__ = __repr__


def hidden_pairs(value: Any) -> Any:
    """Wrap a mapping as `HiddenPairs`; returns anything else unchanged."""
    is_open = isinstance(value, Mapping) and not isinstance(value, HiddenPairs)
    return HiddenPairs(value) if is_open else value


def clean(text: str) -> str:
    """Clean a text for a terminal, a log or a message: one line, keys masked, control characters escaped.

    Escaped as in Python (`\\x1b`) are control characters, C1 and line ends included, and invisible ones:
    marks that change the direction of writing, unassigned characters, lone surrogates.
    """
    text = without_keys(text)
    return text if text.isprintable() else "".join(map(_visible, text))


def clean_lines(text: str) -> str:
    """Clean a text of several lines, and keep the lines."""
    return "\n".join(map(clean, text.split("\n")))


def without_keys(text: str) -> str:
    """Mask the secret keys in a text, except for their prefix (Authentication)."""
    return re.sub(_KEYS, rf"sk_\1_{HIDDEN}", text) if "sk_" in text.lower() else text


def body_without_keys(raw: bytes) -> bytes:
    """Mask the secret keys in a body."""
    return re.sub(_KEYS.encode(), rf"sk_\1_{HIDDEN}".encode(), raw)


def is_visible(sign: str) -> bool:
    """Return whether a character is visible. Amounts contain a non-breaking space, which counts."""
    return sign.isprintable() or unicodedata.category(sign) == "Zs"


def _visible(sign: str) -> str:
    return sign if is_visible(sign) else sign.encode("unicode_escape").decode()


def address(url: str) -> str:
    """Mask a receiver's address: keep its host and the plain words of its path; the rest may be a token."""
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        return url and HIDDEN
    place, mark, _ = _parted(rest)
    host, *segments = place.split("/")
    _, at, name = host.rpartition("@")
    shown = "/".join([f"{HIDDEN}@{name}" if at else host, *map(_segment, segments)])
    return f"{scheme}://{shown}" + (mark and mark + HIDDEN)


def shown_address(url: object) -> str:
    """The masked repr of a receiver's address, for a field that may be None."""
    return repr(address(url) if isinstance(url, str) else url and HIDDEN)


def _parted(rest: str) -> tuple[str, str, str]:
    """Split at the first `?` or `#` into the text before, that character, and the text after."""
    found = re.search("[?#]", rest)
    return rest.partition(found[0]) if found else (rest, "", "")


def _segment(text: str) -> str:
    return text if not text or re.fullmatch(_WORD, text) else HIDDEN
