"""The whole request path under saturating demand: no minute holds more than the limit, and little is unused.

Simulated time, and so the async client alone; `python -m tests.campaigns.pacing` runs longer ones.
"""

from __future__ import annotations

import pytest

from tests.campaigns.pacing import fullest_sliding, run

# many times as slow when it is traced; others cover the same
pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it


@pytest.mark.parametrize(("limit", "seconds"), [(60_000, 8.0), (6_000, 75.0), (100, 240.0)])
def test_every_minute_keeps_the_limit_and_nearly_all_of_it_is_used(limit: int, seconds: float) -> None:
    found = run(limit, seconds)
    print(found)
    assert found.refusals == 0
    assert found.used >= 0.99


def test_the_count_would_see_a_minute_that_is_too_full() -> None:
    moments = [0.0, *(59.0 + number / 100 for number in range(10))]
    assert fullest_sliding(moments) == 11
    assert fullest_sliding([0.0, 60.0]) == 1
    assert fullest_sliding([0.5, 60.5]) == 1
