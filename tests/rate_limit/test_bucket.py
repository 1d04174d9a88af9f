"""One bucket: the pacer, the window behind it, and closing after a 429."""

from __future__ import annotations

import heapq

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


def test_the_bucket_fills_no_further_than_its_capacity() -> None:
    bucket = TokenBucket(60, 5)
    use_up(bucket, 0.0)
    assert take_all(bucket, 59.0) == 5


def test_waiting_the_time_that_was_named_is_enough() -> None:
    bucket = TokenBucket(600, 3)
    use_up(bucket, 5.0)
    wait = bucket.wait(5.0)
    assert 0.0 < wait <= 0.1
    assert bucket.take(5.0 + wait + 1e-9)


def test_nothing_is_to_be_waited_for_while_there_is_room() -> None:
    assert TokenBucket(60, 5).wait(3.0) == 0.0


# --- Window ------------------------------------------------------------------------------------------


def test_a_grant_counts_until_a_minute_after_its_answer() -> None:
    bucket = TokenBucket(1, 1)
    assert bucket.take(0.0)
    bucket.settle(ORDINARY, 20.0)
    assert not bucket.take(80.0)
    wait = bucket.wait(80.0)
    assert 0.0 < wait <= 1 / 32
    assert bucket.take(80.0 + wait)


def test_an_unanswered_grant_counts_until_a_minute_after_it_was_given_up() -> None:
    bucket = TokenBucket(1, 1)
    assert bucket.take(0.0)
    bucket.settle(ORDINARY, 30.0, answered=False)
    assert not bucket.take(90.0)
    assert bucket.take(90.1)


def test_a_grant_under_way_counts_however_long_it_takes() -> None:
    bucket = TokenBucket(2, 2)
    assert take_all(bucket, 0.0) == 2
    assert not bucket.take(100_000.0)
    assert bucket.wait(100_000.0) == 60.0


def test_the_wait_is_known_once_an_answer_came() -> None:
    bucket = TokenBucket(1, 1)
    bucket.take(0.0)
    bucket.settle(ORDINARY, 1.0)
    assert bucket.wait(2.0) == pytest.approx(59.0, abs=1 / 32)


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


def test_a_higher_limit_admits_more() -> None:
    bucket = TokenBucket(1, 1)
    use_up(bucket, 0.0)
    bucket.resize(2, 2)
    assert bucket.take(59.0)


# --- Closing -----------------------------------------------------------------------------------------


def closed(until: float = 10.0) -> TokenBucket:
    """A bucket that a 429 closed at 0.0."""
    bucket = TokenBucket(60_000, 1_000)
    bucket.refuse(bucket.take(0.0), 0.0, until)
    return bucket


def test_after_a_429_nothing_is_granted_until_the_time_it_named() -> None:
    bucket = closed(10.0)
    assert not bucket.take(9.999)
    assert bucket.wait(4.0) == 6.0
    assert bucket.take(10.0)


def test_exactly_one_probe_goes_first() -> None:
    bucket = closed()
    assert bucket.take(10.0) > ORDINARY
    assert take_all(bucket, 10.0) == take_all(bucket, 69.0) == 0
    assert 0.0 < bucket.wait(10.0) <= 1.0


def test_the_probes_answer_opens_the_bucket() -> None:
    bucket = closed()
    bucket.settle(bucket.take(10.0), 10.2)
    assert take_all(bucket, 10.3) == 1_000
    assert bucket.take(12.0) == ORDINARY


def test_a_probe_refused_again_closes_the_bucket_anew() -> None:
    bucket = closed()
    bucket.refuse(bucket.take(10.0), 10.2, 5.0)
    assert not bucket.take(15.1)
    assert bucket.take(15.2) > ORDINARY
    assert not bucket.take(15.2)


def test_after_a_probe_that_got_no_answer_the_next_caller_is_the_probe() -> None:
    bucket = closed()
    bucket.settle(bucket.take(10.0), 40.0, answered=False)
    assert bucket.take(40.0) > ORDINARY
    assert not bucket.take(40.0)


def test_after_a_probe_that_was_never_sent_the_next_caller_is_the_probe() -> None:
    bucket = closed()
    bucket.put_back(bucket.take(10.0))
    assert bucket.take(10.0) > ORDINARY
    assert not bucket.take(10.0)


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


def test_the_patience_with_a_probe_does_not_extend_the_closing_after_it() -> None:
    bucket = closed()
    bucket.refuse(bucket.take(10.0), 10.1, 1.0)
    assert bucket.take(11.1) > ORDINARY


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


def test_a_closed_bucket_is_not_idle_before_its_time() -> None:
    bucket = closed(300.0)
    assert not bucket.idle(299.0)
    assert bucket.idle(300.0)


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


def test_a_snapshot_of_a_full_window_shows_no_room() -> None:
    bucket = TokenBucket(5, 5)
    use_up(bucket, 0.0)
    assert bucket.snapshot(59.0) == LimitSnapshot(5, 5, 0, 0.0)
    bucket.resize(3, 3)
    assert bucket.snapshot(59.0) == LimitSnapshot(3, 5, 0, 0.0)


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
