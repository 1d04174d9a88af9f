"""How old something is when clocks lie."""

from __future__ import annotations

import math

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async.bulk._protocol.clocks import (
    CLOCK_TOLERANCE,
    INTENT_LIFETIME,
    ElapsedRange,
    Timestamps,
    age,
    key_is_trusted,
    scan_start,
    since_last_send,
)

HOUR = 3600.0
THEN = Timestamps(wall=1e9, monotonic=100.0, session="a", server=2e9)


def later(passed: float, *, wall: float = 0.0, server: bool = True, session: str = "a") -> Timestamps:
    """So many true seconds after THEN; `wall`: by how much the wall clock was set meanwhile."""
    monotonic = 100.0 + passed if session == "a" else passed
    return Timestamps(1e9 + passed + wall, monotonic, session, 2e9 + passed if server else None)


def test_clocks_that_agree_give_the_age() -> None:
    assert age(THEN, later(60)) == ElapsedRange(60.0, 60.0)


@given(st.floats(0, 1e6), st.floats(0, 1e7), st.booleans(), st.booleans())
def test_within_a_session_the_truth_lies_between_whatever_the_wall_clock_does(
    passed: float, set_by: float, forward: bool, server: bool
) -> None:
    found = age(THEN, later(passed, wall=set_by if forward else -set_by, server=server))
    assert found.at_least <= passed + 1e-3
    assert found.at_most >= passed - 1e-3


@given(st.floats(0, 1e6), st.floats(-1e7, 1e7), st.floats(0, 1e6))
def test_across_sessions_the_truth_lies_between_when_the_service_shows_its_time(
    passed: float, set_by: float, since_start: float
) -> None:
    seen = later(min(since_start, passed), session="b")
    found = age(THEN, later(passed, wall=set_by, session="b"), seen)
    assert found.at_least <= passed + 1e-3
    assert found.at_most >= passed - 1e-3


def test_a_clock_that_went_back_cannot_tell_how_old_a_key_is() -> None:
    assert age(THEN, later(60, wall=-HOUR)).at_most == math.inf
    assert age(THEN, later(60, wall=-60 - CLOCK_TOLERANCE)).at_most == 60.0
    assert age(THEN, later(0, wall=-1)) == ElapsedRange(0.0, 0.0)


def test_a_clock_set_back_a_little_is_caught_by_the_services() -> None:
    assert age(THEN, later(26 * HOUR, wall=-5 * HOUR, session="b")).at_most == 26 * HOUR


def test_a_clock_set_forward_proves_no_wait() -> None:
    assert age(THEN, later(60, wall=48 * HOUR)).at_least == 60.0
    assert age(THEN, later(60, wall=48 * HOUR, server=False, session="b")).at_least == 0.0


@pytest.mark.parametrize("server", [True, False])
def test_the_services_clock_says_nothing_where_its_first_moment_is_not_known(server: bool) -> None:
    then = attrs.evolve(THEN, server=None)
    assert age(then, later(60, server=server)) == ElapsedRange(60.0, 60.0)
    assert age(then, later(60, wall=-5, server=server, session="b")) == ElapsedRange(0.0, 55.0)


def test_without_the_services_time_a_session_counts_from_when_it_knew() -> None:
    seen = later(5, server=False, session="b")
    assert age(THEN, later(65, server=False, session="b"), seen).at_least == 60.0


@pytest.mark.parametrize(("hours", "trusted"), [(0.0, True), (22.99, True), (23.0, False), (math.inf, False)])
def test_a_key_is_trusted_for_23_of_its_24_hours(hours: float, trusted: bool) -> None:
    assert key_is_trusted(ElapsedRange(0.0, hours * HOUR)) is trusted


def test_the_last_send_is_at_most_an_intents_lifetime_after_it() -> None:
    assert since_last_send(ElapsedRange(INTENT_LIFETIME + 60.0, math.inf)) == 60.0
    assert since_last_send(ElapsedRange(INTENT_LIFETIME - 60.0, math.inf)) == 0.0


def test_a_walk_starts_a_day_before_the_first_intent_by_the_services_clock() -> None:
    assert scan_start(THEN) == 2e9 - 24 * HOUR
    assert scan_start(Timestamps(1e9, 0.0, "a")) is None
