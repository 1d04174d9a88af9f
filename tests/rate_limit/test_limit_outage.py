"""A fleet under full load whose store is gone for thirty seconds, and back: nothing is refused.

Simulated time, and so the async client alone; `python -m tests.campaigns.limit_outage` runs it at full size.
"""

from __future__ import annotations

import pytest

from tests.campaigns.limit_outage import KINDS, outcome_of, simulate

# many times as slow when it is traced; others cover the same
pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_refused_and_nine_tenths_are_used_during_an_outage(kind: str) -> None:
    found = simulate(600, kind, seed=1, callers=8)
    print(found)
    assert found.breaches == []
    assert found.before >= 0.96


def test_the_judge_sees_a_minute_that_is_too_full_and_an_outage_in_which_little_is_sent() -> None:
    full = [number / 16 for number in range(170 * 16)]
    assert outcome_of(full, 960).breaches == []
    assert outcome_of(full, 959).breaches == ["1 refused"]
    gap = [moment for moment in full if not 70.0 <= moment < 74.0]
    assert outcome_of(gap, 960).breaches == ["only 86.7% during"]
