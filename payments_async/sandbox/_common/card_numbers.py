"""Finds what looks like the number of a real card, which people paste where it does not belong."""

from __future__ import annotations

import re

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
