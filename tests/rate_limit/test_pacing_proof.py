"""Minutes at the limit in simulated time: nothing is refused, and hardly any of the limit is left unused.

256 callers want to send without pause. Latencies are 30 to 120 ms, plus an exponential part of 50 ms on
average, plus a fifth to a whole second for two requests in a thousand. The service counts a request at any
moment between its sending and its answer.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from itertools import accumulate

import pytest

from payments_async._rate_limit.bucket import TokenBucket
from payments_async._rate_limit.limiter import TICK
from payments_async._rate_limit.limits import RateLimits

# many times as slow when it is traced; others cover the same
pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it

CALLERS = 256
LIMIT = 60_000
CPU = 0.000_12
"""Seconds of the client's one core for each request, which keeps it from sending two at once."""
START = 100.0


def latency(chance: random.Random) -> float:
    """Seconds from sending to answer."""
    spike = chance.uniform(0.2, 1.0) if chance.random() < 0.002 else 0.0
    return chance.uniform(0.03, 0.12) + chance.expovariate(20.0) + spike


def drive(bucket: TokenBucket, seconds: float, seed: int) -> list[float]:
    """Saturate a bucket; the moments at which the service counted, in order."""
    chance = random.Random(seed)
    now, end = START, START + seconds
    answers: list[tuple[float, int]] = []
    counted: list[float] = []
    while now < end:
        while answers and answers[0][0] <= now:
            answered, grant = heapq.heappop(answers)
            bucket.settle(grant, answered)
        if len(answers) == CALLERS:
            now = answers[0][0]
            continue
        grant = bucket.take(now)
        if not grant:
            due = now + max(bucket.wait(now), TICK)
            now = min(due, answers[0][0]) if answers else due
            continue
        answer = now + latency(chance)
        heapq.heappush(answers, (answer, grant))
        counted.append(chance.uniform(now, answer))
        now += CPU
    return sorted(counted)


def most_in_a_sliding_minute(moments: Sequence[float]) -> int:
    """The most that any 60 seconds held, wherever they began."""
    most = oldest = 0
    for newest, moment in enumerate(moments):
        while moments[oldest] <= moment - 60.0:
            oldest += 1
        most = max(most, newest - oldest + 1)
    return most


def most_in_an_aligned_minute(moments: Sequence[float]) -> int:
    """The most that any clock minute held, for clocks that begin theirs at each tenth of a second."""
    tenths = [0] * (int(moments[-1] * 10) + 601)
    for moment in moments:
        tenths[int(moment * 10)] += 1
    sums = [0, *accumulate(tenths)]
    return max(later - earlier for earlier, later in zip(sums, sums[600:], strict=False))


def share_used(moments: Sequence[float], begin: float, end: float, limit: int = LIMIT) -> float:
    """The part of the limit that was used between two moments."""
    return sum(begin <= moment < end for moment in moments) / (limit * (end - begin) / 60.0)


def report(
    title: str, moments: Sequence[float], seconds: float, limit: int = LIMIT
) -> tuple[int, int, float]:
    """The figures of one run, printed."""
    sliding, aligned = most_in_a_sliding_minute(moments), most_in_an_aligned_minute(moments)
    used = share_used(moments, moments[0], moments[0] + seconds, limit)
    print(
        f"\n{title}: {len(moments)} requests in {seconds:.0f} s, {used:.2%} of the limit;"
        f" most in a sliding minute {sliding}, in an aligned one {aligned}"
    )
    return sliding, aligned, used


@pytest.mark.parametrize(("limit", "seconds"), [(6_000, 600.0), (LIMIT, 130.0)])
def test_saturated_minutes_keep_the_limit_in_every_window_and_use_it_up(limit: int, seconds: float) -> None:
    limits = RateLimits(writes=limit)
    moments = drive(TokenBucket(limits.writes, limits.capacity("write")), seconds, seed=1)
    sliding, aligned, used = report("default burst", moments, seconds, limit)
    steady = share_used(moments, START + 60.0, START + seconds, limit)
    print(f"after the first minute: {steady:.2%}")
    assert max(sliding, aligned) <= limit
    assert min(used, steady) >= 0.995


def test_a_small_burst_keeps_the_limit_in_every_window() -> None:
    limits = RateLimits(burst=50)
    moments = drive(TokenBucket(limits.writes, limits.capacity("write")), 90.0, seed=50)
    sliding, aligned, _ = report("burst of 50", moments, 90.0)
    assert max(sliding, aligned) <= LIMIT


def test_an_idle_key_sends_a_minutes_worth_at_once_when_asked_to_and_no_more() -> None:
    limits = RateLimits(burst=60_000)
    moments = drive(TokenBucket(limits.writes, limits.capacity("write")), 90.0, seed=3)
    sliding, aligned, _ = report("a burst of 60000", moments, 90.0)
    assert sum(moment < moments[0] + 40.0 for moment in moments) == LIMIT
    assert max(sliding, aligned) <= LIMIT
