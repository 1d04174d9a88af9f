"""How long an idempotency key has been in use when clocks lie."""

from __future__ import annotations

import math

import pytest

from payments_async._request.key_age import CLOCK_TOLERANCE, Timestamps, key_age

HOUR = 3600.0
ENDED = Timestamps(wall=1e9, monotonic=100.0, session="a", server=2e9)


@pytest.mark.parametrize(
    ("now", "age"),
    [
        (Timestamps(1e9 + 60, 160.0, "a", 2e9 + 60), 70.0),
        (Timestamps(1e9 + 60, 160.0, "a"), 70.0),
        (Timestamps(1e9 + 21 * HOUR, 0.0, "b", 2e9 + 26 * HOUR), 26 * HOUR + 10),
        (Timestamps(1e9 + 60, 0.0, "b", 2e9 - CLOCK_TOLERANCE - 1), math.inf),
        (Timestamps(1e9 - CLOCK_TOLERANCE - 1, 160.0, "a", 2e9 + 60), math.inf),
    ],
)
def test_the_clock_that_gives_the_most_counts_forwards(now: Timestamps, age: float) -> None:
    assert key_age(1e9 - 10, ENDED, 10.0, now) == age
