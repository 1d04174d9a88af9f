"""No minute holds more than the limit: of one process under saturating demand, and of four that share it.

In simulated time. Longer: `python -m tests.campaigns.pacing`, `python -m tests.campaigns.shared_limit`.
"""

from __future__ import annotations

import random

import pytest

from tests.campaigns.pacing import fullest_sliding, run
from tests.campaigns.shared_limit import SPANS, Outage, outcome_of, simulate
from tests.support.limit_stores import AHEAD, VALID, BlockRequest, Row, Terms

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


@pytest.mark.parametrize("outage", ["cut", "refused"])
def test_no_minute_holds_too_much_though_a_process_stops_and_the_store_is_lost(outage: Outage) -> None:
    found = simulate(600, outage, seed=1, callers=(12, 6, 3, 2))
    print(found)
    assert found.breaches == []


def test_the_judge_sees_a_minute_that_is_too_full_and_a_span_in_which_little_is_sent() -> None:
    full = [number / 16 for number in range(200 * 16)]
    assert outcome_of(full, 960).breaches == []
    assert outcome_of(full, 959).breaches == ["1 refused"]
    begin, end = SPANS["lost"]
    gap = [moment for moment in full if not begin <= moment < begin + (end - begin) / 5]
    assert outcome_of(gap, 960).breaches == ["only 80.0% lost"]


def hoarded(limit: int, seed: int, *, valid: float = VALID, seconds: float = 200.0) -> list[float]:
    """When requests of processes count that keep their permits back, to use all of them at once.

    They reserve whatever they are granted, and wait for a moment at which all blocks can still be used. Once
    the store forgets the row.
    """
    chance, terms = random.Random(seed), Terms(limit)
    saved = terms.block * terms.step
    request = BlockRequest(wanted=terms.block, pause=0.0, step=terms.step, saved=saved, ahead=AHEAD)
    row, now, counted = Row(saved), 0.0, list[float]()
    blocks: list[tuple[float, float, int]] = []  # (start, end, permits)
    forgets = chance.uniform(0.0, seconds)
    while now < seconds:
        answer = row.reserve(request, now)
        if answer.granted:
            blocks.append((now + answer.wait, now + valid, answer.granted))
        if now >= forgets:
            row, forgets = Row(now + saved), seconds
        now += max(answer.wait if not answer.granted else 0.0, 0.01)
        if blocks and (now >= blocks[0][1] or chance.random() < 0.002):
            due = blocks[0][1] - 1e-9 if now >= blocks[0][1] else now
            counted += [due for start, _, permits in blocks if start <= due for _ in range(permits)]
            blocks = [block for block in blocks if block[0] > due]
    return counted


@pytest.mark.parametrize("limit", [6, 60, 600, 6_000])
def test_permits_that_are_kept_back_as_long_as_they_may_overfill_no_minute(limit: int) -> None:
    fullest = max(fullest_sliding(sorted(hoarded(limit, seed))) for seed in range(5))
    assert fullest <= limit
    assert fullest >= 0.95 * limit - 2  # what is left is for the store that forgets


def test_permits_that_were_valid_for_longer_would_overfill_a_minute() -> None:
    assert fullest_sliding(sorted(hoarded(600, 1, valid=2 * VALID))) > 600
