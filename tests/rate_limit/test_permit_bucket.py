"""The permits of one class: what is asked of the store, what callers get, and what an outage changes."""

from __future__ import annotations

from typing import Any

import pytest

from payments_async._rate_limit.bucket import ORDINARY
from payments_async._rate_limit.limits import LimitSnapshot
from payments_async._rate_limit.permit_bucket import (
    GIVEN_UP,
    HAND_OVER,
    LAG,
    LOCAL,
    RETRY,
    PermitBucket,
    PlannedRequest,
)
from payments_async._rate_limit.store import VALID, PermitRequest, Reservation
from payments_async._rate_limit.waiters import ASKED, NEVER

LIMIT = 60_000


class Calls:
    """Counts how often the store client was called."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> None:
        self.number += 1


def bucket(calls: Calls | None = None, *, limit: int = LIMIT, **options: Any) -> PermitBucket:
    return PermitBucket(limit, max(limit // 60, 12), calls or Calls(), **options)


def answered(
    permits: PermitBucket,
    granted: int,
    now: float = 0.0,
    *,
    wait: float = 0.0,
    trip: float = 0.0,
    interactive: bool = True,
    wanted: int = 1,
    **facts: Any,
) -> None:
    """An answer that arrives at `now`, asked `trip` seconds before."""
    answer = Reservation(granted=granted, wait=wait, **facts)
    ask = PermitRequest(
        worker="w",
        limit=permits.limit,
        wanted=wanted,
        held=permits.held(now),
        lifetime=35.0,
        interactive=interactive,
    )
    permits.take_answer(answer, ask, now - trip, now)


def taken(permits: PermitBucket, now: float) -> list[int]:
    """The grants of as many callers as there is room for."""
    grants = []
    while grant := permits.take(now, "interactive"):
        grants.append(grant)
    return grants


# --- Permits ----------------------------------------------------------------------------------------------


def test_nothing_is_granted_before_the_store_has_lent_anything() -> None:
    calls = Calls()
    permits = bucket(calls)
    assert permits.take(0.0, "interactive") == 0
    assert calls.number == 1
    assert permits.wait(0.0) == LAG


def test_a_caller_who_will_try_again_in_the_queue_does_not_call_the_store_client() -> None:
    calls = Calls()
    assert bucket(calls).take(0.0) == 0
    assert calls.number == 0


def test_a_lot_starts_when_the_store_says_and_ends_a_second_later_counted_from_the_asking() -> None:
    permits = bucket()
    answered(permits, 3, 10.0, wait=0.2, trip=0.1)
    assert permits.take(10.19, "interactive") == 0
    assert permits.wait(10.0) == pytest.approx(0.2)
    assert permits.take(10.2, "interactive") == ORDINARY
    assert permits.take(10.0 - 0.1 + 0.2 + VALID - 0.01, "interactive") == ORDINARY
    assert permits.take(10.0 - 0.1 + 0.2 + VALID, "interactive") == 0
    assert permits.held(11.2) == 2, "those under way"


def test_an_answer_that_took_longer_than_a_permit_lives_brings_nothing() -> None:
    permits = bucket()
    answered(permits, 3, 10.0, trip=VALID)
    assert permits.take(10.0, "interactive") == 0


def test_held_are_permits_to_come_unused_ones_and_requests_under_way() -> None:
    permits = bucket()
    answered(permits, 5)
    answered(permits, 4, wait=0.5, interactive=False)
    grants = [permits.take(0.0, "bulk") for _ in range(2)]
    assert permits.held(0.0) == 9
    permits.settle(grants[0], 0.1)
    assert permits.held(0.1) == 8
    permits.put_back(grants[1])
    assert permits.held(0.1) == 7, "a permit that was put back is not used again"


def test_a_request_that_was_given_up_is_held_for_a_while() -> None:
    permits = bucket()
    answered(permits, 1)
    permits.settle(permits.take(0.0, "interactive"), 1.0, answered=False)
    assert permits.held(1.0 + GIVEN_UP - 0.1) == 1
    assert permits.held(1.0 + GIVEN_UP) == 0


def test_requests_of_the_time_before_the_store_are_held_while_they_count() -> None:
    permits = bucket(lingering=(60.0, 700))
    assert (permits.held(59.9), permits.held(60.0)) == (700, 0)


def test_a_snapshot_shows_what_this_process_uses_and_what_it_has_at_hand() -> None:
    permits = bucket()
    answered(permits, 5)
    answered(permits, 5, wait=1.0)
    permits.settle(permits.take(0.0, "interactive"), 0.1)
    permits.take(0.1, "interactive")
    assert permits.snapshot(0.2) == LimitSnapshot(LIMIT, used=2, available=3, closed_for=0.0)


def test_the_minutes_limit_holds_within_the_process_too() -> None:
    permits = bucket(limit=5)
    answered(permits, 9)
    assert len(taken(permits, 0.0)) == 5


def test_it_is_idle_when_nothing_counts_any_more() -> None:
    permits = bucket(workers=4)
    assert permits.idle(0.0)
    answered(permits, 1)
    grant = permits.take(0.0, "interactive")
    assert not permits.idle(0.0)
    permits.settle(grant, 0.1)
    assert not permits.idle(60.0)
    assert permits.idle(61.0)


# --- What is asked for --------------------------------------------------------------------------------------


def test_as_many_are_asked_for_as_wait_interactive_calls_first() -> None:
    permits = bucket()
    assert permits.planned_request(0.0, 0, 0) is None
    assert permits.planned_request(0.0, 3, 7) == PlannedRequest(ASKED, 3, interactive=True)
    assert permits.planned_request(0.0, 0, 7) == PlannedRequest(ASKED, 7, interactive=False)


def test_the_next_lot_is_asked_for_when_the_last_one_starts() -> None:
    permits = bucket()
    answered(permits, 2, 1.0, wait=0.3)
    assert permits.planned_request(1.0, 5, 0) == PlannedRequest(1.3, 5, interactive=True)
    assert permits.planned_request(1.0, 0, 5) == PlannedRequest(1.3, 5, interactive=False)


def test_interactive_calls_do_not_wait_for_a_bulk_lot_to_start() -> None:
    permits = bucket()
    answered(permits, 2, 1.0, wait=0.3, interactive=False)
    assert permits.planned_request(1.0, 5, 0) == PlannedRequest(ASKED, 5, interactive=True)
    assert permits.planned_request(1.0, 0, 5) == PlannedRequest(1.3, 5, interactive=False)


def test_a_refusal_is_asked_again_when_the_store_says() -> None:
    permits = bucket()
    answered(permits, 0, 1.0, wait=0.5)
    assert permits.planned_request(1.0, 1, 0) == PlannedRequest(1.5, 1, interactive=True)
    assert permits.wait(1.0) == pytest.approx(0.5)


def test_nothing_is_asked_for_callers_whose_permits_have_started() -> None:
    permits = bucket()
    answered(permits, 5)
    assert permits.planned_request(0.0, 3, 2) is None
    assert permits.planned_request(0.0, 3, 4) == PlannedRequest(0.0, 2, interactive=False)


def use(permits: PermitBucket, number: int, now: float) -> None:
    """So many calls in a moment."""
    for _ in range(number):
        permits.settle(permits.take(now, "interactive"), now)


def test_steady_use_has_permits_for_calls_to_come_asked_for() -> None:
    calls = Calls()
    permits = bucket(calls)
    permits.planned_request(0.0, 1, 0)
    answered(permits, 100)
    use(permits, 50, 0.1)  # 200 a second
    assert permits.planned_request(0.2, 0, 0) is None, "50 are left, for a quarter of a second"
    permits.planned = NEVER
    use(permits, 31, 0.2)
    assert calls.number == 1, "19 are left, for less than a tenth"
    planned = permits.planned_request(0.2, 0, 0)
    assert planned is not None
    assert planned.wanted == int(0.3 * 81 / 0.25) - 19
    assert planned.interactive


def test_bulk_use_has_its_permits_asked_for_as_bulk() -> None:
    permits = bucket()
    permits.planned_request(0.0, 0, 1)
    answered(permits, 100, interactive=False)
    use(permits, 95, 0.1)
    planned = permits.planned_request(0.1, 0, 0)
    assert planned is not None
    assert not planned.interactive


def test_rare_use_has_none_asked_for() -> None:
    permits = bucket()
    for second in range(5):
        answered(permits, 1, second)
        use(permits, 1, second)
    assert permits.planned_request(5.0, 0, 0) is None


def test_of_a_small_limit_the_store_learns_when_permits_are_no_longer_held() -> None:
    permits = bucket(limit=100)
    answered(permits, 2, 1.0, wait=0.3)
    use(permits, 2, 1.3)
    assert permits.planned_request(1.3, 0, 0) == PlannedRequest(3.0, 0, interactive=True)
    assert permits.planned_request(1.3, 1, 0) == PlannedRequest(1.3, 1, interactive=True), (
        "a caller goes first"
    )
    answered(permits, 0, 3.0, wait=0.5, wanted=0)
    assert permits.planned_request(3.0, 0, 0) is None
    assert permits.planned_request(3.0, 1, 0) == PlannedRequest(1.3, 1, interactive=True), (
        "a report delays nobody"
    )


def test_a_request_under_way_is_reported_again_and_again() -> None:
    permits = bucket(limit=100)
    answered(permits, 1)
    permits.take(0.0, "interactive")
    answered(permits, 0, 2.0, wanted=0)
    assert permits.planned_request(2.0, 0, 0) == PlannedRequest(4.0, 0, interactive=True)


# --- After a 429 --------------------------------------------------------------------------------------------


def test_a_429_drops_the_permits_and_is_told_to_the_store() -> None:
    calls = Calls()
    permits = bucket(calls)
    answered(permits, 5)
    assert permits.refuse(permits.take(0.0, "interactive"), 1.0, 30.0) == 30.0
    assert permits.closing == (31.0, 0.0)
    assert calls.number == 1
    assert permits.take(1.0, "interactive") == 0
    assert permits.held(1.0 + GIVEN_UP) == 0
    assert permits.snapshot(1.0).closed_for == 30.0


def test_of_several_429s_the_longest_is_told() -> None:
    permits = bucket()
    answered(permits, 5)
    first, second, third = (permits.take(0.0, "interactive") for _ in range(3))
    permits.refuse(first, 1.0, 30.0)
    permits.refuse(second, 2.0, 5.0)
    permits.refuse(third, 3.0, 40.0, mistaken=True)
    assert permits.closing == (43.0, 40.0)


def test_permits_that_arrive_after_a_429_are_not_used() -> None:
    permits = bucket()
    answered(permits, 2)
    permits.refuse(permits.take(0.0, "interactive"), 0.1, 30.0)
    answered(permits, 5, 0.2)
    assert permits.held(0.2 + GIVEN_UP) == 0
    assert permits.take(0.2, "interactive") == 0


def test_a_closing_that_another_process_brought_about_closes_this_one() -> None:
    permits = bucket()
    answered(permits, 5)
    answered(permits, 0, wait=20.0, closed_for=20.0)
    assert permits.take(0.0, "interactive") == 0
    assert permits.snapshot(0.0).closed_for == 20.0
    assert permits.wait(0.0) == 20.0
    answered(permits, 5, 21.0)
    assert permits.take(21.0, "interactive") == ORDINARY, "another process's probe was answered"


def closed_then_probing(permits: PermitBucket, **facts: Any) -> int:
    """The probe of a closing, granted at 20.0."""
    answered(permits, 0, wait=20.0, closed_for=20.0)
    answered(permits, 1, 20.0, probe=7.5, **facts)
    grant = permits.take(20.0, "interactive")
    assert permits.is_probe(grant)
    return grant


@pytest.mark.parametrize("answered", [True, False])
def test_the_end_of_the_probe_is_told_to_the_store(answered: bool) -> None:
    calls = Calls()
    permits = bucket(calls)
    permits.settle(closed_then_probing(permits), 20.5, answered=answered)
    assert permits.ended_probe == (7.5, answered)
    assert calls.number == 1


def test_a_probe_that_was_never_sent_or_never_taken_is_told_too() -> None:
    permits = bucket()
    permits.put_back(closed_then_probing(permits))
    assert permits.ended_probe == (7.5, False)
    permits.ended_probe = None
    answered(permits, 1, 30.0, probe=7.5)
    assert permits.held(31.0) == 0
    assert permits.ended_probe == (7.5, False)


def test_a_probe_that_gets_a_429_closes_again_and_has_no_other_end() -> None:
    permits = bucket()
    permits.refuse(closed_then_probing(permits), 20.5, 10.0)
    assert permits.closing == (30.5, 0.0)
    assert permits.ended_probe is None


def test_a_probe_with_the_same_mistake_doubles_the_pause_of_the_fleet() -> None:
    permits = bucket()
    assert permits.refuse(closed_then_probing(permits, pause=120.0), 20.5, 120.0, mistaken=True) == 240.0
    assert permits.closing == (260.5, 240.0)


def test_a_process_that_knows_of_no_closing_probes_when_it_is_told_to() -> None:
    permits = bucket()
    answered(permits, 1, probe=7.5)
    grant = permits.take(0.0, "interactive")
    assert permits.is_probe(grant)
    permits.settle(grant, 1.0)
    assert permits.ended_probe == (7.5, True)


def test_an_older_request_does_not_end_the_probe() -> None:
    permits = bucket()
    answered(permits, 1)
    older = permits.take(0.0, "interactive")
    closed_then_probing(permits)
    permits.settle(older, 20.1)
    assert permits.ended_probe is None


# --- Without the store --------------------------------------------------------------------------------------


def test_without_a_number_of_processes_nobody_goes_in_an_outage() -> None:
    permits = bucket()
    answered(permits, 5)
    permits.lose(0.0)
    assert permits.take(0.0, "interactive") == 0
    assert permits.wait(0.0) == RETRY
    assert permits.snapshot(0.0) == LimitSnapshot(LIMIT, 0, 0, 0.0)
    assert permits.part is None


def test_in_an_outage_interactive_calls_go_at_this_processs_part_from_an_empty_bucket() -> None:
    permits = bucket(workers=4)
    answered(permits, 5)
    permits.lose(0.0)
    permits.lose(0.1)
    assert permits.part == 14_550
    moments = [tick / 1000 for tick in range(10_000) if permits.take(tick / 1000, "interactive")]
    assert moments[0] > 0.0
    assert len(moments) == pytest.approx(14_550 / 6, rel=0.001)


def test_bulk_calls_wait_in_an_outage_and_so_do_callers_who_have_no_place_in_the_queue() -> None:
    permits = bucket(workers=1)
    permits.lose(0.0)
    assert permits.take(1.0, "bulk") == permits.take(1.0) == 0
    assert (permits.wait(1.0, "bulk"), permits.wait(1.0)) == (RETRY, 0.0)
    assert permits.take(1.0, "interactive")


def test_a_pause_in_an_outage_saves_up_a_quarter_of_a_second() -> None:
    permits = bucket(workers=4)
    permits.lose(0.0)
    assert len(taken(permits, 5.0)) == 14_550 // 240


def test_grants_of_an_outage_are_held_and_end_as_others() -> None:
    permits = bucket(workers=4)
    permits.lose(0.0)
    first, second, third = (permits.take(5.0, "interactive") for _ in range(3))
    assert first & LOCAL
    assert not permits.is_probe(first)
    assert permits.held(5.0) == 3
    assert permits.snapshot(5.0) == LimitSnapshot(14_550, used=3, available=57, closed_for=0.0)
    permits.settle(first, 5.1)
    permits.put_back(second)
    assert permits.held(5.1) == 1
    assert permits.refuse(third, 5.1, 30.0) == 30.0
    assert permits.held(5.1) == 0
    assert permits.take(6.0, "interactive") == 0
    assert permits.closing == (35.1, 0.0)
    assert permits.snapshot(6.0).closed_for == pytest.approx(29.1)
    assert permits.is_probe(permits.take(36.0, "interactive"))


def test_a_closing_goes_on_in_an_outage() -> None:
    permits = bucket(workers=4)
    answered(permits, 0, wait=20.0, closed_for=20.0)
    permits.lose(5.0)
    assert permits.take(19.9, "interactive") == 0
    assert permits.take(20.1, "interactive")


def test_a_closing_that_is_over_does_not() -> None:
    permits = bucket(workers=4)
    answered(permits, 0, wait=20.0, closed_for=20.0)
    permits.lose(25.0)
    assert not permits.is_probe(permits.take(30.0, "interactive"))


def test_an_outage_is_tried_at_once_by_a_store_client_that_had_other_plans() -> None:
    calls = Calls()
    permits = bucket(calls, workers=4)
    permits.lose(0.0)
    permits.take(5.0, "interactive")
    assert calls.number == 1
    permits.planned = ASKED
    permits.take(5.0, "interactive")
    assert calls.number == 1


def test_soon_after_an_outage_both_the_store_and_the_part_must_allow_it() -> None:
    permits = bucket(workers=4)
    permits.lose(0.0)
    taken(permits, 5.0)
    answered(permits, 250, 5.0)
    assert taken(permits, 5.0) == []
    assert 0.0 < permits.wait(5.0) < 0.01
    assert len(taken(permits, 5.1)) == pytest.approx(14_550 / 600, abs=1)
    answered(permits, 200, 5.0 + HAND_OVER)
    assert len(taken(permits, 5.0 + HAND_OVER)) == 200


def test_soon_after_an_outage_without_a_number_of_processes_the_store_decides_alone() -> None:
    permits = bucket()
    permits.lose(0.0)
    answered(permits, 50, 5.0)
    assert len(taken(permits, 5.0)) == 50


def test_other_limits_and_another_number_of_processes_change_the_part() -> None:
    permits = bucket(workers=4)
    permits.workers = 8
    permits.resize(30_000, 500)
    assert (permits.limit, permits.part) == (30_000, 3_637)


@pytest.mark.parametrize(("limit", "workers", "part"), [(100, 4, 24), (100, 1_000, 1), (6_000, 1, 5_820)])
def test_the_part_is_97_percent_divided_and_at_least_one(limit: int, workers: int, part: int) -> None:
    assert bucket(limit=limit, workers=workers).part == part
