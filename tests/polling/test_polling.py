"""When a list is read again. Pure."""

from __future__ import annotations

import pytest

from payments_async._waits.schedule import CEILING, FLOOR, PollSchedule, interval, page_due

ALMOST_ONE = 1 - 2**-53


@pytest.mark.parametrize("pages", [0, 1, 8, 9, 100, 1000])
def test_no_interval_is_under_five_seconds_or_reads_over_a_hundred_pages_a_minute(pages: int) -> None:
    for unchanged in range(40):
        shortest = interval(unchanged, pages, 0.0)
        assert shortest >= FLOOR
        assert pages / shortest <= 100 / 60 + 1e-9


def test_intervals_grow_with_unchanged_readings_up_to_a_ceiling() -> None:
    grown = [interval(unchanged, 1, 0.0) for unchanged in range(8)]
    assert grown[:3] == [5.0, 7.5, 11.25]
    assert grown == sorted(grown)
    assert grown[-1] == CEILING


def test_intervals_are_spread_by_a_fifth_upwards() -> None:
    assert interval(0, 1, 0.5) == pytest.approx(5.5)
    assert interval(0, 1, ALMOST_ONE) == pytest.approx(6.0)


def test_the_rests_of_a_list_grow_while_nothing_changes_and_with_the_pages() -> None:
    schedule, far = PollSchedule(), 1e9
    assert schedule.rest(0.0, far) == 0.0
    rests = []
    for _ in range(12):
        schedule.note(100.0, 0.5, pages=1, news=False)
        rests.append(schedule.rest(100.0, far))
    assert (rests[0], rests[-1]) == (pytest.approx(8.25), pytest.approx(66.0))
    schedule.note(100.0, 0.5, pages=1, news=None)
    assert schedule.due == pytest.approx(166.0), "a reading that was broken off says nothing"
    schedule.note(0.0, 0.5, pages=10_000, news=True)
    assert schedule.rest(0.0, far) == pytest.approx(6_600.0)
    assert schedule.rest(0.0, 5_999.0) is None
    assert schedule.rest(0.0, 6_001.0) == pytest.approx(6_001.0), "early, so that the time given is used"
    assert schedule.rest(7_200.0, far) == 0.0


def test_a_reading_takes_a_hundred_pages_at_once_and_then_a_hundred_a_minute() -> None:
    assert {page_due(7.0, pages) for pages in range(100)} == {7.0}
    assert [page_due(7.0, pages) for pages in (100, 101, 200)] == pytest.approx([67.0, 67.6, 127.0])
