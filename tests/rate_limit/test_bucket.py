"""One bucket: the pacer, the window behind it, and closing after a 429. Each fact is a line of time."""

from __future__ import annotations

from itertools import takewhile

import pytest

from payments_async._rate_limit.limiter import TokenBucket
from payments_async._rate_limit.limits import LimitSnapshot

# A fact, "requests a minute" x "at once", and what happens: the second, what, its figures. Grants are counted
# from 0, and a probe is waited for 120 seconds.
LINES = """
the bucket refills at the rate of the limit; 60 x 1
    10 takes one, 10.98 takes none, 11 takes one
the bucket fills no further than its capacity; 60 x 5
    0 uses 5, 59 takes_all 5
waiting the time that was named is enough; 600 x 3
    5 uses 3, 5 waits 0.099, 5.099000001 takes one
nothing is to be waited for while there is room; 60 x 5
    3 waits 0

a grant counts until a minute after its answer; 1 x 1
    0 takes one, 20 answers 0, 80 takes none, 80 waits 0.03125, 80.03125 takes one
an unanswered grant counts until a minute after it was given up; 1 x 1
    0 takes one, 30 gives_up 0, 90 takes none, 90.1 takes one
a grant under way counts however long it takes; 2 x 2
    0 takes_all 2, 100000 takes none, 100000 waits 60
the wait is known once an answer came; 1 x 1
    0 takes one, 1 answers 0, 2 waits 59.03125
an answer stamped by a slower reading of the clock counts in the newer slot; 2 x 2
    10 takes_all 2, 11 answers 0, 10.5 answers 1, 70.9 takes none, 71.1 takes_all 2
a lower limit holds at once and keeps what counts; 100 x 100
    0 uses 100, 0 resizes 10 10, 59.9 takes none, 70 takes_all 10
answers of several moments end one after the other, each once; 3 x 3
    0 takes one, 1 answers 0, 2 takes one, 3 answers 1, 62 takes_all 2, 63.1 takes one, 121 takes none
a grant that was never sent leaves no trace; 60 x 3
    7 takes one, 7 puts_back 0, 7 idles, 7 takes_all 3
a higher limit admits more; 1 x 1
    0 uses 1, 0 resizes 2 2, 59 takes one

after a 429 nothing is granted until the time it named; 60000 x 1000
    0 takes one, 0 refuses 0 10, 4 waits 6, 9.999 takes none, 10 takes probe
exactly one probe goes first; 60000 x 1000
    0 takes one, 0 refuses 0 10, 10 takes probe, 10 takes none, 69 takes none, 10 waits 1
the probe's answer opens the bucket; 60000 x 1000
    0 takes one, 0 refuses 0 10, 10 takes probe, 10.2 answers 1, 10.3 takes_all 1000, 12 takes one
a probe refused again closes the bucket anew; 60000 x 1000
    0 takes one, 0 refuses 0 10, 10 takes probe, 10.2 refuses 1 5, 15.1 takes none, 15.2 takes probe
    15.2 takes none
after a probe that got no answer the next caller is the probe; 60000 x 1000
    0 takes one, 0 refuses 0 10, 10 takes probe, 40 gives_up 1, 40 takes probe, 40 takes none
after a probe that was never sent the next caller is the probe; 60000 x 1000
    0 takes one, 0 refuses 0 10, 10 takes probe, 10 puts_back 1, 10 takes probe, 10 takes none
a probe that is lost makes way in the end; 60000 x 1000
    0 takes one, 0 refuses 0 10, 10 takes probe, 129.9 takes none, 130 takes probe, 131 answers 2
    132 answers 1, 133 takes one
answers of requests that left before the closing do not open it; 60000 x 1000
    0 takes one, 0 takes one, 0 takes one, 0.1 refuses 0 5, 0.2 answers 1, 1 takes none, 5.1 takes probe
    5.2 answers 2, 5.3 takes none
a probe of an earlier closing does not open a later one; 60000 x 1000
    0 takes one, 0 takes one, 0.1 refuses 0 5, 5.1 takes probe, 5.2 refuses 1 30, 5.3 answers 2
    35.1 takes none, 35.2 takes probe
a closing is extended and never shortened; 60000 x 1000
    0 takes one, 0 refuses 0 10, 1 closes 2, 9.9 takes none, 2 closes 20, 21.9 takes none, 22 takes probe
the patience with a probe does not extend the closing after it; 60000 x 1000
    0 takes one, 0 refuses 0 10, 10 takes probe, 10.1 refuses 1 1, 11.1 takes probe
a probe needs room in the window too; 1 x 1
    0 takes one, 0 refuses 0 10, 10 takes none, 60.1 takes probe

a bucket is idle when nothing counts; 60 x 10
    0 idles, 0 takes one, 1000 works, 1000 answers 0, 1060 works, 1060.1 idles
a closed bucket is not idle before its time; 60000 x 1000
    0 takes one, 0 refuses 0 300, 299 works, 300 idles
a snapshot tells limit, use, room and closing; 120 x 10
    0 shows 120 0 10 0, 0 takes one, 0 takes one, 0 takes one, 0 takes one, 0 shows 120 4 6 0
    0.5 shows 120 4 7 0, 0 refuses 0 30, 10 shows 120 4 0 20, 30 shows 120 4 1 0, 30 takes probe
    30 shows 120 5 0 0
a snapshot of a full window shows no room; 5 x 5
    0 uses 5, 59 shows 5 5 0 0, 59 resizes 3 3, 59 shows 3 5 0 0
"""
FACTS = [line for line in LINES.splitlines() if line and line[0] != " "]


def take_all(bucket: TokenBucket, now: float) -> list[int]:
    """The grants that the bucket gives at one moment."""
    grants = []
    while grant := bucket.take(now):
        grants.append(grant)
    return grants


@pytest.mark.parametrize("fact", FACTS)
def test_a_bucket_in_time(fact: str) -> None:
    limit, capacity = fact.partition("; ")[2].split(" x ")
    bucket, grants = TokenBucket(int(limit), int(capacity)), list[int]()
    indented = takewhile(lambda line: line.startswith(" "), LINES.partition(fact)[2].splitlines()[1:])
    for step in ", ".join(indented).split(", "):
        moment, what, *figures = step.split()
        play(bucket, grants, float(moment), what, figures)


def play(bucket: TokenBucket, grants: list[int], now: float, what: str, figures: list[str]) -> None:
    """Let one thing happen to the bucket, and compare it with what is expected."""
    match what, figures:
        case "takes", [kind]:
            grant = bucket.take(now)
            assert ("none", "one", "probe")[min(grant, 2)] == kind
            grants += [grant] if grant else []
        case "takes_all", [number]:
            grants += (given := take_all(bucket, now))
            assert len(given) == int(number)
        case "uses", [number]:
            for grant in (given := take_all(bucket, now)):
                bucket.settle(grant, now)
            assert len(given) == int(number)
        case "waits", [seconds]:
            assert bucket.wait(now) == pytest.approx(float(seconds), abs=1e-9)
        case "answers" | "gives_up", [grant]:
            bucket.settle(grants[int(grant)], now, answered=what == "answers")
        case "puts_back", [grant]:
            bucket.put_back(grants[int(grant)])
        case "refuses", [grant, seconds]:
            bucket.refuse(grants[int(grant)], now, float(seconds))
        case "closes", [seconds]:
            bucket.close(now, float(seconds))
        case "resizes", [limit, capacity]:
            bucket.resize(int(limit), int(capacity))
        case "idles" | "works", []:
            assert bucket.idle(now) is (what == "idles")
        case "shows", [limit, used, available, closed_for]:
            expected = LimitSnapshot(int(limit), int(used), int(available), float(closed_for))
            assert bucket.snapshot(now) == expected
        case _:
            raise AssertionError(what)


def test_what_was_answered_long_ago_is_forgotten() -> None:
    bucket = TokenBucket(60_000, 1_000)
    for second in range(10_000):
        bucket.settle(bucket.take(float(second)), second + 0.5)
    assert len(bucket._slots) <= 61
    assert bucket.snapshot(10_000.0).used <= 61
