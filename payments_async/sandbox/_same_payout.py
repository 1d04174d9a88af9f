"""What is one payout twice: the rule of the Advisor and of the test kit's money ledger. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final

_SAME_PAYOUT: Final = ("amount", "currency", "method", "instrument")
"""Two payouts in which these are equal pay the same sum to one person, the same way."""

UNNAMED: Final = "no references tell them apart"
"""Why two equal payouts are one payout twice."""


def payment_of(body: Mapping[str, object]) -> Hashable:
    """What a payout pays, to whom and how: equal for two payouts that may be one payout twice."""
    return comparable({name: body.get(name) for name in _SAME_PAYOUT})


def comparable(value: object) -> Hashable:
    """Convert a JSON value to one that can be compared and hashed; null counts as absent."""
    if isinstance(value, Mapping):
        return frozenset((name, comparable(item)) for name, item in value.items() if item is not None)
    if isinstance(value, list):
        return tuple(comparable(item) for item in value)
    return value if isinstance(value, Hashable) else None


def is_unnamed(first: str | None, later: str | None, *, answered: bool) -> bool:
    """Return whether no references tell two equal payouts apart.

    `answered` says that the first one's answer arrived: then its reference is enough.
    """
    return first is None or (later is None and not answered)
