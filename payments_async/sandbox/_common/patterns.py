"""Patterns of texts and bounds of numbers, as searches and filters write them. Pure."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

_ESCAPED = re.compile(r'\\([*"\\])')
r"""A sign that stands for itself because of the `\` before it. Any other `\` is a plain one."""
_STAR = re.compile(rf"{_ESCAPED.pattern}|\*")
_BOUND = re.compile(r"(>=|<=|>|<)?(.+)", re.DOTALL)

Comparison = Callable[[Any, Any], bool]
_BOUNDS: Mapping[str, Comparison] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def glob(pattern: str, fold: Callable[[str], str] = str.lower) -> Callable[[str], bool]:
    r"""Make the test of a text; `*` stands for any characters, `\*` for a star.

    Capitals do not count, unless `fold` leaves them.
    """
    first, *others = glob_parts(fold(pattern))
    if not others:
        return lambda text: fold(text) == first
    *middle, last = others

    def test(text: str) -> bool:
        low = fold(text)
        at, end = len(first), len(low) - len(last)
        if at > end or not (low.startswith(first) and low.endswith(last)):
            return False
        for part in middle:
            at = low.find(part, at, end)
            if at < 0:
                return False
            at += len(part)
        return True

    return test


def glob_parts(pattern: str) -> list[str]:
    """The texts between the stars of a pattern."""
    first, *rest = _STAR.split(pattern)
    parts = [first]
    for sign, text in zip(rest[::2], rest[1::2], strict=True):
        if sign is None:
            parts.append(text)
        else:
            parts[-1] += sign + text
    return parts


def escaped(text: str) -> str:
    """The pattern that fits a text alone, also between quotation marks."""
    return re.sub(r'[*"\\]', r"\\\g<0>", text)


def unescaped(text: str) -> str:
    """The text that an escaped one means, its stars too."""
    return _ESCAPED.sub(r"\1", text)


def read_bound(value: str) -> tuple[Comparison, str]:
    """The comparison that a value begins with, else equality, and the rest of it."""
    match = _BOUND.fullmatch(value)
    assert match is not None  # a value is never empty
    return _BOUNDS.get(match[1], operator.eq), match[2]
