"""How long ago something was, when no single clock can be trusted. Pure (Limits, Idempotency).

Two questions are asked, and they err in opposite directions. *May this key still be used?* takes the oldest
age that any clock gives, and a clock that went back has proven that it cannot tell. *Has enough time passed?*
takes only clocks that cannot be set: the monotonic one within a session, the service's own across sessions.
"""

from __future__ import annotations

import math
from typing import Final

import attrs

from .._gaps import KEY_TRUSTED_FOR
from ._safeguards import ALL, Safeguards

CLOCK_TOLERANCE: Final = 5.0
"""Seconds a clock may appear to go back: rounding of `Date`, and answers that overtake each other."""
INTENT_LIFETIME: Final = 300.0
"""Seconds after its intent in which a row's requests leave; later ones need a new intent."""
_DAY: Final = 86_400.0


@attrs.frozen
class Moment:
    """When something was, on every clock there was. All values are seconds."""

    wall: float
    """Since 1970, by this machine."""
    monotonic: float
    """Since the session began."""
    session: str
    """Which start of which process; monotonic values compare only within one."""
    server: float | None = None
    """Since 1970, by the service: its last `Date`, carried on with the monotonic clock; None before that."""


@attrs.frozen
class Age:
    """Seconds between two moments."""

    at_least: float
    at_most: float
    """Infinite when a clock went back."""


def age(then: Moment, now: Moment, seen: Moment | None = None, safeguards: Safeguards = ALL) -> Age:
    """How long ago `then` was. `seen`: a moment of this session at which `then` was already past."""
    passed = [now.wall - then.wall]
    if then.session == now.session:
        passed.append(now.monotonic - then.monotonic)
    if then.server is not None and now.server is not None:
        passed.append(now.server - then.server)
    at_most = max(passed) if safeguards.oldest_clock_counts else passed[0]
    if min(passed) < -CLOCK_TOLERANCE and safeguards.clock_back_expires_key:
        at_most = math.inf
    at_least = _at_least(then, now, seen) if safeguards.waits_on_steady_clocks else passed[0]
    return Age(max(0.0, at_least), max(0.0, at_most))


def _at_least(then: Moment, now: Moment, seen: Moment | None) -> float:
    if then.session == now.session:
        return now.monotonic - then.monotonic
    bounds = [0.0 if seen is None else now.monotonic - seen.monotonic]
    if then.server is not None and now.server is not None:
        bounds.append(now.server - then.server)
    return max(bounds)


def key_is_trusted(age_of_key: Age, safeguards: Safeguards = ALL) -> bool:
    """Whether the service surely still remembers the key: 23 of its 24 hours."""
    return age_of_key.at_most < KEY_TRUSTED_FOR or not safeguards.key_expires


def since_last_send(age_of_intent: Age) -> float:
    """Seconds that have surely passed since a request of that intent, or of an earlier one, left."""
    return max(0.0, age_of_intent.at_least - INTENT_LIFETIME)


def walk_start(first_intent: Moment, safeguards: Safeguards = ALL) -> float | None:
    """From which creation time on a list must be read to hold all payouts of a row: seconds since 1970.

    A day before the first intent, by the service's clock, as the list compares with that one; None, from
    the very beginning, when it was not known.
    """
    if not safeguards.walk_starts_by_service_clock:
        return first_intent.wall - _DAY
    return None if first_intent.server is None else first_intent.server - _DAY
