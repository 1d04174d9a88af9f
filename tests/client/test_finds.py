"""`payouts.find`: a payout by its reference, None only where the service says that the list ends."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from datetime import date
from typing import Any

import attrs
import pytest

from payments_async import UnprocessableError
from payments_async.bulk._run.service import Service
from payments_async.errors import InvalidRequest, SearchIncomplete, WaitTimeout
from payments_async.sandbox import STRICT, Sandbox, VirtualClock
from tests.support.creations import PAYOUT, create
from tests.support.motion import play
from tests.support.patience import until
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect, error_of
from tests.support.waits import Watched
from tests.support.watched import WatchedSandbox


def page(*references: str, cursor: str | None = None) -> Any:
    """An answer with one page of payouts."""
    data = [{"id": f"po_{each}", "reference": each} for each in references]
    return answer(200, {"data": data, "pagination": {"next_cursor": cursor, "has_more_pages": bool(cursor)}})


async def test_a_payout_is_found_by_its_reference(connect: Connect, watched: WatchedSandbox) -> None:
    client = connect(watched)
    payout = await create(client, "payouts", reference="inv 7/é")
    await create(client, "payouts", reference="inv 7")
    watched.arrived.clear()

    found = await client.payouts.find("inv 7/é", created_on_or_after=date(2026, 1, 1))
    assert found.id == payout.id
    assert found.response.status == 200
    assert found.response.attempts[0].verdict == "executed"
    assert watched.query == {"per_page": "100", "created_at[gte]": "2026-01-01"}
    assert len(watched.arrived) == 1


@pytest.mark.parametrize(
    ("pages", "most", "found", "read"),
    [
        ([page("a", cursor="c1"), page("b", cursor="c2"), page("c")], None, None, ["100", "c1", "c2"]),
        ([page("a", cursor="c1"), page("b", "inv-7", cursor="c2")], 2, "po_inv-7", ["100", "c1"]),
        ([page("a", cursor="c1"), page("b")], 2, None, ["100", "c1"]),
    ],
    ids=["to its end", "until it is found", "to the last page allowed"],
)
async def test_a_list_is_read_until_it_ends_or_the_payout_is_found(
    connect: Connect, pages: list[Any], most: int | None, found: str | None, read: list[str]
) -> None:
    transport = ScriptedTransport(*pages)
    payout = await connect(transport=transport).payouts.find("inv-7", **({"max_pages": most} if most else {}))
    assert (payout and payout.id) == found
    assert [request.url.rpartition("=")[2] for request in transport.requests] == read


async def test_a_find_that_ran_out_of_pages_says_where_to_go_on(connect: Connect) -> None:
    transport = ScriptedTransport(page("a", cursor="c1"), page("b", cursor="c2"), page("inv-7"))
    client = connect(transport=transport)
    caught = await error_of(SearchIncomplete, client.payouts.find("inv-7", max_pages=2))
    for error in (caught, pickle.loads(pickle.dumps(caught))):
        assert (error.pages, error.cursor) == (2, "c2")
        assert error.operation == "payouts.find"
        assert error.effect == "none"
        assert "go on with cursor=error.cursor" in str(error)
    assert (await client.payouts.find("inv-7", cursor=error.cursor)).id == "po_inv-7"
    assert "cursor=c2" in transport.requests[-1].url


@pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror checks nothing itself
@pytest.mark.parametrize(
    ("reference", "search", "fields"),
    [
        ("", {}, {"reference"}),
        (7, {}, {"reference"}),
        (None, {"max_pages": 0}, {"reference", "max_pages"}),
        ("inv-7", {"max_pages": 1.0}, {"max_pages"}),
        ("inv-7", {"max_pages": True}, {"max_pages"}),
        ("inv-7", {"created_on_or_after": 7}, {"created_on_or_after"}),
        ("inv-7", {"timeout": 0}, {"timeout"}),
    ],
)
async def test_bad_search_is_told(
    connect: Connect, reference: Any, search: dict[str, Any], fields: set[str]
) -> None:
    transport = ScriptedTransport(page("inv-7"))
    caught = await error_of(InvalidRequest, connect(transport=transport).payouts.find(reference, **search))
    assert caught.errors.keys() == fields
    assert transport.requests == []


async def test_a_record_that_cannot_be_read_may_be_the_one_wanted(connect: Connect) -> None:
    page: dict[str, Any] = {"data": [{"id": "po_1", "reference": 7}, {"id": "po_2", "reference": "r-2"}]}
    page["pagination"] = {"has_more_pages": False}
    client = connect(transport=ScriptedTransport(answer(200, page)))
    assert (await client.payouts.find("r-2")).id == "po_2"
    with pytest.raises(SearchIncomplete, match="could not be read"):
        await client.payouts.find("r-1")


UNPROVEN: list[dict[str, Any]] = [
    {},
    {"pagination": None},
    {"pagination": {"count": 1, "per_page": 100, "next_page_url": None}},
    {"pagination": {"has_more_pages": True}},
    {"pagination": {"has_more_pages": True, "next_cursor": None}},
]
PROVEN: list[dict[str, Any]] = [
    {"pagination": {"has_more_pages": False}},
    {"pagination": {"has_more_pages": False, "next_cursor": "c1"}},
    {"pagination": {"next_cursor": None}},
    {"pagination": {"next_cursor": ""}},
    {"pagination": {"next_cursor": None, "has_more_pages": None, "unknown": 7}},
]


def body(size: int, says: dict[str, Any], **changes: Any) -> Any:
    """An answer with so many payouts, and what the service says of what follows them."""
    records = [{"id": f"po_{each}", "reference": f"r-{each}", **changes} for each in range(size)]
    return answer(200, {"data": records, **says})


@pytest.mark.parametrize(("says", "size"), [*zip(UNPROVEN, [1, 15, 100] * 3, strict=False)])
async def test_silence_is_not_the_end_of_a_search(connect: Connect, says: dict[str, Any], size: int) -> None:
    client = connect(transport=ScriptedTransport(body(size, says)))
    caught = await error_of(SearchIncomplete, client.payouts.find("wanted"), match="gave no cursor")
    assert (caught.pages, caught.cursor, caught.effect) == (1, None, "none")
    assert (await client.payouts.find("r-0")).id == "po_0"
    page = await client.payouts.list()
    assert (page.next_cursor, page.is_last) == (None, False)


@pytest.mark.parametrize("says", PROVEN)
async def test_a_search_ends_where_the_list_is_said_to_end(connect: Connect, says: dict[str, Any]) -> None:
    client = connect(transport=ScriptedTransport(body(2, says)))
    assert await client.payouts.find("wanted") is None
    page = await client.payouts.list()
    assert (page.next_cursor, page.is_last) == (None, True)


@pytest.mark.parametrize("says", [{}, {"pagination": {}}, {"pagination": {"per_page": 100}}])
async def test_a_page_without_records_ends_a_list(connect: Connect, says: dict[str, Any]) -> None:
    client = connect(transport=ScriptedTransport(body(0, says)))
    assert await client.payouts.find("wanted") is None
    assert (await client.payouts.list()).is_last


async def test_a_page_whose_records_cannot_be_read_is_not_empty(connect: Connect) -> None:
    client = connect(transport=ScriptedTransport(answer(200, {"data": [{"id": 7}]})))
    page = await client.payouts.list()
    assert (len(page), len(page.unread), page.is_last) == (0, 1, False)


async def test_a_wait_says_that_the_list_proved_no_end(connect: Connect) -> None:
    played = play(connect, body(2, {}))
    caught = await error_of(
        WaitTimeout, played.client.payouts.wait("po_7", deadline=12.0), match="gave no cursor"
    )
    assert isinstance(caught.__cause__, SearchIncomplete)
    assert caught.__cause__.pages == 1


async def test_a_wait_whose_record_the_list_shows_needs_no_end(connect: Connect) -> None:
    played = play(connect, body(2, {}), body(2, {}, status="completed"))
    assert (await played.client.payouts.wait("po_1")).is_final
    played = play(connect, body(2, {}))
    caught = await error_of(WaitTimeout, played.client.payouts.wait("po_1", deadline=12.0))
    assert caught.__cause__ is None
    assert caught.last.id == "po_1"


FIELDS: dict[str, Any] = {**PAYOUT, "currency": "EUR"}
BULK = pytest.mark.parametrize("surface", ["async"], indirect=True)
"""Bulk's engine has one surface."""


@pytest.fixture
def world(connect: Connect) -> Iterator[Watched]:
    narrow = attrs.evolve(STRICT, max_page_size=50)
    with Sandbox(profile=narrow, clock=VirtualClock.frozen()) as sandbox:
        yield Watched(sandbox, connect)


def requested(world: Watched) -> list[tuple[bool, int]]:
    """For each request of the list: whether it named a size, and the answer's status."""
    return [("per_page" in each.path, each.status) for each in world.sandbox.requests if each.method == "GET"]


async def test_a_find_walks_in_the_services_own_pages(world: Watched) -> None:
    client = world.client()
    made = [await client.payouts.create(**FIELDS, reference=f"r-{number}") for number in range(7)]
    assert (await client.payouts.find("r-0")).id == made[0].id
    assert requested(world) == [(True, 422), (False, 200), (False, 200)]


async def test_a_wait_asks_for_a_size_once_only(world: Watched) -> None:
    client = world.client()
    made = await client.payouts.create(
        **FIELDS, reference="r-0", metadata={"sandbox_scenario": "complete after=60s"}
    )
    assert (await client.payouts.wait(made.id, deadline=3600.0)).is_successful
    assert requested(world)[0] == (True, 422)
    assert set(requested(world)[1:]) == {(False, 200)}


async def test_a_size_that_the_caller_names_is_sent_as_it_is(world: Watched) -> None:
    with pytest.raises(UnprocessableError, match="per_page"):
        await world.client().payouts.list(page_size=100)
    assert requested(world) == [(True, 422)]


async def test_any_other_refusal_is_raised(world: Watched) -> None:
    client = world.client()
    made = await client.payouts.create(**FIELDS, reference="r-0")
    world.sandbox.on("payouts.list").respond("http:422", times=None)
    for reading in (client.payouts.find("r-0"), client.payouts.wait(made.id, deadline=60.0)):
        with pytest.raises(UnprocessableError):
            await reading
    assert requested(world) == [(True, 422)] * 2


@BULK
async def test_readings_at_the_same_time_all_take_the_services_own_pages(world: Watched) -> None:
    service = Service(world.client())
    world.sandbox.on("payouts.list").respond("slow:60", times=2)  # both are asked before one is answered
    readings = asyncio.gather(service.page(None, {}), service.page(None, {}))
    await until(lambda: len(world.sandbox.requests) == 2)
    world.sandbox.advance(60.0)
    await readings
    assert requested(world) == [(True, 422)] * 2 + [(False, 200)] * 2
