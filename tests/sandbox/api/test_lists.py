"""Lists (docs/interface.md, Endpoints; gaps A to D)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from tests.sandbox.raw_requests import INTENT, Api

Create = Callable[..., Any]
ADA = {"email": "ada@example.com"}


def ids(records: list[dict[str, Any]]) -> list[str]:
    return [record["id"] for record in records]


def walk(api: Api, path: str, **filters: object) -> list[str]:
    """Every id of a list, by its cursors."""
    found: list[str] = []
    cursor = None
    while True:
        query = {**filters, **({"cursor": cursor} if cursor else {})}
        page = api.get(f"{path}?{urlencode(query)}")
        found += ids(page.data)
        cursor = page.json["pagination"]["next_cursor"]
        assert page.json["pagination"]["has_more_pages"] == (cursor is not None)
        if cursor is None:
            return found


def fill(api: Api, path: str, count: int) -> list[str]:
    """Create records and give their ids, newest first."""
    made = []
    for _ in range(count):
        made.append((api.payout() if path == "/payouts" else api.intent()).data["id"])
        api.sandbox.advance(1)
    return made[::-1]


LISTS = [
    pytest.param("/payouts", marks=pytest.mark.fact("list.payouts.newest-first", "endpoint.payouts.list")),
    pytest.param(
        "/payment/intents", marks=pytest.mark.fact("list.intents.newest-first", "endpoint.intents.list")
    ),
]


@pytest.mark.fact("response.payouts.list", "service.lists-cursor-paginated", "form.pagination")
@pytest.mark.fact("filter.payouts.cursor", "filter.intents.cursor")
@pytest.mark.fact("filter.payouts.page-size", "filter.intents.page-size")
@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("per_page", [1, 3, 7, 100])
def test_pages_give_every_record_once_newest_first(api: Api, path: str, per_page: int) -> None:
    made = fill(api, path, 7)
    assert walk(api, path, per_page=per_page) == made


@pytest.mark.fact("form.pagination")
def test_the_pagination_object_describes_its_page(api: Api) -> None:
    made = fill(api, "/payouts", 5)
    first = api.get("/payouts?per_page=2&currency=XOF")
    path = "http://sandbox.test/v1/payouts"
    pagination = first.json["pagination"]
    assert (pagination["count"], pagination["per_page"], pagination["path"]) == (2, 2, path)
    assert (pagination["prev_cursor"], pagination["prev_page_url"]) == (None, None)
    assert (pagination["has_more_pages"], pagination["has_pages"]) == (True, True)
    following = urlsplit(pagination["next_page_url"])
    second = api.get(f"/payouts?{following.query}")
    assert ids(second.data) == made[2:4]
    assert second.json["pagination"]["per_page"] == 2
    back = api.get(f"/payouts?{urlsplit(second.json['pagination']['prev_page_url']).query}")
    assert ids(back.data) == made[:2]
    assert back.json["pagination"]["prev_cursor"] is None
    assert back.json["pagination"]["next_cursor"] == pagination["next_cursor"]


def test_reading_back_from_the_end_gives_the_same_records(api: Api) -> None:
    made = fill(api, "/payouts", 5)
    third = api.get("/payouts?per_page=2&cursor=" + _cursor_after(api, 4))
    assert ids(third.data) == made[4:]
    assert (third.json["pagination"]["has_more_pages"], third.json["pagination"]["has_pages"]) == (
        False,
        True,
    )
    second = api.get(f"/payouts?per_page=2&cursor={third.json['pagination']['prev_cursor']}")
    assert ids(second.data) == made[2:4]
    assert second.json["pagination"]["prev_cursor"] is not None


def _cursor_after(api: Api, count: int) -> str:
    cursor: str = api.get(f"/payouts?per_page={count}").json["pagination"]["next_cursor"]
    return cursor


def test_an_empty_list_is_one_empty_page(api: Api) -> None:
    got = api.get("/payouts")
    assert got.data == []
    pagination = got.json["pagination"]
    assert (pagination["count"], pagination["has_more_pages"], pagination["has_pages"]) == (0, False, False)
    fill(api, "/payouts", 2)
    cursor = _cursor_after(api, 1)
    beyond = api.get(f"/payouts?cursor={cursor}&status=failed").json["pagination"]
    assert (beyond["count"], beyond["prev_cursor"], beyond["next_cursor"]) == (0, None, None)
    newest = api.get(f"/payouts?cursor={cursor}").json["pagination"]["prev_cursor"]
    assert api.get(f"/payouts?cursor={newest}&status=failed").data == []


@pytest.mark.parametrize("path", LISTS)
def test_a_page_holds_ten_records_by_default(api: Api, path: str) -> None:
    fill(api, path, 11)
    got = api.get(path)
    assert (len(got.data), got.json["pagination"]["per_page"]) == (10, 10)


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("per_page", ["0", "101", "-1", "ten", "1.5", "٣"])
def test_a_page_size_outside_1_to_100_gets_422(api: Api, path: str, per_page: str) -> None:
    got = api.get(f"{path}?{urlencode({'per_page': per_page})}")
    assert (got.status, list(got.json["errors"])) == (422, ["per_page"])


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("cursor=nonsense", "cursor"),
        ("cursor=%25", "cursor"),
        ("cursor=b2xkZXI", "cursor"),
        ("cursor=%D9%A3", "cursor"),
        ("created_at[gte]=soon", "created_at[gte]"),
        ("created_at[gte]=", "created_at[gte]"),
        ("created_at[lte]=2026-13-01", "created_at[lte]"),
        ("created_at[lte]=", "created_at[lte]"),
        ("per_page=", "per_page"),
    ],
)
def test_a_bad_value_gets_422_at_its_name(api: Api, path: str, query: str, name: str) -> None:
    got = api.get(f"{path}?{query}")
    assert (got.status, list(got.json["errors"])) == (422, [name])


def test_every_bad_value_is_named_in_one_answer(api: Api) -> None:
    got = api.get("/payouts?per_page=0&created_at[gte]=x&created_at[lte]=y&cursor=z&status=pending")
    wanted = ["per_page", "created_at[gte]", "created_at[lte]", "cursor"]
    assert (got.status, list(got.json["errors"])) == (422, wanted)


def test_empty_and_unknown_parameters_are_ignored(api: Api) -> None:
    fill(api, "/payouts", 1)
    assert len(api.get("/payouts?status=&shoe_size=44&cursor=").data) == 1


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        pytest.param("status=failed", [0], marks=pytest.mark.fact("filter.payouts.status")),
        pytest.param("status=unheard_of", [], marks=pytest.mark.fact("filter.payouts.status")),
        pytest.param("method=moov_bj", [1], marks=pytest.mark.fact("filter.payouts.method")),
        pytest.param("currency=USD", [2], marks=pytest.mark.fact("filter.payouts.currency")),
        pytest.param("customer_id={ada}", [3], marks=pytest.mark.fact("filter.payouts.customer")),
        ("currency=XOF&method=mtn_bj&status=pending", [3]),
    ],
)
def test_payouts_can_be_narrowed(api: Api, query: str, kept: list[int]) -> None:
    made = [
        api.payout(metadata={"sandbox_scenario": "fail:X immediate"}).data,
        api.payout(method="moov_bj").data,
        api.payout(currency="USD").data,
        api.payout(customer=ADA).data,
    ]
    found = api.get("/payouts?" + query.format(ada=made[3]["customer"]["id"])).data
    assert ids(found) == [made[number]["id"] for number in kept]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        pytest.param("status=completed", [0], marks=pytest.mark.fact("filter.intents.status")),
        pytest.param("channel=checkout", [1], marks=pytest.mark.fact("filter.intents.channel")),
        pytest.param("channel=api", [2, 0], marks=pytest.mark.fact("filter.intents.channel")),
        pytest.param("customer_id={ada}", [2], marks=pytest.mark.fact("filter.intents.customer")),
    ],
)
def test_intents_can_be_narrowed(api: Api, query: str, kept: list[int]) -> None:
    made = [
        api.intent(scenario="immediate").data,
        api.post("/payment/checkouts", INTENT).data["payment"],
        api.intent(customer=ADA).data,
    ]
    found = api.get("/payment/intents?" + query.format(ada=made[2]["customer"]["id"])).data
    assert ids(found) == [made[number]["id"] for number in kept]


DATES = [
    ("created_at[gte]=2026-01-01T00:00:02Z", [4, 3, 2]),
    ("created_at[lte]=2026-01-01T00:00:02Z", [2, 1, 0]),
    ("created_at[gte]=2026-01-01T01:00:01%2B01:00&created_at[lte]=2026-01-01T00:00:03", [3, 2, 1]),
    ("created_at[gte]=2026-01-01", [4, 3, 2, 1, 0]),
    ("created_at[lte]=2026-01-01", [4, 3, 2, 1, 0]),
    ("created_at[gte]=2026-01-02", []),
    ("created_at[lte]=2025-12-31", []),
]


@pytest.mark.fact("filter.payouts.created-on-or-after", "filter.payouts.created-on-or-before")
@pytest.mark.fact("filter.intents.created-on-or-after", "filter.intents.created-on-or-before")
@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(("query", "kept"), DATES)
def test_lists_can_be_narrowed_by_date_or_timestamp(api: Api, path: str, query: str, kept: list[int]) -> None:
    oldest_first = fill(api, path, 5)[::-1]
    assert walk(
        api, path, per_page=2, **dict(part.split("=", 1) for part in query.replace("%2B", "+").split("&"))
    ) == [oldest_first[number] for number in kept]


def test_a_record_is_found_by_the_very_timestamp_it_shows(api: Api) -> None:
    api.sandbox.advance(0.1234567)
    payout = api.payout().data
    moment = payout["created_at"]
    assert len(api.get(f"/payouts?created_at[gte]={moment}&created_at[lte]={moment}").data) == 1
