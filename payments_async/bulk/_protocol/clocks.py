"""How old a row's intents are: may its key still be used, can its requests still leave? Pure."""

from __future__ import annotations

import math
from typing import Final

import attrs

from ..._assumptions import KEY_TRUSTED_FOR
from ..._attrs import maker
from ..._request.key_age import CLOCK_TOLERANCE as CLOCK_TOLERANCE
from ..._request.key_age import Timestamps as Timestamps
from ..._request.key_age import at_least, passed, went_back

INTENT_LIFETIME: Final = 300.0
"""Seconds after its intent in which a row's requests leave; later ones need a new intent."""
_DAY: Final = 86_400.0


@attrs.frozen
class ElapsedRange:
    """Seconds between two moments."""

    at_least: float
    at_most: float
    """Infinite when a clock went back."""


_range: Final = maker(ElapsedRange)


def age(then: Timestamps, now: Timestamps, seen: Timestamps | None = None) -> ElapsedRange:
    """Compute how long ago `then` was. `seen`: a moment of this session at which `then` was already past."""
    seconds = passed(then, now)
    at_most = math.inf if went_back(seconds) else max(seconds)
    return _range(max(0.0, at_least(then, now, seen)), max(0.0, at_most))


def key_is_trusted(age_of_key: ElapsedRange) -> bool:
    """True if the service surely still remembers the idempotency key: 23 of its 24 hours."""
    return age_of_key.at_most < KEY_TRUSTED_FOR


def since_last_send(age_of_intent: ElapsedRange) -> float:
    """Seconds that have surely passed since a request of that intent, or of an earlier one, was sent."""
    return max(0.0, age_of_intent.at_least - INTENT_LIFETIME)


def scan_start(first_intent: Timestamps) -> float | None:
    """The earliest creation time that a payout of a row can have on the list: seconds since 1970.

    A day before the first intent, by the service's clock, as the list compares with that one; None, from
    the very beginning, when it was not known.
    """
    return None if first_intent.server is None else first_intent.server - _DAY
