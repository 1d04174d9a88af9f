"""How old an idempotency key is, and how much time has passed, when no single clock can be trusted. Pure.

Two questions have opposite safe sides. *May this key still be used?* The greatest age that any clock gives
counts; if a clock went back, the key may not be used. *Has enough time passed?* Only clocks that cannot be
set count: the monotonic one within a session, the service's own across sessions (Limits, Idempotency).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import attrs

from .. import _assumptions
from .._attrs import ValueMixin

CLOCK_TOLERANCE: Final = 5.0
"""Seconds a clock may appear to go back: rounding of `Date`, and answers that overtake each other."""
HOST_TOLERANCE: Final = 300.0
"""Seconds by which the clock of another host may be ahead of ours."""
SERVICE_TOLERANCE: Final = 60.0
"""Seconds by which the service's clock may be behind ours."""


@attrs.frozen(eq=False, repr=False)
class Timestamps(ValueMixin):
    """One moment on every available clock. All values are seconds."""

    wall: float  # since 1970, by this machine
    monotonic: float  # since the session began
    session: str
    """Identifies the process and its start; monotonic values of different sessions cannot be compared."""
    server: float | None = None
    """Since 1970, by the service; None when it did not say."""


def passed(then: Timestamps, now: Timestamps) -> list[float]:
    """Seconds between two moments by each clock that both were read on, the wall clock's first."""
    found = [now.wall - then.wall]
    if then.session == now.session:
        found.append(now.monotonic - then.monotonic)
    if then.server is not None and now.server is not None:
        found.append(now.server - then.server)
    return found


def at_least(then: Timestamps, now: Timestamps) -> float:
    """Seconds that have certainly passed."""
    is_one = then.session == now.session
    bounds = [now.monotonic - then.monotonic if is_one else 0.0]
    if then.server is not None and now.server is not None:
        bounds.append(now.server - then.server)
    return min(bounds) if is_one else max(bounds)  # copies of one machine share a session, and no clock


def key_age(made: float, ended: Timestamps | None, in_use: float, now: Timestamps) -> float:
    """The most seconds for which an idempotency key has been in use; infinite when a clock went back.

    `made`: when the request was prepared, by the wall clock of its host. `ended`: the end of the last call
    with the key, and `in_use` the seconds of its use until then; without them, only the wall clock is used.
    """
    by_wall = now.wall - made
    if by_wall < -HOST_TOLERANCE:
        return math.inf
    if ended is None:
        return by_wall
    since = passed(ended, now)
    if min(since) < -CLOCK_TOLERANCE:  # a clock went back
        return math.inf
    return max(by_wall, max(ended.wall - made, in_use) + max(since))


def why_outdated(made: float, first: float | None, age: float, service: float | None) -> str | None:
    """Why a key may protect its write no longer, by the service's time too; None while it does.

    `made`: when the request was prepared, by the wall clock; `first`: when the service answered the first
    attempt, by its own. `age`: the most seconds of use by our clocks.
    """
    if service is None:
        return "the service does not tell its time, and a paused machine has no clock that saw it pass"
    since = service - (made if first is None else first)
    if since < -SERVICE_TOLERANCE:
        return f"the service's time is {-since:.0f} s earlier than the request's: one of the clocks is wrong"
    if max(age, since) >= _assumptions.KEY_TRUSTED_FOR:
        return f"its key has been in use for {max(age, since) / 3600:.1f} hours, and may have ended"
    return None


def answer_time(headers: Mapping[str, str]) -> float | None:
    """The service's time at an answer, seconds since 1970: `Date`, and `Age` of one from a cache."""
    said, age = http_date(headers.get("date", "")), headers.get("age", "")
    if said is None:
        return None
    return said.timestamp() + (int(age) if age.isascii() and age.isdigit() and len(age) < 10 else 0)


def http_date(text: str) -> datetime | None:
    """The moment that an HTTP date names; None for anything else."""
    if not text.isascii() or not 16 <= len(text) <= 40:
        return None
    try:
        moment = parsedate_to_datetime(text)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        return None
