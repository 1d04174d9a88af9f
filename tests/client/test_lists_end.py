"""A list ends only where the service says so: a page that is silent about what follows proves no end."""

from __future__ import annotations

from typing import Any

import pytest

from payments_async.errors import SearchIncomplete, WaitTimeout
from payments_async.models import Page, Pagination, Payout, Unread
from tests.support.motion import play
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect

UNPROVEN: list[dict[str, Any]] = [
    {},
    {"pagination": None},
    {"pagination": []},
    {"pagination": {}},
    {"pagination": {"count": 1, "per_page": 100, "next_page_url": None}},
    {"pagination": {"has_more_pages": None}},
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
async def test_a_search_does_not_take_silence_for_the_end(
    connect: Connect, says: dict[str, Any], size: int
) -> None:
    client = connect(transport=ScriptedTransport(body(size, says)))
    with pytest.raises(SearchIncomplete, match="gave no cursor") as caught:
        await client.payouts.find("wanted")
    assert (caught.value.pages, caught.value.cursor, caught.value.effect) == (1, None, "none")
    assert (await client.payouts.find("r-0")).id == "po_0"
    page = await client.payouts.list()
    assert (page.next_cursor, page.is_last) == (None, False)


@pytest.mark.parametrize("says", PROVEN)
async def test_a_search_ends_where_the_service_says_that_the_list_does(
    connect: Connect, says: dict[str, Any]
) -> None:
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


@pytest.mark.parametrize(
    ("page", "is_last"),
    [
        (Page(), True),
        (Page((Payout(id="po_1"),)), False),
        (Page(unread=(Unread(0, "odd"),)), False),
        (Page((), Pagination(next_cursor="c")), False),
        (Page((), Pagination(has_more_pages=True)), False),
        (Page((Payout(id="po_1"),), Pagination(has_more_pages=False)), True),
    ],
)
def test_a_page_that_is_made_by_hand_is_judged_alike(page: Page[Payout], is_last: bool) -> None:
    assert page.is_last is is_last


async def test_a_wait_says_that_the_list_proved_no_end(connect: Connect) -> None:
    played = play(connect, body(2, {}))
    with pytest.raises(WaitTimeout, match="gave no cursor") as caught:
        await played.client.payouts.wait("po_7", deadline=12.0)
    assert isinstance(caught.value.__cause__, SearchIncomplete)
    assert caught.value.__cause__.pages == 1


async def test_a_wait_whose_record_the_list_shows_needs_no_end(connect: Connect) -> None:
    played = play(connect, body(2, {}), body(2, {}, status="completed"))
    assert (await played.client.payouts.wait("po_1")).is_final
    played = play(connect, body(2, {}))
    with pytest.raises(WaitTimeout) as caught:
        await played.client.payouts.wait("po_1", deadline=12.0)
    assert caught.value.__cause__ is None
    assert caught.value.last.id == "po_1"
