"""Masks what nobody may read: secret keys, receivers' tokens, account data; cleans text from outside.

Such a text is a cell of an input, an id or the service's message. Which fields are masked, their classes say
by `repr=`. Pure. The sandbox has its own copy of the rule for addresses: it shares no code with the client.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

HIDDEN = "***"
LEAST: Final = 12
"""Characters of a key after its prefix from which they are masked alone: a shorter one may be a word."""
_OWN_KEYS: Final[dict[str, Callable[[str, str], str]]] = {}
"""{fingerprint: what masks the key}. The keys live in closures, so that no traceback shows one."""
_MOST_KEYS: Final = 16  # keys that are remembered: the latest

_PIECE, _OVERLAP = 1 << 16, 1 << 12
"""Bytes of a body that are searched at a time, and of the next piece: more than an escaped key has."""

# Compiled by `re` at their first use: most calls never need one.
_KEYS = r"(?i)sk_(live|sandbox)_[a-z0-9_-]+"
_ESCAPED = r"%(?:25){0,3}([0-9a-f]{2})|\\u([0-9a-f]{4})"
_FULL_WIDTH: Final = {code + 0xFEE0: code for code in range(0x21, 0x7F)}
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


def mask_key(fingerprint: str, key: str) -> None:
    """Mask this key of the process from now on, also without its prefix and in other forms."""
    if fingerprint not in _OWN_KEYS:
        _OWN_KEYS[fingerprint] = _masking_of(key)
        for oldest in tuple(_OWN_KEYS)[:-_MOST_KEYS]:
            _OWN_KEYS.pop(oldest, None)


def without_keys(text: str) -> str:
    """Mask the secret keys in a text, except for their prefix (Authentication).

    Any key is known by its prefix. The process's own keys are known by their characters: escaped, in full
    width, in base64 too.
    """
    lowered = text.lower()
    if "sk_" in lowered:
        text = re.sub(_KEYS, rf"sk_\1_{HIDDEN}", text)
    if _OWN_KEYS:
        plain = lowered
        if "%" in plain or "\\" in plain:
            plain = re.sub(_ESCAPED, lambda found: chr(int(found[1] or found[2], 16)), plain)
        plain = (plain if plain.isascii() else plain.translate(_FULL_WIDTH)).lower()
        for mask in tuple(_OWN_KEYS.values()):
            text = mask(text, plain)
    return text


def body_without_keys(raw: bytes) -> bytes:
    """Mask the secret keys in a body. What is no UTF-8 in it stays."""
    for start in range(0, len(raw), _PIECE):  # a large body has none, and is not copied as a whole
        piece = raw[start : start + _PIECE + _OVERLAP].decode(errors="surrogateescape")
        if without_keys(piece) != piece:
            return without_keys(raw.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    return raw


def _masking_of(key: str) -> Callable[[str, str], str]:
    """A function that masks a key in a text, given the text without its escapes, in small letters."""
    alone = key.split("_", 2)[-1]
    secret = alone if len(alone) >= LEAST else key
    lowered, coded = secret.lower(), [_in_base64(secret, offset) for offset in range(3)]

    def mask(text: str, plain: str) -> str:
        if lowered in plain:
            text = re.sub(_forms(secret), HIDDEN, text)
        for each in coded:
            text = text.replace(each, HIDDEN)
        return text

    return mask


def _forms(secret: str) -> str:
    """An expression for a secret with any of its characters escaped or wide. Nothing in it is unbounded."""
    return f"(?i:{''.join(map(_spellings, secret))})"


def _spellings(sign: str) -> str:
    """A character plain, in full width, percent-encoded (once or more), or escaped as in JSON."""
    wide = chr(ord(sign) + 0xFEE0)
    escaped = rf"%(?:25){{0,3}}{ord(sign):02x}|\\u(?:{ord(sign):04x}|{ord(wide):04x})"
    return f"(?:{re.escape(sign)}|{wide}|{escaped})"


def _in_base64(secret: str, offset: int) -> str:
    """The characters of base64 that hold only the secret, where `offset` bytes precede it in a group.

    They are letters and digits: no character of a key makes another one.
    """
    text = base64.b64encode(b" " * offset + secret.encode()).decode()
    return text[-(-offset * 8 // 6) : (offset + len(secret)) * 8 // 6]


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


def secrets_of(url: str) -> set[str]:
    """What `address` masks of an address, part by part: as it stands, decoded, and encoded once more."""
    place, _, rest = _parted(url.partition("://")[2])
    user, _, host_and_path = place.rpartition("@")
    segments = [each for each in host_and_path.split("/")[1:] if not re.fullmatch(_WORD, each)]
    values = [pair.rpartition("=")[2] for pair in re.split("[?&#]", rest)]
    return {
        form for part in (user, *segments, *values) for form in (part, unquote(part), quote(part, safe=""))
    }


def masked(value: object) -> str:
    """The repr of personal or account data: whether it is set, never the value."""
    return "None" if value is None else repr(HIDDEN)


def shown_address(url: object) -> str:
    """The masked repr of a receiver's address, for a field that may be None."""
    return repr(address(url) if isinstance(url, str) else url and HIDDEN)


def _parted(rest: str) -> tuple[str, str, str]:
    """Split at the first `?` or `#` into the text before, that character, and the text after."""
    found = re.search("[?#]", rest)
    return rest.partition(found[0]) if found else (rest, "", "")


def _segment(text: str) -> str:
    return text if not text or re.fullmatch(_WORD, text) else HIDDEN
