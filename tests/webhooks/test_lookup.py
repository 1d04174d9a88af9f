"""Look-ups find every record, however deep and late it is listed, and no crowd holds up the others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async._assumptions import NO_END
from payments_async._request.pages import REPEATED
from payments_async.errors import UnprocessableError
from payments_async.models import Page, Pagination, PaymentIntent
from payments_async.webhooks._lookup import (
    PATIENCE,
    PER_PAGE,
    SLACK,
    UNKNOWN,
    Lookup,
    LookupResult,
    Lookups,
    PageWalk,
    Position,
    Positions,
)
from payments_async.webhooks._tokens import TokenClaims

SIZE = 3


def page_of(records: list[str], cursor: str | None) -> tuple[list[str], str | None]:
    """A page of a list, newest first, and the cursor of the next one: the record it begins with."""
    start = 0 if cursor is None else records.index(cursor)
    following = records[start + SIZE : start + SIZE + 1]
    return records[start : start + SIZE], following[0] if following else None


def advance(walk: PageWalk, oldest: float | None, following: str | None, *, is_last: bool = True) -> None:
    """The page is read: when its last record was created, the next one's cursor, whether it is the last."""
    created_at = None if oldest is None else datetime.fromtimestamp(oldest, UTC)
    more = None if following is None and not is_last else following is not None
    record = PaymentIntent(id="pi_1", created_at=created_at)
    walk.advance(Page((record,), Pagination(next_cursor=following, has_more_pages=more)))


def look(
    records: list[str], wanted: str, position: Position, most: int, times: Mapping[str, float] | None = None
) -> tuple[bool, Position, int]:
    """One look: whether it found the record, what the next is to know, the pages it took."""
    times = times or {}
    walk = PageWalk(position, most, times.get(wanted, 0.0) + SLACK)
    while not walk.is_over:
        ids, following = page_of(records, walk.cursor)
        if wanted in ids:
            return True, UNKNOWN, walk.pages + 1
        advance(walk, times.get(ids[-1]) if ids else None, following)
    return False, walk.position, walk.pages


@given(
    older=st.integers(0, 60),
    depth=st.integers(0, 60),
    growth=st.lists(st.integers(0, 40), max_size=6),
    listed_at=st.integers(0, 6),
    most=st.integers(1, 7),
    tells_times=st.booleans(),
)
def test_a_record_is_found_wherever_it_is_and_whenever_it_is_listed(
    older: int, depth: int, growth: list[int], listed_at: int, most: int, tells_times: bool
) -> None:
    """While others are added between the looks, at first; a late one is listed among any of those before."""
    records, position, found = [f"r{number}" for number in range(older)], UNKNOWN, False
    below = records[min(depth, older) :][:1]
    times: dict[str, float] = {each: -float(number) for number, each in enumerate(records)}
    times["mine"] = times.get(below[0], 0.0) if below else -float(older)
    for turn, more in enumerate([*growth, *[0] * 700]):
        if turn == min(listed_at, len(growth)):
            records.insert(records.index(below[0]) if below else len(records), "mine")
        records = [*(f"n{turn}-{number}" for number in range(more)), *records]
        found, position, pages = look(records, "mine", position, most, times if tells_times else None)
        assert pages <= max(2, most), "one of the newest and one further back, whatever `most` is"
        assert len(position.runs) <= 3
        if found:
            break
    assert found


@given(older=st.integers(0, 60), added=st.integers(0, 8), place_of_late=st.integers(0, 8))
def test_what_is_listed_late_is_found_by_the_very_next_look(
    older: int, added: int, place_of_late: int
) -> None:
    """Unless more were added in between than its part of a look reads."""
    records = [f"r{number}" for number in range(older)]
    _, position, _ = look(records, "mine", UNKNOWN, 18)
    records.insert(place_of_late, "mine")
    records = [*(f"n{number}" for number in range(added)), *records]
    assert look(records, "mine", position, 18)[0]


@pytest.mark.parametrize("behind", [1, 2, 5])
@pytest.mark.parametrize("rate", [1, 20, 60, 200])
def test_a_payment_that_is_listed_late_on_a_busy_list_is_found_while_the_service_tries(
    rate: int, behind: int
) -> None:
    """So many payments a second; seconds from its creation to its first look; the service's five tries."""
    created, newest, position = 200_000, 200_000 + rate * behind, UNKNOWN
    for looks, pause in enumerate([0, 30, 120, 600, 3_600]):
        newest += rate * pause
        walk = PageWalk(position, 20, created / rate)
        while not walk.is_over:
            first = newest if walk.cursor is None else int(walk.cursor)
            if looks and first >= created > first - 100:
                return
            advance(walk, (first - 100) / rate, str(first - 100))
        position = walk.position
    pytest.fail("never in five looks")


@pytest.mark.parametrize("most", [1, 2, 8])
def test_what_was_created_before_the_url_was_made_is_not_looked_through(most: int) -> None:
    """But an hour's worth of it is: the service's clock is another one."""
    walk = PageWalk(UNKNOWN, 10, 10_000.0)
    advance(walk, 10_000.0 - SLACK, "c1")
    assert not walk.is_over
    advance(walk, 9_999.0 - SLACK, "c2")
    assert (walk.is_over, walk.is_cut_off, walk.pages) == (True, False, 2)
    again = PageWalk(walk.position, most, 10_000.0)
    assert again.cursor is None
    advance(again, 9_000.0 - SLACK, "c1")
    assert (again.is_over, again.is_cut_off, again.position) == (True, False, UNKNOWN)


def test_runs_take_turns_the_oldest_first_and_each_look_begins_one() -> None:
    walk = PageWalk(UNKNOWN, 4)
    for following in ("c1", "c2", "c3", "c4"):
        advance(walk, None, following)
    assert walk.position == Position(runs=("c4", "c1")), (
        "from the end of the first, and its second page again"
    )
    walk = PageWalk(walk.position, 6)
    asked = []
    while not walk.is_over:
        asked.append((walk.cursor, walk.is_earlier))
        advance(walk, None, f"{walk.cursor or 'new'}'")
    own, earlier = [(None, False), ("new'", False)], [("c4", True), ("c1", True)]
    assert asked == [own[0], *earlier, own[1], ("c4'", False), ("c1'", False)]
    assert walk.position == Position(runs=("c4''", "c1''", "new''"))
    assert PageWalk(walk.position, 3).position == Position(runs=("c4''", "c1''")), (
        "no more than have a page each"
    )
    walk = PageWalk(walk.position, 4)
    advance(walk, None, "newer")
    assert [run.cursor for run in walk._runs] == ["c4''", "c1''", "new''"], "no fourth one is begun"
    walk.drop_earlier()
    assert walk.cursor == "newer", "but when the others are lost"


def test_a_record_whose_place_is_known_takes_one_page_and_else_all_begins_anew() -> None:
    records = [f"r{number}" for number in range(30)]
    assert look(records, "r16", Position(found="r15"), 5) == (True, UNKNOWN, 1)
    assert look(records, "r2", Position(found="r15"), 2) == (False, UNKNOWN, 2)


def test_behind_a_front_that_has_become_the_whole_list_is_nothing() -> None:
    walk = PageWalk(Position(runs=("gone",)), 3)
    advance(walk, None, None)
    assert walk.is_over
    assert walk.position == UNKNOWN


def test_the_places_that_are_known_are_bounded() -> None:
    positions = Positions(2)
    for number in range(3):
        positions.note(f"t{number}", None, Position(found=f"c{number}"))
    positions.note("t1", None, UNKNOWN)
    assert [positions.of(f"t{number}", None) for number in range(3)] == [
        UNKNOWN,
        UNKNOWN,
        Position(found="c2"),
    ]


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

    async def page(self, _: object, cursor: str | None) -> Page[PaymentIntent]:
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
        internal = SimpleNamespace(runtime=self.time, reader=lambda _: self.list)
        client: Any = SimpleNamespace(_internal=internal)
        self.lookup = Lookups(client, payouts=False, max_pages=5)

    def begin(self, token: str) -> Lookup:
        """A look that has no turn yet."""
        return self.lookup.begin(TokenClaims("payment", f"of {token}", 1_700_000_000, 0), token, None)

    async def read(self, token: str) -> LookupResult:
        """One look."""
        return await self.lookup.read(self.begin(token))

    def wait(self, token: str) -> float:
        """Seconds until a look has its turn."""
        return self.lookup.wait(self.begin(token).page)


async def test_looks_in_many_places_are_read_a_few_pages_at_once_and_then_rested_for() -> None:
    crowd = Crowd(300)
    tokens = [f"r{SIZE * number}" for number in range(40)]
    for token in tokens:
        crowd.lookup._positions.note(token, None, Position(found=token))
    found = await asyncio.gather(*map(crowd.read, tokens))
    assert all(each.record is not None and each.requests == 1 for each in found)
    moments = [moment for moment, _ in crowd.list.reads]
    assert moments == pytest.approx([0.0] * 5 + [PER_PAGE * number for number in range(1, 36)])
    assert not crowd.lookup._queue._by_key, "nobody who has gone is kept"


async def test_how_long_a_look_has_to_wait_is_known_before() -> None:
    crowd = Crowd(300)
    old = [f"r{SIZE * number}" for number in range(1, 30)]
    for token in [*old, "r150"]:
        crowd.lookup._positions.note(token, None, Position(found=token))
    assert crowd.wait("r150") == 0.0
    looks = [asyncio.create_task(crowd.read(token)) for token in old[:4]]
    await asyncio.sleep(0)
    assert crowd.wait("r150") == 0.0, "five pages may be read at once"
    looks += [asyncio.create_task(crowd.read(token)) for token in old[4:]]
    await asyncio.sleep(0)
    assert crowd.wait("r150") == pytest.approx((29 - 4) * PER_PAGE)
    assert crowd.wait(old[-1]) == pytest.approx((29 - 5) * PER_PAGE), "together with who waits for that page"
    assert crowd.wait("new") == 0.0, "the newest page and the others take turns"
    await asyncio.gather(*looks)
    assert crowd.wait("new") == pytest.approx(PER_PAGE)
    crowd.time.now += PER_PAGE
    assert crowd.wait("new") == pytest.approx(0.0)


async def test_a_record_read_before_its_delivery_came_is_read_again() -> None:
    """What a page shows that was asked for earlier may be older than what the delivery tells of."""
    crowd = Crowd(3)
    arrived: list[asyncio.Task[LookupResult]] = []
    pages = crowd.list.page

    async def slow(*given: Any) -> Page[PaymentIntent]:
        if not arrived:
            arrived.append(asyncio.create_task(crowd.read("r1")))
            await asyncio.sleep(0)
        return await pages(*given)

    crowd.list.page = slow  # type: ignore[method-assign] # it takes a while
    await crowd.read("r0")
    assert not arrived[0].done()
    await arrived[0]
    assert len(crowd.list.reads) == 2


async def test_who_gave_up_is_not_read_for() -> None:
    crowd = Crowd(300)
    for token in ("r30", "r60"):
        crowd.lookup._positions.note(token, None, Position(found=token))
    hasty, patient, same = (asyncio.create_task(crowd.read(token)) for token in ("r30", "r60", "r60"))
    await asyncio.sleep(0)
    hasty.cancel()
    assert await patient == await same
    assert [cursor for _, cursor in crowd.list.reads] == ["r60"]
    assert not crowd.lookup._queue._by_key, "nobody who has gone is kept"


async def test_a_refused_cursor_of_an_earlier_look_throws_nobody_else_back() -> None:
    """One has come to the page by itself, the other goes on there from an earlier look."""
    crowd = Crowd(30)
    crowd.lookup._positions.note("r11", None, Position(runs=("r6",)))
    pages = crowd.list.page
    others: list[asyncio.Task[LookupResult]] = []
    invalid = UnprocessableError("no", status=422, service_message=None, errors={}, headers={}, body=b"")

    async def forgetful(given: object, cursor: str | None) -> Page[PaymentIntent]:
        page = await pages(given, cursor)
        if cursor == "r3" and not others:
            others.append(asyncio.create_task(crowd.read("r11")))
            await asyncio.sleep(0)
        if [each for _, each in crowd.list.reads] == [None, "r3", None, "r6"]:
            raise invalid
        return page

    crowd.list.page = forgetful  # type: ignore[method-assign] # of one cursor, once
    assert (await crowd.read("r10")).requests == 4
    assert (await others[0]).record is not None
    assert [cursor for _, cursor in crowd.list.reads] == [None, "r3", None, "r6", "r6", "r3", "r9"]


async def test_who_keeps_coming_to_look_further_back_does_not_hold_up_the_others_without_end() -> None:
    crowd = Crowd(300)
    pages = crowd.list.page
    looks: list[asyncio.Task[None]] = []
    held: list[float] = []
    requests: dict[str, int] = {}

    async def look(token: str) -> None:
        began = crowd.time.now
        requests[token] = (await crowd.read(token)).requests
        held.append(crowd.time.now - began)

    async def busy(*given: Any) -> Page[PaymentIntent]:
        if len(looks) < 100:
            crowd.list.records.insert(0, f"new{len(looks)}")  # so that nobody goes on to another's pages
            looks.append(asyncio.create_task(look(f"absent{len(looks)}")))
        await asyncio.sleep(0)
        return await pages(*given)

    crowd.list.page = busy  # type: ignore[method-assign] # while each page is read, another one comes
    await look("absent")
    while not all(each.done() for each in looks):
        await asyncio.gather(*looks)
    assert len(looks) == 100
    assert max(held) <= PATIENCE + (5 + 1) * PER_PAGE
    assert requests["absent"] == 5
    cut_short = next(token for token, pages_read in requests.items() if pages_read < 5)
    assert crowd.lookup._positions.of(cut_short, None).runs, "the next look goes on there"


async def test_a_new_record_is_found_while_a_crowd_waits_for_old_ones() -> None:
    crowd = Crowd(300)
    old = [f"r{SIZE * number}" for number in range(10, 90)]
    for token in old:
        crowd.lookup._positions.note(token, None, Position(found=token))
    looks = [asyncio.create_task(crowd.read(token)) for token in old]
    await asyncio.sleep(0)
    assert (await crowd.read("r1")).record is not None
    assert min(moment for moment, cursor in crowd.list.reads if cursor is None) <= 5 * PER_PAGE
    assert {each.record is not None for each in await asyncio.gather(*looks)} == {True}


async def test_those_who_always_come_anew_do_not_keep_the_others_waiting() -> None:
    """One page at a time: the newest and the others take turns."""
    crowd = Crowd(300)
    crowd.lookup._max_pages = 1
    crowd.lookup._positions.note("r150", None, Position(found="r150"))
    deep = asyncio.create_task(crowd.read("r150"))
    for _ in range(4):
        await crowd.read("r0")
    assert deep.done()
    assert [cursor for _, cursor in crowd.list.reads].index("r150") < 3


async def test_who_gave_up_while_a_page_was_read_is_not_told_of_its_error() -> None:
    crowd = Crowd(3)

    async def broken(*_: Any) -> Page[PaymentIntent]:
        hasty.cancel()
        await asyncio.sleep(0)
        raise ZeroDivisionError

    crowd.list.page = broken  # type: ignore[method-assign] # once
    hasty, patient = (asyncio.create_task(crowd.read(token)) for token in ("r0", "r1"))
    with pytest.raises(ZeroDivisionError):
        await patient
    assert hasty.cancelled()


def test_a_page_that_says_nothing_of_what_follows_is_no_end() -> None:
    walk = PageWalk(Position(runs=("c1",)), 5)
    advance(walk, None, None, is_last=False)
    assert (walk.cursor, walk.problem) == ("c1", NO_END), "the earlier run goes on"
    advance(walk, None, None)
    assert (walk.is_over, walk.problem) == (True, NO_END)
    whole, dated = PageWalk(UNKNOWN, 5), PageWalk(UNKNOWN, 5, 10_000.0)
    advance(whole, None, None)
    advance(dated, 9_999.0 - SLACK, None, is_last=False)
    assert (whole.problem, dated.problem) == (None, None)


def test_a_run_ends_where_a_cursor_repeats() -> None:
    walk = PageWalk(Position(runs=("c1",)), 9)
    for following in ("c1", "c2", "c2", "c3", "c1"):
        assert (walk.is_over, walk.problem) == (False, None)
        advance(walk, None, following)
    assert (walk.is_over, walk.problem) == (False, REPEATED), "the earlier run goes on"
    advance(walk, None, "c2")
    assert (walk.is_over, walk.is_cut_off, walk.pages) == (True, False, 6)
