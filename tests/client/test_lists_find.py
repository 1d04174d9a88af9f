"""`payouts.find`: a payout by its reference, None only at the end of the list."""

from __future__ import annotations

import pickle
from datetime import date
from typing import Any

import pytest

from payments_async.errors import InvalidRequest, SearchIncomplete, ServerError
from tests.support.creations import create
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect
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


async def test_none_means_that_the_whole_list_was_read(connect: Connect) -> None:
    transport = ScriptedTransport(page("a", cursor="c1"), page("b", cursor="c2"), page("c"))
    assert await connect(transport=transport).payouts.find("inv-7") is None
    assert [request.url.rpartition("=")[2] for request in transport.requests] == ["100", "c1", "c2"]


async def test_a_find_stops_reading_when_it_has_found(connect: Connect) -> None:
    transport = ScriptedTransport(page("a", cursor="c1"), page("b", "inv-7", cursor="c2"))
    found = await connect(transport=transport).payouts.find("inv-7", max_pages=2)
    assert found.id == "po_inv-7"
    assert len(transport.requests) == 2


async def test_a_find_that_ran_out_of_pages_says_where_to_go_on(connect: Connect) -> None:
    transport = ScriptedTransport(page("a", cursor="c1"), page("b", cursor="c2"))
    with pytest.raises(SearchIncomplete) as caught:
        await connect(transport=transport).payouts.find("inv-7", max_pages=2)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert (error.pages, error.cursor) == (2, "c2")
        assert error.operation == "payouts.find"
        assert error.effect == "none"
        assert "go on with cursor=error.cursor" in str(error)
    assert len(transport.requests) == 2


async def test_a_find_goes_on_where_an_incomplete_one_ended(connect: Connect) -> None:
    transport = ScriptedTransport(page("a", cursor="c1"), page("inv-7"))
    client = connect(transport=transport)
    with pytest.raises(SearchIncomplete) as caught:
        await client.payouts.find("inv-7", max_pages=1)
    assert (await client.payouts.find("inv-7", cursor=caught.value.cursor)).id == "po_inv-7"
    assert ["cursor=c1" in request.url for request in transport.requests] == [False, True]


async def test_the_last_page_allowed_may_be_the_lists_last(connect: Connect) -> None:
    transport = ScriptedTransport(page("a", cursor="c1"), page("b"))
    assert await connect(transport=transport).payouts.find("inv-7", max_pages=2) is None


async def test_an_error_of_a_page_is_the_finds_error(connect: Connect) -> None:
    transport = ScriptedTransport(page("a", cursor="c1"), answer(501, {"message": "no"}))
    with pytest.raises(ServerError):
        await connect(transport=transport).payouts.find("inv-7")


@pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror checks nothing itself
@pytest.mark.parametrize(
    ("reference", "search", "fields"),
    [
        ("", {}, {"reference"}),
        (7, {}, {"reference"}),
        (None, {"max_pages": 0}, {"reference", "max_pages"}),
        ("inv-7", {"max_pages": 0}, {"max_pages"}),
        ("inv-7", {"max_pages": -1}, {"max_pages"}),
        ("inv-7", {"max_pages": 1.0}, {"max_pages"}),
        ("inv-7", {"max_pages": True}, {"max_pages"}),
        ("inv-7", {"created_on_or_after": 7}, {"created_on_or_after"}),
        ("inv-7", {"timeout": 0}, {"timeout"}),
    ],
)
async def test_senseless_arguments_are_refused(
    connect: Connect, reference: Any, search: dict[str, Any], fields: set[str]
) -> None:
    transport = ScriptedTransport(page("inv-7"))
    with pytest.raises(InvalidRequest) as caught:
        await connect(transport=transport).payouts.find(reference, **search)
    assert caught.value.errors.keys() == fields
    assert transport.requests == []


async def test_a_record_that_cannot_be_read_may_be_the_one_wanted(connect: Connect) -> None:
    page: dict[str, Any] = {"data": [{"id": "po_1", "reference": 7}, {"id": "po_2", "reference": "r-2"}]}
    page["pagination"] = {"has_more_pages": False}
    client = connect(transport=ScriptedTransport(answer(200, page)))
    assert (await client.payouts.find("r-2")).id == "po_2"
    with pytest.raises(SearchIncomplete, match="could not be read"):
        await client.payouts.find("r-1")
