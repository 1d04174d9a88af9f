"""When a list is read again, and what all waits of a key share: whose turn it is, and what was just read."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from payments_async._polling.readings import (
    BUSY,
    READER_PATIENCE,
    YIELD,
    ListReadings,
    RecordReadings,
    Subscription,
    readings_of,
)
from payments_async._polling.schedule import CEILING, FLOOR, PollSchedule, interval, page_due
from payments_async._rate_limit.key_limiter import KeyLimiter
from payments_async._rate_limit.waiters import NEVER
from payments_async._runtime import check_process
from tests.rate_limit.test_registry import in_a_forked_child

ALMOST_ONE = 1 - 2**-53
ONE, OTHER = object(), object()


def subscribe(loop: asyncio.AbstractEventLoop, until: float = NEVER) -> Subscription:
    future = loop.create_future()
    return Subscription("po_1", None, lambda record: record == "final", until=until, future=future)


@pytest.fixture
def loop() -> Any:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def joined(*subscriptions: Subscription) -> ListReadings:
    found = ListReadings()
    for each in subscriptions:
        found.join(each, 0.0, 0.0, just_read=False, unchanged=False)
    return found


def test_one_reads_at_a_time_and_then_all_rest(loop: Any) -> None:
    shared = joined(subscribe(loop), subscribe(loop))
    assert shared.begin(ONE, 1, 0.0, 0.0) == 0.0
    assert shared.begin(OTHER, 1, 0.0, 0.0) == BUSY
    shared.end(ONE, 1.0, 0.0, news=True)
    assert shared.begin(OTHER, 1, 0.0, 1.0) == 5.0
    assert shared.begin(OTHER, 1, 0.0, 6.0) == 0.0


def test_who_read_last_or_came_after_it_lets_the_others_go_first(loop: Any) -> None:
    """Without it, waits that end before a page has come would take every turn from one that goes on."""
    shared = joined(subscribe(loop), subscribe(loop), subscribe(loop))
    shared.begin(ONE, 1, 0.0, 0.0)
    shared.end(ONE, 0.3, 0.0, news=None)
    assert shared.begin(ONE, 1, 0.3, 5.3) == YIELD
    assert shared.begin(object(), 1, 5.1, 5.3) == YIELD
    assert shared.begin(OTHER, 1, 0.1, 5.3) == 0.0


def test_who_waits_alone_lets_nobody_go_first(loop: Any) -> None:
    shared = joined(subscribe(loop), subscribe(loop))
    shared.begin(ONE, 2, 0.0, 0.0)
    shared.end(ONE, 0.0, 0.0, news=True)
    assert shared.begin(ONE, 2, 0.0, 5.0) == 0.0, "both subscriptions are its own"


@pytest.mark.parametrize(("news", "rest"), [(True, 5.0), (False, 7.5), (None, 5.0)])
def test_only_a_whole_reading_without_news_lengthens_the_rest(
    loop: Any, news: bool | None, rest: float
) -> None:
    shared = joined(subscribe(loop))
    shared.begin(ONE, 1, 0.0, 0.0)
    shared.end(ONE, 0.0, 0.0, news=news)
    assert shared.begin(ONE, 1, 0.0, 0.0) == rest


def test_a_reader_that_stands_still_makes_way(loop: Any) -> None:
    shared = joined(subscribe(loop))
    shared.begin(ONE, 1, 0.0, 0.0)
    shared.had_page(1, 10.0)
    assert shared.begin(OTHER, 1, 0.0, 9.9 + READER_PATIENCE) == BUSY
    assert shared.begin(OTHER, 1, 0.0, 10.0 + READER_PATIENCE) == 0.0
    shared.end(ONE, 30.0, 0.0, news=True)
    assert shared.begin(ONE, 1, 30.0, 36.0) == BUSY, "the other one is at it now"


def test_subscriptions_whose_loop_is_closed_or_whose_time_is_over_are_dropped() -> None:
    closed, running = asyncio.new_event_loop(), asyncio.new_event_loop()
    gone, late, waiting = (
        subscribe(closed),
        subscribe(running, until=5.0),
        subscribe(running, until=50.0),
    )
    closed.close()
    shared = joined(gone, late, waiting)
    shared.begin(ONE, 1, 0.0, 10.0)
    assert shared.subscriptions() == [waiting]
    assert gone.show("final")
    gone.fail(ValueError("to nobody"))
    running.close()


def test_a_reading_on_one_loop_ends_a_wait_on_another(loop: Any) -> None:
    served, failed = subscribe(loop), subscribe(loop)
    assert served.show("pending")
    assert not served.show("pending")
    assert served.show("final")
    failed.fail(ValueError("why"))
    failed.fail(ValueError("too late"))

    async def both() -> list[Any]:
        return list(await asyncio.gather(served.future, failed.future, return_exceptions=True))

    found, error = loop.run_until_complete(both())
    assert (found, str(error)) == ("final", "why")


async def test_a_wait_that_is_served_in_its_last_moment_is_served() -> None:
    subscription = subscribe(asyncio.get_running_loop())
    subscription.show("final")
    subscription.give_up()
    assert await subscription.future == "final"


def test_a_problem_is_forgotten_when_no_wait_is_left(loop: Any) -> None:
    first, second = subscribe(loop), subscribe(loop)
    shared = joined(first)
    shared.problem = ValueError("why")
    shared.join(second, 0.0, 0.0, just_read=True, unchanged=True)
    assert shared.problem is not None
    shared.leave(first)
    shared.leave(second)
    shared.join(first, 0.0, 0.5, just_read=True, unchanged=True)
    assert shared.problem is None
    assert shared.begin(ONE, 1, 0.0, 0.0) == 5.5, "what was just read by itself can wait, and not to the tick"


def test_a_record_is_read_once_in_five_seconds() -> None:
    records, what = RecordReadings(), ("checkouts.retrieve", "cs_1")
    assert records.find(what, 0.0) is None
    reading = records.begin(what, 1.0)
    assert reading is not None
    assert records.begin(what, 1.0) is None, "it is under way"
    assert records.begin((*what, "other"), 1.0) is not None
    assert records.find(what, 0.0) is None
    reading.record = "read"
    assert records.find(what, 1.0) == "read"
    assert records.find(what, 1.1) is None, "older than it may be"
    assert records.begin(what, 5.9) is None
    assert records.begin(what, 6.0) is not None
    assert records.find(what, 0.0) is None


def test_a_key_has_readings_of_its_own_for_as_long_as_its_limiter_lives() -> None:
    limiter = KeyLimiter()
    assert readings_of(limiter) is readings_of(limiter)
    assert readings_of(limiter) is not readings_of(KeyLimiter())
    readings, limiter = weakref.ref(readings_of(limiter)), KeyLimiter()
    gc.collect()
    assert readings() is None


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_begins_anew() -> None:
    limiter = KeyLimiter()
    before = readings_of(limiter)
    assert in_a_forked_child(lambda: (check_process(), readings_of(limiter) is not before)[1])
    assert readings_of(limiter) is before


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
