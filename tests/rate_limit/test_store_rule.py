"""The rule of a shared limit: shares, peaks, closings, lost and impossible states. Times are seconds."""

from __future__ import annotations

from typing import Any

import pytest

from payments_async._rate_limit import store
from payments_async._rate_limit.store import PermitRequest, Reservation, State, figures_of

START = 1_800_000_000.0
LIMIT = 60_000


class Store:
    """One row, whose clock is in the test's hands."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.now = START
        self.state: State | None = None

    def ask(self, worker: str = "a", wanted: int = 1, **more: Any) -> Reservation:
        asked = {"limit": self.limit, "held": 0, "lifetime": 35.0, **more}
        self.state, answer = store.reserve(
            self.state, PermitRequest(worker=worker, wanted=wanted, **asked), self.now
        )
        return answer

    def close(self, seconds: float, pause: float = 0.0) -> None:
        assert self.state is not None
        self.state = store.close_after_429(self.state, seconds, pause, self.now)

    def end_probe(self, probe: float, *, answered: bool) -> None:
        assert self.state is not None
        self.state = store.end_probe(self.state, probe, answered=answered)

    def rest(self, seconds: float = 10.0) -> Store:
        self.now += seconds
        return self


def ready(limit: int = LIMIT) -> Store:
    """A row that has saved up a burst."""
    row = Store(limit)
    row.ask("a", 0)
    return row.rest()


@pytest.mark.parametrize(
    ("limit", "burst", "cap", "slowest"),
    [
        (60_000, 250, 12_000, 791.0),
        (6_000, 25, 1_200, 79.0),
        (100, 1, 20, 1.3),
        (60, 1, 12, 0.76),
        (6, 1, 1, 0.05),
    ],
)
def test_what_follows_from_a_limit(limit: int, burst: int, cap: int, slowest: float) -> None:
    figures = figures_of(limit)
    assert (figures.burst, figures.cap) == (burst, cap)
    assert figures.rate(10 * limit) == pytest.approx(slowest, rel=0.01)
    assert 60 * figures.rate(0) <= limit - 2 * burst


# Shares


def test_a_new_row_starts_with_nothing_and_owes_a_burst() -> None:
    assert Store().ask().wait == pytest.approx(0.253, abs=0.001)


def test_a_burst_is_saved_up_and_granted_at_once() -> None:
    row = ready()
    first, second = row.ask("a", 1000), row.ask("a", 1000, held=125)
    assert (first.granted, first.wait) == (125, 0.0)
    assert (second.granted, second.wait) == (125, pytest.approx(0.0, abs=0.001))
    assert row.ask("a", 1000, held=250).wait == pytest.approx(0.127, abs=0.001)


def test_permits_are_granted_in_the_order_in_which_they_were_asked_for() -> None:
    row = ready()
    waits = [row.ask(worker, 1000).wait for worker in "abcdefgh"]
    assert waits == sorted(waits)
    assert waits[-1] > 0.1


@pytest.mark.parametrize(("active", "share"), [(1, 125), (2, 84), (4, 50), (16, 15), (400, 1)])
def test_each_active_process_gets_a_share_of_a_burst(active: int, share: int) -> None:
    row = ready()
    for number in range(active - 1):
        row.ask(f"other{number}", 0)
    assert row.ask("a", 1000).granted == share


def test_a_process_that_has_not_asked_for_a_second_has_no_share() -> None:
    row = ready()
    row.ask("b", 1)
    assert row.rest(1.0).ask("a", 1000).granted == 125


def test_small_limits_grant_one_permit_at_a_time() -> None:
    assert ready(100).ask("a", 50).granted == 1


def test_no_grant_takes_the_fleet_above_a_fifth_of_the_limit() -> None:
    row = ready(100)
    row.ask("b", 0, held=12)
    assert row.ask("a", 5, held=7).granted == 1
    refused = row.ask("a", 5, held=8)
    assert (refused.granted, refused.wait) == (0, store.ASK_AGAIN)
    assert row.rest(5.0).ask("a", 5, held=7).granted == 0  # one that it has given up is for others first
    assert row.ask("a", 5, held=7).granted == 1


# Peaks


def test_the_rate_leaves_room_for_what_is_under_way() -> None:
    row = ready()
    row.ask("b", 0, held=6_000)
    first = row.ask("a", 1000, held=100)
    assert row.state is not None
    before = row.state.tail
    second = row.ask("a", 1000, held=100 + first.granted)
    assert second.peak == 6_000 + 100 + first.granted + second.granted
    rate = (60_000 - 500 - second.peak) / 60
    assert row.state.tail - before == pytest.approx(second.granted / rate)


def test_a_peak_is_forgotten_after_one_to_two_minutes() -> None:
    row = ready()
    peaks = [row.ask("a", 0, held=500).peak]
    peaks += [row.rest(30.0).ask("a", 0).peak for _ in range(5)]
    assert peaks == [500, 500, 500, 500, 0, 0]
    row.ask("a", 0, held=500)
    assert row.rest(200.0).ask("a", 0).peak == 0


def test_permits_of_a_dead_process_count_until_its_last_request_has_ended() -> None:
    row = ready()
    row.ask("dead", 50, held=50)
    row.rest(35.0).ask("a", 0)
    assert row.state is not None
    assert set(row.state.workers) == {"a", "dead"}
    row.rest(1.0).ask("a", 0)
    assert set(row.state.workers) == {"a"}


# Interactive before bulk


def test_bulk_calls_leave_half_a_burst_to_interactive_ones() -> None:
    row = ready()
    row.ask("web", 1)
    bulk = row.ask("bulk", 1000, interactive=False)
    assert bulk.granted == 42
    assert bulk.wait == 0.0
    for number in range(4):
        bulk = row.ask(f"bulk{number}", 1000, interactive=False)
    assert bulk.wait > 0.0
    assert row.ask("web", 1).wait == 0.0


def test_bulk_calls_that_would_keep_interactive_ones_waiting_are_refused() -> None:
    row = ready()
    for number in range(12):
        row.ask(f"web{number}", 1000)
    bulk = row.ask("bulk", 1000, interactive=False)
    assert bulk.granted == 0
    assert bulk.wait >= store.LET_BY
    assert row.rest(1.0).ask("bulk", 1000, interactive=False).granted > 0


# Closings


def test_a_429_closes_the_row_for_all_and_opens_it_with_one_probe() -> None:
    row = ready()
    row.close(20.0)
    closed = row.ask("b", 10)
    assert (closed.granted, closed.closed_for, closed.wait) == (0, 20.0, 20.0)
    row.rest(20.0)
    probe = row.ask("a", 10)
    assert (probe.granted, probe.closed_for) == (1, 0.0)
    assert probe.probe
    others = row.ask("b", 10)
    assert (others.granted, others.wait) == (0, store.PROBE_HINT)
    row.end_probe(probe.probe, answered=True)
    assert row.ask("b", 10).granted == 10


def test_a_probe_that_was_given_up_is_followed_by_another() -> None:
    row = ready()
    row.close(5.0)
    probe = row.rest().ask("a").probe
    row.end_probe(probe, answered=False)
    assert row.ask("b").probe == probe


def test_a_probe_of_a_dead_process_is_replaced() -> None:
    row = ready()
    row.close(5.0)
    row.rest().ask("dead")
    assert row.rest(34.5).ask("a").granted == 0
    assert row.rest(0.6).ask("a").probe


def test_a_closing_is_extended_and_never_shortened() -> None:
    row = ready()
    row.close(20.0)
    old = row.ask("a").closed_for
    row.close(5.0, pause=5.0)
    assert row.ask("a").closed_for == old
    assert row.ask("a").pause == 5.0
    row.close(30.0)
    assert (row.ask("a").closed_for, row.ask("a").pause) == (30.0, 0.0)


def test_the_probe_of_an_older_closing_opens_nothing() -> None:
    row = ready()
    row.close(5.0)
    probe = row.rest().ask("a").probe
    row.rest(1.0).close(5.0)
    row.end_probe(probe, answered=True)
    assert row.ask("b").granted == 0


# Lost and impossible states


def test_a_new_state_takes_on_the_peak_that_a_process_knows() -> None:
    row = ready()
    last = row.ask("b", 0, held=3_000)
    row.state = None
    row.rest(1.0)
    assert row.ask("a", 1, last=last, ago=1.0).peak == 3_000
    row.state = None
    assert row.ask("a", 1, last=last, ago=60.0).peak == 1


@pytest.mark.parametrize("step", [45.0, -3600.0])
def test_a_clock_that_is_set_grants_nothing_extra_and_closes_nothing(step: float) -> None:
    row = ready()
    for worker in "ab":
        last = row.ask(worker, 1000)
    row.now += step
    answer = row.rest(0.1).ask("a", 1000, last=last, ago=0.1)
    assert answer.born == row.now
    assert 0.25 < answer.wait < 0.6


def test_a_process_that_saw_the_clock_before_it_was_set_back_is_not_believed() -> None:
    row = ready()
    before = row.ask("b", 1000)
    row.now -= 3600.0
    after = row.ask("a", 1000)
    assert row.rest(0.1).ask("b", 1, last=before, ago=0.1).born == after.born


@pytest.mark.parametrize("step", [-0.05, 0.0, 0.9])
def test_a_clock_that_is_slewed_is_no_impossible_state(step: float) -> None:
    row = ready()
    last = row.ask("a", 1)
    row.now += step
    assert row.ask("a", 1, last=last, ago=0.0).born == last.born


def test_a_stale_copy_is_found_by_a_process_that_saw_more() -> None:
    row = ready()
    copy = row.state
    last = row.ask("a", 1000)
    row.state = copy
    assert row.rest(0.1).ask("a", 1000, last=last, ago=0.1).wait > 0.25
    older = copy
    last = row.ask("a", 1000)
    row.state = older  # of a state before the last one
    assert row.rest(0.1).ask("a", 1000, last=last, ago=0.1).wait > 0.25
