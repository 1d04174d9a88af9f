"""What is shown of a text that came from outside: no secret key, no control character, no receiver's token.

Such a text is a cell of an input, an id, the service's own words. Pure. The sandbox has its own copy of the
rule for addresses: it shares nothing with the client.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

HIDDEN = "***"

# Compiled by `re` when they are first asked: most calls never need one.
_KEYS = r"(?i)sk_(live|sandbox)_[a-z0-9_-]+"
_WORD = r"(?a)(?=.{1,20}\Z)(?:v\d{1,2}|[A-Za-z]+(?:[-_.][A-Za-z]+)*)"
"""A segment of a path that somebody named; a token has digits, or is longer."""


class HiddenPairs(Mapping[str, Any]):
    """Pairs that do not show themselves: tracebacks print reprs of locals, Sentry the items of mappings."""

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
    """A mapping as `HiddenPairs`; anything else as it is."""
    is_open = isinstance(value, Mapping) and not isinstance(value, HiddenPairs)
    return HiddenPairs(value) if is_open else value


def clean(text: str) -> str:
    """A text fit for a terminal, a log or a message: on one line, without keys, what controls it as escapes.

    Escaped as in Python (`\\x1b`) are control characters, C1 and line ends included, and what has no shape
    of its own: marks that turn the direction of writing, unassigned characters, lone surrogates.
    """
    text = without_keys(text)
    return text if text.isprintable() else "".join(map(_visible, text))


def clean_lines(text: str) -> str:
    """The same for a text of several lines, which stay apart."""
    return "\n".join(map(clean, text.split("\n")))


def without_keys(text: str) -> str:
    """A text in which secret keys are masked but for their kind (Authentication)."""
    return re.sub(_KEYS, rf"sk_\1_{HIDDEN}", text) if "sk_" in text.lower() else text


def body_without_keys(raw: bytes) -> bytes:
    """The same for a body."""
    return re.sub(_KEYS.encode(), rf"sk_\1_{HIDDEN}".encode(), raw)


def is_visible(sign: str) -> bool:
    """Whether a character shows itself and nothing else. Amounts hold a space that does not break."""
    return sign.isprintable() or unicodedata.category(sign) == "Zs"


def _visible(sign: str) -> str:
    return sign if is_visible(sign) else sign.encode("unicode_escape").decode()


def address(url: str) -> str:
    """A receiver's address: its host, and the plain words of its path; the rest may hold a token."""
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        return url and HIDDEN
    place, mark, _ = _parted(rest)
    host, *segments = place.split("/")
    _, at, name = host.rpartition("@")
    shown = "/".join([f"{HIDDEN}@{name}" if at else host, *map(_segment, segments)])
    return f"{scheme}://{shown}" + (mark and mark + HIDDEN)


def shown_address(url: object) -> str:
    """The repr of a receiver's address, for a field that may hold none."""
    return repr(address(url) if isinstance(url, str) else url and HIDDEN)


def _parted(rest: str) -> tuple[str, str, str]:
    """What stands before the first `?` or `#`, that sign, and what follows."""
    found = re.search("[?#]", rest)
    return rest.partition(found[0]) if found else (rest, "", "")


def _segment(text: str) -> str:
    return text if not text or re.fullmatch(_WORD, text) else HIDDEN
