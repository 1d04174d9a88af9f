"""When to read again, and how a wait goes on elsewhere (Limits, Polling guidance)."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from payments_async._polling.schedule import CEILING, FLOOR, PollSchedule, WaitTarget, interval, page_due
from payments_async.errors import InvalidRequest

ALMOST_ONE = 1 - 2**-53
AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


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


@pytest.mark.parametrize(
    "target",
    [
        WaitTarget("payout", "po_1", created_at=AT),
        WaitTarget("checkout", "cs_1"),
        WaitTarget("attempt", "pi_1", "pa_1", AT),
    ],
)
def test_a_token_says_what_is_waited_for(target: WaitTarget) -> None:
    assert WaitTarget.read(target.kind, target.token()) == target


TOKEN = {"v": 1, "kind": "payout", "id": "po_1", "attempt": None, "at": None}


@pytest.mark.parametrize(
    "changes",
    [
        {"v": 2},
        {"kind": "checkout"},
        {"id": ".."},
        {"id": 7},
        {"at": "yesterday"},
        {"at": 7},
        {"id": None},
    ],
)
def test_a_token_that_is_not_ours_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        WaitTarget.read("payout", json.dumps({**TOKEN, **changes}))
    assert caught.value.errors == {"token": ["is not the token of a payout's wait"]}


@pytest.mark.parametrize("text", ["{", "{}", "{" * 100_000, '{"v":1,"kind":"attempt","id":"pi_1","at":null}'])
def test_a_torn_token_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is not the token of an attempt's wait"):
        WaitTarget.read("attempt", text)


def test_an_attempts_token_needs_its_attempt() -> None:
    with pytest.raises(InvalidRequest):
        WaitTarget.read("attempt", json.dumps({**TOKEN, "kind": "attempt"}))


@pytest.mark.parametrize("given", ["", ".", "..", "a\n", None, 7])
def test_an_id_that_cannot_be_part_of_a_path_is_refused(given: object) -> None:
    with pytest.raises(InvalidRequest) as caught:
        WaitTarget.read("payout", given)
    assert list(caught.value.errors) == ["payout_id"]


def test_an_attempt_needs_both_of_its_ids() -> None:
    with pytest.raises(InvalidRequest) as caught:
        WaitTarget.read("attempt", "..", None)
    assert list(caught.value.errors) == ["payment_intent_id", "attempt_id"]
