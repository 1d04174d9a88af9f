"""One bucket: the pacer, the window behind it, and closing after a 429."""

from __future__ import annotations

import heapq

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_async._rate_limit.bucket import NONE, ORDINARY, PROBE_PATIENCE, TokenBucket
from payments_async._rate_limit.limits import LimitSnapshot


def take_all(meter: TokenBucket, now: float) -> int:
    """How many grants the meter gives at one moment."""
    count = 0
    while meter.take(now):
        count += 1
    return count


def use_up(meter: TokenBucket, now: float) -> None:
    """Send and answer as much as the meter grants at one moment."""
    for _ in range(take_all(meter, now)):
        meter.settle(ORDINARY, now)


# --- Pacer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0.0, 1.0, 123_456_789.123])
@pytest.mark.parametrize(("limit", "capacity"), [(60_000, 1_000), (100, 12), (12, 12), (7, 1)])
def test_a_rested_meter_grants_its_capacity_at_once(limit: int, capacity: int, start: float) -> None:
    assert take_all(TokenBucket(limit, capacity), start) == capacity


def test_the_bucket_refills_at_the_rate_of_the_limit() -> None:
    meter = TokenBucket(60, 1)
    assert meter.take(10.0)
    assert not meter.take(10.98)
    assert meter.take(11.0)


def test_the_bucket_fills_no_further_than_its_capacity() -> None:
    meter = TokenBucket(60, 5)
    use_up(meter, 0.0)
    assert take_all(meter, 59.0) == 5


def test_waiting_the_time_that_was_named_is_enough() -> None:
    meter = TokenBucket(600, 3)
    use_up(meter, 5.0)
    wait = meter.wait(5.0)
    assert 0.0 < wait <= 0.1
    assert meter.take(5.0 + wait + 1e-9)


def test_nothing_is_to_be_waited_for_while_there_is_room() -> None:
    assert TokenBucket(60, 5).wait(3.0) == 0.0


# --- Window ------------------------------------------------------------------------------------------


def test_a_grant_counts_until_a_minute_after_its_answer() -> None:
    meter = TokenBucket(1, 1)
    assert meter.take(0.0)
    meter.settle(ORDINARY, 20.0)
    assert not meter.take(80.0)
    wait = meter.wait(80.0)
    assert 0.0 < wait <= 1 / 32
    assert meter.take(80.0 + wait)


def test_an_unanswered_grant_counts_until_a_minute_after_it_was_given_up() -> None:
    meter = TokenBucket(1, 1)
    assert meter.take(0.0)
    meter.settle(ORDINARY, 30.0, answered=False)
    assert not meter.take(90.0)
    assert meter.take(90.1)


def test_a_grant_under_way_counts_however_long_it_takes() -> None:
    meter = TokenBucket(2, 2)
    assert take_all(meter, 0.0) == 2
    assert not meter.take(100_000.0)
    assert meter.wait(100_000.0) == 60.0


def test_the_wait_is_known_once_an_answer_came() -> None:
    meter = TokenBucket(1, 1)
    meter.take(0.0)
    meter.settle(ORDINARY, 1.0)
    assert meter.wait(2.0) == pytest.approx(59.0, abs=1 / 32)


def test_a_grant_that_was_never_sent_leaves_no_trace() -> None:
    meter = TokenBucket(60, 3)
    for _ in range(200):
        grant = meter.take(7.0)
        assert grant
        meter.put_back(grant)
    assert meter.idle(7.0)
    assert take_all(meter, 7.0) == 3


def test_an_answer_stamped_by_a_slower_clock_reading_counts_in_the_newer_slot() -> None:
    """Two threads read the clock and reach the meter in the other order."""
    meter = TokenBucket(2, 2)
    assert take_all(meter, 10.0) == 2
    meter.settle(ORDINARY, 11.0)
    meter.settle(ORDINARY, 10.5)
    assert not meter.take(70.9)
    assert take_all(meter, 71.1) == 2


def test_what_was_answered_long_ago_is_forgotten() -> None:
    meter = TokenBucket(60_000, 1_000)
    for second in range(10_000):
        assert meter.take(float(second))
        meter.settle(ORDINARY, second + 0.5)
    assert len(meter._slots) <= 61
    assert meter.snapshot(10_000.0).used <= 61


def test_a_lower_limit_holds_at_once_and_keeps_what_counts() -> None:
    meter = TokenBucket(100, 100)
    use_up(meter, 0.0)
    meter.resize(10, 10)
    assert not meter.take(59.9)
    assert take_all(meter, 70.0) == 10


def test_a_higher_limit_admits_more() -> None:
    meter = TokenBucket(1, 1)
    use_up(meter, 0.0)
    meter.resize(2, 2)
    assert meter.take(59.0)


# --- Closing -----------------------------------------------------------------------------------------


def closed(until: float = 10.0) -> TokenBucket:
    """A meter that a 429 closed at 0.0."""
    meter = TokenBucket(60_000, 1_000)
    meter.refuse(meter.take(0.0), 0.0, until)
    return meter


def test_after_a_429_nothing_is_granted_until_the_time_it_named() -> None:
    meter = closed(10.0)
    assert not meter.take(9.999)
    assert meter.wait(4.0) == 6.0
    assert meter.take(10.0)


def test_exactly_one_probe_goes_first() -> None:
    meter = closed()
    assert meter.take(10.0) > ORDINARY
    assert take_all(meter, 10.0) == take_all(meter, 69.0) == 0
    assert 0.0 < meter.wait(10.0) <= 1.0


def test_the_probes_answer_opens_the_meter() -> None:
    meter = closed()
    meter.settle(meter.take(10.0), 10.2)
    assert take_all(meter, 10.3) == 1_000
    assert meter.take(12.0) == ORDINARY


def test_a_probe_refused_again_closes_the_meter_anew() -> None:
    meter = closed()
    meter.refuse(meter.take(10.0), 10.2, 5.0)
    assert not meter.take(15.1)
    assert meter.take(15.2) > ORDINARY
    assert not meter.take(15.2)


def test_after_a_probe_that_got_no_answer_the_next_caller_is_the_probe() -> None:
    meter = closed()
    meter.settle(meter.take(10.0), 40.0, answered=False)
    assert meter.take(40.0) > ORDINARY
    assert not meter.take(40.0)


def test_after_a_probe_that_was_never_sent_the_next_caller_is_the_probe() -> None:
    meter = closed()
    meter.put_back(meter.take(10.0))
    assert meter.take(10.0) > ORDINARY
    assert not meter.take(10.0)


def test_a_probe_that_is_lost_makes_way_in_the_end() -> None:
    meter = closed()
    lost = meter.take(10.0)
    assert not meter.take(9.9 + PROBE_PATIENCE)
    second = meter.take(10.0 + PROBE_PATIENCE)
    assert second > ORDINARY
    meter.settle(second, 11.0 + PROBE_PATIENCE)
    meter.settle(lost, 12.0 + PROBE_PATIENCE)
    assert meter.take(13.0 + PROBE_PATIENCE) == ORDINARY


def test_only_the_probe_of_a_mistaken_closing_doubles_it() -> None:
    meter = TokenBucket(60_000, 1_000)
    early = [meter.take(0.0) for _ in range(8)]
    assert [meter.refuse(grant, 0.0, 120.0, mistaken=True) for grant in early] == [120.0] * 8
    assert meter.refuse(meter.take(120.0), 120.0, 100.0, mistaken=True) == 240.0


def test_a_believable_closing_ends_the_doubling() -> None:
    meter = TokenBucket(60_000, 1_000)
    meter.refuse(meter.take(0.0), 0.0, 120.0, mistaken=True)
    assert meter.refuse(meter.take(120.0), 120.0, 300.0) == 300.0
    assert meter.refuse(meter.take(420.0), 420.0, 120.0, mistaken=True) == 120.0


def test_the_doubling_begins_anew_after_the_meter_was_open() -> None:
    meter = TokenBucket(60_000, 1_000)
    meter.refuse(meter.take(0.0), 0.0, 120.0, mistaken=True)
    meter.settle(meter.take(120.0), 120.0)
    assert meter.refuse(meter.take(121.0), 121.0, 60.0, mistaken=True) == 60.0


def test_answers_of_requests_that_left_before_the_closing_do_not_open_it() -> None:
    meter = TokenBucket(60_000, 1_000)
    early = [meter.take(0.0) for _ in range(3)]
    meter.refuse(early[0], 0.1, 5.0)
    meter.settle(early[1], 0.2)
    assert not meter.take(1.0)
    probe = meter.take(5.1)
    meter.settle(early[2], 5.2)
    assert probe > ORDINARY
    assert not meter.take(5.3)


def test_a_probe_of_an_earlier_closing_does_not_open_a_later_one() -> None:
    meter = TokenBucket(60_000, 1_000)
    first, late = meter.take(0.0), meter.take(0.0)
    meter.refuse(first, 0.1, 5.0)
    probe = meter.take(5.1)
    meter.refuse(late, 5.2, 30.0)
    meter.settle(probe, 5.3)
    assert not meter.take(35.1)
    assert meter.take(35.2) > ORDINARY


def test_a_closing_is_extended_and_never_shortened() -> None:
    meter = closed(10.0)
    meter.close(1.0, 2.0)
    assert not meter.take(9.9)
    meter.close(2.0, 20.0)
    assert not meter.take(21.9)
    assert meter.take(22.0)


def test_the_patience_with_a_probe_does_not_extend_the_closing_after_it() -> None:
    meter = closed()
    meter.refuse(meter.take(10.0), 10.1, 1.0)
    assert meter.take(11.1) > ORDINARY


def test_a_probe_needs_room_in_the_window_too() -> None:
    meter = TokenBucket(1, 1)
    meter.refuse(meter.take(0.0), 0.0, 10.0)
    assert not meter.take(10.0)
    assert meter.take(60.1) > ORDINARY


# --- Idle and snapshot -------------------------------------------------------------------------------


def test_a_meter_is_idle_when_nothing_counts_and_nothing_is_closed() -> None:
    meter = TokenBucket(60, 10)
    assert meter.idle(0.0)
    grant = meter.take(0.0)
    assert not meter.idle(1_000.0)
    meter.settle(grant, 1_000.0)
    assert not meter.idle(1_060.0)
    assert meter.idle(1_060.1)


def test_a_closed_meter_is_not_idle_before_its_time() -> None:
    meter = closed(300.0)
    assert not meter.idle(299.0)
    assert meter.idle(300.0)


def test_a_snapshot_tells_limit_use_room_and_closing() -> None:
    meter = TokenBucket(120, 10)
    assert meter.snapshot(0.0) == LimitSnapshot(120, 0, 10, 0.0)
    grants = [meter.take(0.0) for _ in range(4)]
    assert meter.snapshot(0.0) == LimitSnapshot(120, 4, 6, 0.0)
    assert meter.snapshot(0.5).available == 7
    meter.refuse(grants[0], 0.0, 30.0)
    assert meter.snapshot(10.0) == LimitSnapshot(120, 4, 0, 20.0)
    assert meter.snapshot(30.0) == LimitSnapshot(120, 4, 1, 0.0)
    assert meter.take(30.0)
    assert meter.snapshot(30.0).available == 0


def test_a_snapshot_of_a_full_window_shows_no_room() -> None:
    meter = TokenBucket(5, 5)
    use_up(meter, 0.0)
    assert meter.snapshot(59.0) == LimitSnapshot(5, 5, 0, 0.0)
    meter.resize(3, 3)
    assert meter.snapshot(59.0) == LimitSnapshot(3, 5, 0, 0.0)


@given(
    limit=st.integers(1, 5_000),
    capacity=st.integers(1, 5_000),
    taken=st.integers(0, 5_000),
    now=st.floats(0, 1e6),
    later=st.floats(0, 100),
)
@settings(max_examples=60, deadline=None)
def test_the_room_a_snapshot_shows_is_what_the_meter_grants(
    limit: int, capacity: int, taken: int, now: float, later: float
) -> None:
    meter = TokenBucket(limit, min(limit, capacity))
    for _ in range(taken):
        meter.take(now)
    assert meter.snapshot(now + later).available == take_all(meter, now + later)


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
    meter = TokenBucket(limit, min(limit, capacity))
    counted = serve(meter, schedule)
    assert all(later - earlier > 60.0 for earlier, later in zip(counted, counted[limit:], strict=False))


def serve(meter: TokenBucket, schedule: list[tuple[float, float, float, str]]) -> list[float]:
    """Ask for each request once, end each grant in its time; the moments at which the service counted."""
    now = 0.0
    counted: list[float] = []
    under_way: list[tuple[float, int, int, str]] = []
    for number, (gap, latency, where, fate) in enumerate(schedule):
        now += gap
        while under_way and under_way[0][0] <= now:
            end(meter, *heapq.heappop(under_way))
        grant = meter.take(now)
        if grant == NONE:
            assert meter.wait(now) > 0.0
        elif fate == "never sent":
            meter.put_back(grant)
        else:
            answer = now + latency
            counted.append(min(now + where * latency, answer))
            heapq.heappush(under_way, (answer, number, grant, fate))
    return sorted(counted)


def end(meter: TokenBucket, now: float, _number: int, grant: int, fate: str) -> None:
    if fate == "refused":
        meter.refuse(grant, now, 7.0)
    else:
        meter.settle(grant, now, answered=fate == "answered")
