"""Looks find every record, however deep and however late it is listed, and no crowd holds up the others."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async.models import Page, Pagination, PaymentIntent
from payments_async.webhooks._lookup import PER_PAGE, Lookup, Reading, Want
from payments_async.webhooks._places import NOWHERE, Place, Places, Way
from payments_async.webhooks._token import Claims

SIZE = 3


def page_of(records: list[str], cursor: str | None) -> tuple[list[str], str | None]:
    """A page of a list, newest first, and the cursor of the next one: the record it begins with."""
    start = 0 if cursor is None else records.index(cursor)
    following = records[start + SIZE : start + SIZE + 1]
    return records[start : start + SIZE], following[0] if following else None


def look(records: list[str], wanted: str, place: Place, most: int) -> tuple[bool, Place, int]:
    """One look: whether it found the record, what the next is to know, the pages it took."""
    way = Way(place, most)
    while not way.is_over:
        ids, following = page_of(records, way.cursor)
        if wanted in ids:
            return True, NOWHERE, way.pages + 1
        way.passed(ids, following)
    return False, way.place, way.pages


@given(
    older=st.integers(0, 60),
    depth=st.integers(0, 60),
    growth=st.lists(st.integers(0, 40), max_size=6),
    listed_at=st.integers(0, 6),
    most=st.integers(1, 7),
)
def test_a_record_is_found_wherever_it_is_and_whenever_it_is_listed(
    older: int, depth: int, growth: list[int], listed_at: int, most: int
) -> None:
    """While others are added between the looks, at first; a late one is among the newest three then."""
    records, place, found = [f"r{number}" for number in range(older)], NOWHERE, False
    for turn, more in enumerate([*growth, *[0] * 60]):
        if turn == min(listed_at, len(growth)):
            records.insert(min(depth, SIZE - 1 if turn else older, len(records)), "mine")
        records = [*(f"n{turn}-{number}" for number in range(more)), *records]
        found, place, pages = look(records, "mine", place, most)
        assert pages <= max(2, most), "one of the newest and one further back, whatever `most` is"
        if found:
            break
    assert found


@given(older=st.integers(0, 60), added=st.integers(0, 8), most=st.integers(8, 20))
def test_what_is_listed_late_is_found_by_the_very_next_look(older: int, added: int, most: int) -> None:
    """Unless more were added in between than half a look reads."""
    records = [f"r{number}" for number in range(older)]
    _, place, _ = look(records, "mine", NOWHERE, most)
    records = [*(f"n{number}" for number in range(added)), "mine", *records]
    assert look(records, "mine", place, most)[0]


def test_a_record_whose_place_is_known_takes_one_page_and_else_all_begins_anew() -> None:
    records = [f"r{number}" for number in range(30)]
    assert look(records, "r16", Place(found="r15"), 5) == (True, NOWHERE, 1)
    assert look(records, "r2", Place(found="r15"), 2) == (False, NOWHERE, 2)


@pytest.mark.parametrize("place", [Place(found="gone"), Place(mark="r2", gaps=(("gone", None),))])
def test_a_place_that_the_service_has_forgotten_is_looked_for_from_the_newest(place: Place) -> None:
    way = Way(place, 3)
    if way.is_front:
        way.passed(["r0", "r1", "r2"], "r3")
    assert (way.cursor, way.is_from_before) == ("gone", True)
    way.forgotten()
    if way.is_front:
        way.passed(["r0", "r1", "r2"], "r3")
    assert (way.cursor, way.is_from_before, way.is_over) == ("r3", False, False)
    way.passed(["r3"], None)
    assert way.is_over
    assert not way.is_cut_off


def test_behind_a_front_that_has_become_the_whole_list_is_nothing() -> None:
    way = Way(Place(mark="r2", gaps=(("gone", None),)), 3)
    way.passed([], None)
    assert way.is_over
    assert way.place == NOWHERE


def test_the_places_that_are_known_are_bounded() -> None:
    places = Places(2)
    for number in range(3):
        places.note(f"t{number}", Place(found=f"c{number}"))
    places.note("t1", NOWHERE)
    assert [places.of(f"t{number}") for number in range(3)] == [NOWHERE, NOWHERE, Place(found="c2")]


@attrs.define
class Time:
    """A clock that jumps over every rest."""

    now: float = 0.0

    def monotonic(self) -> float:
        """Seconds."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """It is later at once."""
        self.now += seconds


@attrs.define(slots=False)
class Payments:
    """A list of payments r0, r1 and so on, the newest first; when each page was read."""

    time: Time
    records: list[str]
    reads: list[tuple[float, str | None]] = attrs.field(factory=list)

    async def list(self, *, cursor: str | None, **_: Any) -> Page[PaymentIntent]:
        """One page."""
        self.reads.append((self.time.now, cursor))
        ids, following = page_of(self.records, cursor)
        items = tuple(PaymentIntent(id=each, webhook_url=f"https://shop.example/{each}") for each in ids)
        return Page(items, Pagination(next_cursor=following, has_more_pages=following is not None))


class Crowd:
    """Looks at one list, five pages at most at a time."""

    def __init__(self, records: int) -> None:
        self.time = Time()
        self.list = Payments(self.time, [f"r{number}" for number in range(records)])
        client: Any = type("Client", (), {"payment_intents": self.list})()
        runtime: Any = self.time
        self.lookup = Lookup(client, runtime, payouts=False, max_pages=5)

    async def read(self, token: str) -> Reading:
        """One look."""
        return await self.lookup.read(
            Want(Claims("payment", f"of {token}", 1_700_000_000, 0, b""), token, None)
        )


async def test_looks_in_many_places_are_read_a_few_pages_at_a_time_and_rested_for() -> None:
    crowd = Crowd(300)
    tokens = [f"r{SIZE * number}" for number in range(40)]
    for token in tokens:
        crowd.lookup._places.note(token, Place(found=token))
    found = await asyncio.gather(*map(crowd.read, tokens))
    assert all(each.record is not None and each.requests == 1 for each in found)
    assert [*Counter(moment for moment, _ in crowd.list.reads).values()] == [5] * 8
    assert crowd.time.now == pytest.approx(7 * 5 * PER_PAGE)


async def test_a_new_record_is_found_while_a_crowd_waits_for_old_ones() -> None:
    crowd = Crowd(300)
    old = [f"r{SIZE * number}" for number in range(10, 90)]
    for token in old:
        crowd.lookup._places.note(token, Place(found=token))
    looks = [asyncio.create_task(crowd.read(token)) for token in old]
    await asyncio.sleep(0)
    assert (await crowd.read("r1")).record is not None
    assert min(moment for moment, cursor in crowd.list.reads if cursor is None) <= 5 * PER_PAGE
    assert {each.record is not None for each in await asyncio.gather(*looks)} == {True}


async def test_those_who_always_come_anew_do_not_keep_the_others_waiting() -> None:
    """One page at a time: the newest and the others take turns."""
    crowd = Crowd(300)
    crowd.lookup._max_pages = 1
    crowd.lookup._places.note("r150", Place(found="r150"))
    deep = asyncio.create_task(crowd.read("r150"))
    for _ in range(4):
        await crowd.read("r0")
    assert deep.done()
    assert [cursor for _, cursor in crowd.list.reads].index("r150") < 3


async def test_who_gave_up_while_a_page_was_read_is_not_told_of_its_error() -> None:
    crowd = Crowd(3)

    async def broken(**_: Any) -> Page[PaymentIntent]:
        hasty.cancel()
        await asyncio.sleep(0)
        raise ZeroDivisionError

    crowd.list.list = broken  # type: ignore[method-assign] # once
    hasty, patient = (asyncio.create_task(crowd.read(token)) for token in ("r0", "r1"))
    with pytest.raises(ZeroDivisionError):
        await patient
    assert hasty.cancelled()
