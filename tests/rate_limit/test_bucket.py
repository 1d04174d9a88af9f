"""One bucket: the pacer, the window behind it, and closing after a 429."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_async._rate_limit.bucket import NONE, ORDINARY, PROBE_PATIENCE, TokenBucket
from payments_async._rate_limit.limits import LimitSnapshot


def take_all(bucket: TokenBucket, now: float) -> int:
    """How many grants the bucket gives at one moment."""
    count = 0
    while bucket.take(now):
        count += 1
    return count


def use_up(bucket: TokenBucket, now: float) -> None:
    """Send and answer as much as the bucket grants at one moment."""
    for _ in range(take_all(bucket, now)):
        bucket.settle(ORDINARY, now)


# --- Pacer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0.0, 1.0, 123_456_789.123])
@pytest.mark.parametrize(("limit", "capacity"), [(60_000, 1_000), (100, 12), (12, 12), (7, 1)])
def test_a_rested_bucket_grants_its_capacity_at_once(limit: int, capacity: int, start: float) -> None:
    assert take_all(TokenBucket(limit, capacity), start) == capacity


def test_the_bucket_refills_at_the_rate_of_the_limit() -> None:
    bucket = TokenBucket(60, 1)
    assert bucket.take(10.0)
    assert not bucket.take(10.98)
    assert bucket.take(11.0)


def test_waiting_the_time_that_was_named_is_enough() -> None:
    bucket = TokenBucket(600, 3)
    use_up(bucket, 5.0)
    wait = bucket.wait(5.0)
    assert 0.0 < wait <= 0.1
    assert bucket.take(5.0 + wait + 1e-9)


# --- Window ------------------------------------------------------------------------------------------


def test_a_grant_counts_until_a_minute_after_its_answer() -> None:
    bucket = TokenBucket(1, 1)
    assert bucket.take(0.0)
    bucket.settle(ORDINARY, 20.0)
    assert not bucket.take(80.0)
    wait = bucket.wait(80.0)
    assert 0.0 < wait <= 1 / 32
    assert bucket.take(80.0 + wait)


def test_a_grant_that_was_never_sent_leaves_no_trace() -> None:
    bucket = TokenBucket(60, 3)
    for _ in range(200):
        grant = bucket.take(7.0)
        assert grant
        bucket.put_back(grant)
    assert bucket.idle(7.0)
    assert take_all(bucket, 7.0) == 3


def test_an_answer_stamped_by_a_slower_clock_reading_counts_in_the_newer_slot() -> None:
    """Two threads read the clock and reach the bucket in the other order."""
    bucket = TokenBucket(2, 2)
    assert take_all(bucket, 10.0) == 2
    bucket.settle(ORDINARY, 11.0)
    bucket.settle(ORDINARY, 10.5)
    assert not bucket.take(70.9)
    assert take_all(bucket, 71.1) == 2


def test_what_was_answered_long_ago_is_forgotten() -> None:
    bucket = TokenBucket(60_000, 1_000)
    for second in range(10_000):
        assert bucket.take(float(second))
        bucket.settle(ORDINARY, second + 0.5)
    assert len(bucket._slots) <= 61
    assert bucket.snapshot(10_000.0).used <= 61


def test_a_lower_limit_holds_at_once_and_keeps_what_counts() -> None:
    bucket = TokenBucket(100, 100)
    use_up(bucket, 0.0)
    bucket.resize(10, 10)
    assert not bucket.take(59.9)
    assert take_all(bucket, 70.0) == 10


# --- Closing -----------------------------------------------------------------------------------------


def closed(until: float = 10.0) -> TokenBucket:
    """A bucket that a 429 closed at 0.0."""
    bucket = TokenBucket(60_000, 1_000)
    bucket.refuse(bucket.take(0.0), 0.0, until)
    return bucket


PROBE = 2
"""A grant that is a probe, in the rows below; `ORDINARY` is one of the others."""


def kind_of(grant: int) -> int:
    """What a row says of a grant."""
    return PROBE if grant > ORDINARY else grant


@pytest.mark.parametrize(
    ("end", "grants"),
    [
        (None, [(69.0, NONE)]),  # exactly one probe goes first
        (lambda bucket, probe: bucket.settle(probe, 10.2), [(10.3, ORDINARY), (12.0, ORDINARY)]),
        (lambda bucket, probe: bucket.refuse(probe, 10.2, 5.0), [(15.1, NONE), (15.2, PROBE), (15.2, NONE)]),
        (lambda bucket, probe: bucket.settle(probe, 40.0, answered=False), [(40.0, PROBE), (40.0, NONE)]),
        (lambda bucket, probe: bucket.put_back(probe), [(10.0, PROBE), (10.0, NONE)]),
    ],
    ids=["under way", "answered", "refused", "not answered", "never sent"],
)
def test_after_a_429_and_its_time_one_probe_goes_and_its_end_decides(
    end: Callable[[TokenBucket, int], object] | None, grants: list[tuple[float, int]]
) -> None:
    bucket = closed(10.0)
    assert not bucket.take(9.999)
    assert bucket.wait(4.0) == 6.0
    probe = bucket.take(10.0)
    assert kind_of(probe) == PROBE
    assert not bucket.take(10.0)
    assert 0.0 < bucket.wait(10.0) <= 1.0
    if end is not None:
        end(bucket, probe)
    assert [(now, kind_of(bucket.take(now))) for now, _ in grants] == grants


def test_a_probe_that_is_lost_makes_way_in_the_end() -> None:
    bucket = closed()
    lost = bucket.take(10.0)
    assert not bucket.take(9.9 + PROBE_PATIENCE)
    second = bucket.take(10.0 + PROBE_PATIENCE)
    assert second > ORDINARY
    bucket.settle(second, 11.0 + PROBE_PATIENCE)
    bucket.settle(lost, 12.0 + PROBE_PATIENCE)
    assert bucket.take(13.0 + PROBE_PATIENCE) == ORDINARY


def test_only_the_probe_of_a_mistaken_closing_doubles_it() -> None:
    bucket = TokenBucket(60_000, 1_000)
    early = [bucket.take(0.0) for _ in range(8)]
    assert [bucket.refuse(grant, 0.0, 120.0, mistaken=True) for grant in early] == [120.0] * 8
    assert bucket.refuse(bucket.take(120.0), 120.0, 100.0, mistaken=True) == 240.0


def test_a_believable_closing_ends_the_doubling() -> None:
    bucket = TokenBucket(60_000, 1_000)
    bucket.refuse(bucket.take(0.0), 0.0, 120.0, mistaken=True)
    assert bucket.refuse(bucket.take(120.0), 120.0, 300.0) == 300.0
    assert bucket.refuse(bucket.take(420.0), 420.0, 120.0, mistaken=True) == 120.0


def test_the_doubling_begins_anew_after_the_bucket_was_open() -> None:
    bucket = TokenBucket(60_000, 1_000)
    bucket.refuse(bucket.take(0.0), 0.0, 120.0, mistaken=True)
    bucket.settle(bucket.take(120.0), 120.0)
    assert bucket.refuse(bucket.take(121.0), 121.0, 60.0, mistaken=True) == 60.0


def test_answers_of_requests_that_left_before_the_closing_do_not_open_it() -> None:
    bucket = TokenBucket(60_000, 1_000)
    early = [bucket.take(0.0) for _ in range(3)]
    bucket.refuse(early[0], 0.1, 5.0)
    bucket.settle(early[1], 0.2)
    assert not bucket.take(1.0)
    probe = bucket.take(5.1)
    bucket.settle(early[2], 5.2)
    assert probe > ORDINARY
    assert not bucket.take(5.3)


def test_a_probe_of_an_earlier_closing_does_not_open_a_later_one() -> None:
    bucket = TokenBucket(60_000, 1_000)
    first, late = bucket.take(0.0), bucket.take(0.0)
    bucket.refuse(first, 0.1, 5.0)
    probe = bucket.take(5.1)
    bucket.refuse(late, 5.2, 30.0)
    bucket.settle(probe, 5.3)
    assert not bucket.take(35.1)
    assert bucket.take(35.2) > ORDINARY


def test_a_closing_is_extended_and_never_shortened() -> None:
    bucket = closed(10.0)
    bucket.close(1.0, 2.0)
    assert not bucket.take(9.9)
    bucket.close(2.0, 20.0)
    assert not bucket.take(21.9)
    assert bucket.take(22.0)


def test_a_probe_needs_room_in_the_window_too() -> None:
    bucket = TokenBucket(1, 1)
    bucket.refuse(bucket.take(0.0), 0.0, 10.0)
    assert not bucket.take(10.0)
    assert bucket.take(60.1) > ORDINARY


# --- Idle and snapshot -------------------------------------------------------------------------------


def test_a_bucket_is_idle_when_nothing_counts_and_nothing_is_closed() -> None:
    bucket = TokenBucket(60, 10)
    assert bucket.idle(0.0)
    grant = bucket.take(0.0)
    assert not bucket.idle(1_000.0)
    bucket.settle(grant, 1_000.0)
    assert not bucket.idle(1_060.0)
    assert bucket.idle(1_060.1)


def test_a_snapshot_tells_limit_use_room_and_closing() -> None:
    bucket = TokenBucket(120, 10)
    assert bucket.snapshot(0.0) == LimitSnapshot(120, 0, 10, 0.0)
    grants = [bucket.take(0.0) for _ in range(4)]
    assert bucket.snapshot(0.0) == LimitSnapshot(120, 4, 6, 0.0)
    assert bucket.snapshot(0.5).available == 7
    bucket.refuse(grants[0], 0.0, 30.0)
    assert bucket.snapshot(10.0) == LimitSnapshot(120, 4, 0, 20.0)
    assert bucket.snapshot(30.0) == LimitSnapshot(120, 4, 1, 0.0)
    assert bucket.take(30.0)
    assert bucket.snapshot(30.0).available == 0


@given(
    limit=st.integers(1, 5_000),
    capacity=st.integers(1, 5_000),
    taken=st.integers(0, 5_000),
    now=st.floats(0, 1e6),
    later=st.floats(0, 100),
)
@settings(max_examples=60, deadline=None)
def test_the_room_a_snapshot_shows_is_what_the_bucket_grants(
    limit: int, capacity: int, taken: int, now: float, later: float
) -> None:
    bucket = TokenBucket(limit, min(limit, capacity))
    for _ in range(taken):
        bucket.take(now)
    assert bucket.snapshot(now + later).available == take_all(bucket, now + later)


# --- Any schedule ------------------------------------------------------------------------------------

moments = st.one_of(st.just(0.0), st.floats(0.0, 2.0), st.floats(0.0, 70.0))
requests = st.tuples(
    moments,  # since the request before
    st.one_of(st.just(0.0), st.floats(0.0, 1.0), st.floats(0.0, 90.0)),  # from sending to answer
    st.floats(0.0, 1.0),  # where between the two the service counts it
    st.sampled_from(["answered"] * 6 + ["given up", "never sent", "refused"]),
)


@pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it
@given(limit=st.integers(1, 6), capacity=st.integers(1, 6), schedule=st.lists(requests, max_size=120))
@settings(max_examples=300, deadline=None)
def test_no_minute_at_the_service_ever_holds_more_than_the_limit(
    limit: int, capacity: int, schedule: list[tuple[float, float, float, str]]
) -> None:
    bucket = TokenBucket(limit, min(limit, capacity))
    counted = serve(bucket, schedule)
    assert all(later - earlier > 60.0 for earlier, later in zip(counted, counted[limit:], strict=False))


def serve(bucket: TokenBucket, schedule: list[tuple[float, float, float, str]]) -> list[float]:
    """Ask for each request once, end each grant in its time; the moments at which the service counted."""
    now = 0.0
    counted: list[float] = []
    under_way: list[tuple[float, int, int, str]] = []
    for number, (gap, latency, where, fate) in enumerate(schedule):
        now += gap
        while under_way and under_way[0][0] <= now:
            end(bucket, *heapq.heappop(under_way))
        grant = bucket.take(now)
        if grant == NONE:
            assert bucket.wait(now) > 0.0
        elif fate == "never sent":
            bucket.put_back(grant)
        else:
            answer = now + latency
            counted.append(min(now + where * latency, answer))
            heapq.heappush(under_way, (answer, number, grant, fate))
    return sorted(counted)


def end(bucket: TokenBucket, now: float, _number: int, grant: int, fate: str) -> None:
    if fate == "refused":
        bucket.refuse(grant, now, 7.0)
    else:
        bucket.settle(grant, now, answered=fate == "answered")
