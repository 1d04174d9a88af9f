"""Lists: pages, filters, walks that read a page when it is needed; `payouts.find`, and where a list ends."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from typing import Any

import attrs
import pytest

from payments_async import UnprocessableError
from payments_async.bulk._run.service import Service
from payments_async.errors import InvalidRequest, PaymentsError, SearchIncomplete, WaitTimeout
from payments_async.sandbox import STRICT, Sandbox, VirtualClock
from tests.support.creations import PAYOUT, create, row
from tests.support.motion import play
from tests.support.patience import until
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect, error_of
from tests.support.waits import Watched
from tests.support.watched import WatchedSandbox

LISTS = ["payment_intents", "payouts"]
FACTS = "endpoint.{0}.list list.{0}.newest-first filter.{0}.page-size filter.{0}.cursor"
NEWEST_FIRST = [
    row("payment_intents", "GET /v1/payment/intents", facts=FACTS.format("intents")),
    row("payouts", "GET /v1/payouts", facts=FACTS.format("payouts")),
]


async def seven(client: Any, resource: str) -> list[str]:
    return [(await create(client, resource)).id for _ in range(7)][::-1]


def page(*ids: str, cursor: str | None = None, **says: bool | None) -> Any:
    """An answer with one page of records, whose references are their ids."""
    pagination = {"next_cursor": cursor, "has_more_pages": bool(cursor), **says}
    return answer(200, {"data": [{"id": each, "reference": each} for each in ids], "pagination": pagination})


@pytest.mark.fact("service.lists-cursor-paginated")
@pytest.mark.parametrize(("resource", "line"), NEWEST_FIRST)
async def test_pages_are_walked_by_cursor(
    connect: Connect, watched: WatchedSandbox, resource: str, line: str
) -> None:
    client = connect(watched)
    ids = await seven(client, resource)
    listing = getattr(client, resource).list

    assert [item.id for item in await listing()] == ids
    assert (watched.line, watched.query, watched.arrived[-1].body) == (line, {}, b"")
    first = await listing(page_size=3)
    assert watched.query == {"per_page": "3"}
    second = await listing(page_size=3, cursor=first.next_cursor)
    assert watched.query == {"per_page": "3", "cursor": first.pagination.next_cursor}
    third = await listing(page_size=3, cursor=second.next_cursor)

    assert [item.id for each in (first, second, third) for item in each] == ids
    assert [len(each) for each in (first, second, third)] == [3, 3, 1]
    assert third.next_cursor is None
    assert first.items[0].id == ids[0]
    assert first.response.status == 200


DAY = date(2026, 1, 2)
NOON = datetime(2026, 1, 2, 12, tzinfo=timezone(timedelta(hours=3)))
SENT_NOON = "2026-01-02T09%3A00%3A00%2B00%3A00"
SHARED_FILTERS = [
    ("status", "pending", "status=pending", "status"),
    ("customer_id", "cus_1", "customer_id=cus_1", "customer"),
    ("created_on_or_after", DAY, "created_at%5Bgte%5D=2026-01-02", "created-on-or-after"),
    ("created_on_or_after", "2026-01-02", "created_at%5Bgte%5D=2026-01-02", "created-on-or-after"),
    ("created_on_or_after", NOON, f"created_at%5Bgte%5D={SENT_NOON}", "created-on-or-after"),
    ("created_on_or_before", DAY, "created_at%5Blte%5D=2026-01-02", "created-on-or-before"),
    ("created_on_or_before", NOON, f"created_at%5Blte%5D={SENT_NOON}", "created-on-or-before"),
    ("page_size", 100, "per_page=100", "page-size"),
    ("page_size", 1, "per_page=1", "page-size"),
]
FILTERS = [
    row(resource, name, value, query, facts=f"filter.{short}.{fact}")
    for resource, short in (("payment_intents", "intents"), ("payouts", "payouts"))
    for name, value, query, fact in SHARED_FILTERS
] + [
    row("payment_intents", "channel", "checkout", "channel=checkout", facts="filter.intents.channel"),
    row("payouts", "method", "mtn_bj", "method=mtn_bj", facts="filter.payouts.method"),
    row("payouts", "currency", "XOF", "currency=XOF", facts="filter.payouts.currency"),
]


@pytest.mark.parametrize(("resource", "name", "value", "query"), FILTERS)
async def test_a_filter_is_sent_under_its_name(
    connect: Connect, watched: WatchedSandbox, resource: str, name: str, value: Any, query: str
) -> None:
    await getattr(connect(watched), resource).list(**{name: value})
    assert watched.arrived[-1].query == query


@pytest.mark.parametrize("resource", LISTS)
async def test_a_walk_reads_pages_as_needed(connect: Connect, watched: WatchedSandbox, resource: str) -> None:
    client = connect(watched)
    ids = await seven(client, resource)
    watched.arrived.clear()
    walk = getattr(client, resource).iterate(page_size=3, status="pending")
    assert watched.arrived == []

    met = []
    reads = []
    async for item in walk:
        met.append(item.id)
        reads.append(len(watched.arrived))
    assert met == ids
    assert reads == [1, 1, 1, 2, 2, 2, 3]
    assert len(watched.arrived) == 3
    assert all("status=pending" in request.query for request in watched.arrived)


@pytest.mark.parametrize(
    ("most", "items", "reads"), [(0, 0, 0), (1, 1, 1), (3, 3, 1), (4, 4, 2), (None, 7, 3)]
)
async def test_max_items_ends_a_walk_and_its_reading(
    connect: Connect, watched: WatchedSandbox, most: int | None, items: int, reads: int
) -> None:
    client = connect(watched)
    await seven(client, "payouts")
    watched.arrived.clear()
    assert len([item async for item in client.payouts.iterate(page_size=3, max_items=most)]) == items
    assert len(watched.arrived) == reads


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (page("c", cursor=None, has_more_pages=True), "no cursor"),
        (page("c", cursor="", has_more_pages=True), "an empty cursor"),
        (page("c", cursor="c3", has_more_pages=False), "no more pages"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_walk_ends_where_the_service_says_so(connect: Connect, last: Any, why: str) -> None:
    transport = ScriptedTransport(page("a", "b", cursor="c2", has_more_pages=None), last)
    client = connect(transport=transport)
    assert [item.id async for item in client.payouts.iterate()] == ["a", "b", "c"]
    assert len(transport.requests) == 2


@pytest.mark.parametrize("repeat", ["c1", "c2"])
async def test_a_repeated_cursor_is_an_error_and_not_a_loop(connect: Connect, repeat: str) -> None:
    transport = ScriptedTransport(page("a", cursor="c1"), page("b", cursor="c2"), page("c", cursor=repeat))
    walk = connect(transport=transport).payment_intents.iterate()
    met = []
    with pytest.raises(PaymentsError, match="same cursor twice") as caught:
        async for item in walk:
            met.append(item.id)
    assert met == ["a", "b", "c"]
    assert len(transport.requests) == 3
    assert caught.value.operation == "payment_intents.iterate"


@pytest.mark.parametrize("word", ["complete", "COMPLETED", "+233200000001"])
@pytest.mark.parametrize("resource", LISTS)
async def test_a_status_nobody_named_is_warned_of(connect: Connect, resource: str, word: str) -> None:
    transport = ScriptedTransport(page())
    with pytest.warns(RuntimeWarning, match="is none of the known ones .*completed") as caught:
        assert len(await getattr(connect(transport=transport), resource).list(status=word)) == 0
    assert ("+233200000001" in str(caught[0].message)) is False
    assert "status=" in transport.requests[0].url


@pytest.mark.parametrize("surface", ["async"], indirect=True)
@pytest.mark.parametrize("resource", LISTS)
async def test_async_for_over_a_page_names_iterate(connect: Connect, resource: str) -> None:
    client = connect(transport=ScriptedTransport(page("x_1")))
    with pytest.raises(TypeError, match=r"for record in page; for all pages: async for record in iterate\("):
        async for _ in await getattr(client, resource).list():
            raise AssertionError("a page is no asynchronous iterable")


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
        (
            [page("a", cursor="c1"), page("b", cursor="c2"), page("c")],
            None,
            None,
            ["100", "c1", "c2"],
        ),
        ([page("a", cursor="c1"), page("b", "inv-7", cursor="c2")], 2, "inv-7", ["100", "c1"]),
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
    assert (await client.payouts.find("inv-7", cursor=error.cursor)).id == "inv-7"
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


@pytest.mark.parametrize(
    ("says", "size", "is_last"),
    [
        *((says, size, False) for says, size in zip(UNPROVEN, [1, 15, 100] * 3, strict=False)),
        *((says, 2, True) for says in PROVEN),
        *((says, 0, True) for says in ({}, {"pagination": {}}, {"pagination": {"per_page": 100}})),
    ],
)
async def test_a_search_ends_where_the_list_is_said_to_end_or_is_empty(
    connect: Connect, says: dict[str, Any], size: int, is_last: bool
) -> None:
    client = connect(transport=ScriptedTransport(body(size, says)))
    if is_last:
        assert await client.payouts.find("wanted") is None
    else:
        caught = await error_of(SearchIncomplete, client.payouts.find("wanted"), match="gave no cursor")
        assert (caught.pages, caught.cursor, caught.effect) == (1, None, "none")
        assert (await client.payouts.find("r-0")).id == "po_0"
    page = await client.payouts.list()
    assert (page.next_cursor, page.is_last) == (None, is_last)


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
