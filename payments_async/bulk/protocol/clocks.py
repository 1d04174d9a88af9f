"""How old a row's intents are, and what follows for its key and its requests. Pure (`_request/clocks.py`)."""

from __future__ import annotations

import math
from typing import Final

from ..._assumptions import KEY_TRUSTED_FOR
from ..._request.clocks import CLOCK_TOLERANCE as CLOCK_TOLERANCE
from ..._request.clocks import ElapsedRange as ElapsedRange
from ..._request.clocks import Timestamps as Timestamps
from ..._request.clocks import at_least, passed, went_back
from .safeguards import ALL, ProtocolRules

INTENT_LIFETIME: Final = 300.0
"""Seconds after its intent in which a row's requests leave; later ones need a new intent."""
_DAY: Final = 86_400.0


def age(
    then: Timestamps, now: Timestamps, seen: Timestamps | None = None, safeguards: ProtocolRules = ALL
) -> ElapsedRange:
    """How long ago `then` was. `seen`: a moment of this session at which `then` was already past."""
    seconds = passed(then, now)
    at_most = max(seconds) if safeguards.oldest_clock_counts else seconds[0]
    if went_back(seconds) and safeguards.clock_back_expires_key:
        at_most = math.inf
    surely = at_least(then, now, seen) if safeguards.waits_on_steady_clocks else seconds[0]
    return ElapsedRange(max(0.0, surely), max(0.0, at_most))


def key_is_trusted(age_of_key: ElapsedRange, safeguards: ProtocolRules = ALL) -> bool:
    """Whether the service surely still remembers the key: 23 of its 24 hours."""
    return age_of_key.at_most < KEY_TRUSTED_FOR or not safeguards.key_expires


def since_last_send(age_of_intent: ElapsedRange) -> float:
    """Seconds that have surely passed since a request of that intent, or of an earlier one, left."""
    return max(0.0, age_of_intent.at_least - INTENT_LIFETIME)


def walk_start(first_intent: Timestamps, safeguards: ProtocolRules = ALL) -> float | None:
    """From which creation time on a list must be read to hold all payouts of a row: seconds since 1970.

    A day before the first intent, by the service's clock, as the list compares with that one; None, from
    the very beginning, when it was not known.
    """
    if not safeguards.walk_starts_by_service_clock:
        return first_intent.wall - _DAY
    return None if first_intent.server is None else first_intent.server - _DAY
