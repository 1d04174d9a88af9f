"""Lists: pages, filters, and walks that read a page only when it is needed."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

from payments_async.errors import PaymentsError
from tests.support.creations import create, row
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect
from tests.support.watched import WatchedSandbox

LISTS = ["payment_intents", "payouts"]
NEWEST_FIRST = [
    row("payment_intents", facts="list.intents.newest-first filter.intents.page-size filter.intents.cursor"),
    row("payouts", facts="list.payouts.newest-first filter.payouts.page-size filter.payouts.cursor"),
]


async def seven(client: Any, resource: str) -> list[str]:
    """Seven records, their ids newest first."""
    return [(await create(client, resource)).id for _ in range(7)][::-1]


def page(*ids: str, cursor: str | None = None, more: bool | None = None) -> Any:
    """An answer with one page."""
    pagination = {"next_cursor": cursor, "has_more_pages": more}
    return answer(200, {"data": [{"id": each} for each in ids], "pagination": pagination})


@pytest.mark.fact("service.lists-cursor-paginated")
@pytest.mark.parametrize("resource", NEWEST_FIRST)
async def test_pages_are_walked_by_cursor(connect: Connect, watched: WatchedSandbox, resource: str) -> None:
    client = connect(watched)
    ids = await seven(client, resource)
    listing = getattr(client, resource).list

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
SHARED_FILTERS = [
    ("status", "pending", "status=pending", "status"),
    ("customer_id", "cus_1", "customer_id=cus_1", "customer"),
    ("created_on_or_after", DAY, "created_at%5Bgte%5D=2026-01-02", "created-on-or-after"),
    ("created_on_or_after", "2026-01-02", "created_at%5Bgte%5D=2026-01-02", "created-on-or-after"),
    (
        "created_on_or_after",
        NOON,
        "created_at%5Bgte%5D=2026-01-02T09%3A00%3A00%2B00%3A00",
        "created-on-or-after",
    ),
    ("created_on_or_before", DAY, "created_at%5Blte%5D=2026-01-02", "created-on-or-before"),
    (
        "created_on_or_before",
        NOON,
        "created_at%5Blte%5D=2026-01-02T09%3A00%3A00%2B00%3A00",
        "created-on-or-before",
    ),
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
        (page("c", cursor=None, more=True), "no cursor"),
        (page("c", cursor="", more=True), "an empty cursor"),
        (page("c", cursor="c3", more=False), "no more pages"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_walk_ends_where_the_service_says_so(connect: Connect, last: Any, why: str) -> None:
    transport = ScriptedTransport(page("a", "b", cursor="c2", more=None), last)
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
