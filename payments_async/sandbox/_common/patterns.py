"""Patterns of texts, as rules write them. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

_STAR = re.compile(r'\\([*"\\])|\*')
r"""A star, or a sign that stands for itself because of the `\` before it. Any other `\` is a plain one."""


def glob(pattern: str) -> Callable[[str], bool]:
    r"""Make the test of a text; `*` stands for any characters, `\*` for a star."""
    first, *others = _parts(pattern)
    if not others:
        return first.__eq__
    *middle, last = others

    def test(text: str) -> bool:
        at, end = len(first), len(text) - len(last)
        if at > end or not (text.startswith(first) and text.endswith(last)):
            return False
        for part in middle:
            at = text.find(part, at, end)
            if at < 0:
                return False
            at += len(part)
        return True

    return test


def _parts(pattern: str) -> list[str]:
    """The texts between the stars of a pattern."""
    first, *rest = _STAR.split(pattern)
    parts = [first]
    for sign, text in zip(rest[::2], rest[1::2], strict=True):
        if sign is None:
            parts.append(text)
        else:
            parts[-1] += sign + text
    return parts
