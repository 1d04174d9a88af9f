"""The endpoint table against the interface's, and the paths of `client.request`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from payments_async._request.prepare import unlisted
from payments_async.errors import InvalidRequest
from payments_async.models import Payout
from payments_async.params.operations import (
    OPERATIONS,
    by_name,
    custom,
    default_limit,
    id_problems,
    path_with,
)

INTERFACE = (Path(__file__).parents[2] / "docs" / "interface.md").read_text(encoding="utf-8")


def written(path: str) -> str:
    """A path with its placeholders as the interface writes them."""
    return re.sub(
        r"{(\w+)}", lambda found: "{" + re.sub(r"_(\w)", lambda m: m[1].upper(), found[1]) + "}", path
    )


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda each: each.name)
def test_the_interface_shows_every_operation(operation: Any) -> None:
    line = rf"{operation.method}[ `|]+{re.escape(written(operation.path))}(?![\w/{{])"
    assert re.search(line, INTERFACE)


def test_the_table_holds_the_nine_endpoints_and_the_four_live_operations() -> None:
    limits = [operation.limit for operation in OPERATIONS.values()]
    assert {limit: limits.count(limit) for limit in set(limits)} == {
        "write": 3,
        "read": 5,
        "refund_availability": 1,
        "diagnostic": 4,
    }
    assert {name for name, each in OPERATIONS.items() if each.creates} == {
        "checkouts.create",
        "payment_intents.create",
        "payouts.create",
    }
    for operation in OPERATIONS.values():
        assert operation.record is not None or operation.limit != "diagnostic"
        assert operation.echo is None or operation.record is not None
        assert operation.writes == (operation.method == "POST")


@pytest.mark.parametrize("good", ["a", "po_1-B", "x" * 300, "9", "a.b", "a/b", "é", "...", " ", "\u2028"])
def test_an_opaque_id_can_be_part_of_a_path(good: str) -> None:
    assert id_problems({"payout_id": good, "country_code": "bj"}) == {}
    path = OPERATIONS["payouts.sync"].path_for({"payout_id": good})
    assert unquote(path) == f"/payouts/{good}/sync"
    assert path.count("/") == 3
    assert path.isascii()


@pytest.mark.parametrize("bad", ["", ".", "..", "a\n", "\x7f", "\x85", "\udcff", None, 7])
def test_nothing_else_can(bad: object) -> None:
    assert id_problems({"payout_id": bad}).keys() == {"payout_id"}


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({}, "/a"),
        ({"b": None}, "/a"),
        ({"b": "c d&e", "f": [1, 2]}, "/a?b=c+d%26e&f=1&f=2"),
        ({"b": True, "c": False}, "/a?b=true&c=false"),
        ({"created_at[gte]": "2026-01-01"}, "/a?created_at%5Bgte%5D=2026-01-01"),
        ({"b": "é"}, "/a?b=%C3%A9"),
    ],
)
def test_a_query_is_percent_encoded(query: dict[str, object], path: str) -> None:
    assert path_with("/a", query) == path


@pytest.mark.parametrize(
    ("method", "path", "limit"),
    [
        ("GET", "/refunds/re_1", "read"),
        ("POST", "/refunds", "write"),
        ("DELETE", "/refunds/re_1", "write"),
        ("POST", "/refunds/re_1/requery", "diagnostic"),
        ("GET", "/refunds/sync/", "diagnostic"),
        ("GET", "/refunds/resync", "read"),
    ],
)
def test_a_paths_limit_follows_from_its_method_and_last_word(method: str, path: str, limit: str) -> None:
    assert default_limit(method, path) == limit
    operation = custom(method, path)
    assert operation.limit == limit
    assert operation.creates == (method != "GET")


def test_only_a_listed_write_that_makes_nothing_is_known_to_make_nothing() -> None:
    path = "/payment/intents/pi_1/requery"
    made = {method: custom(method, path).creates for method in ("GET", "POST", "PUT", "PATCH", "DELETE")}
    assert made == {"GET": False, "POST": False, "PUT": True, "PATCH": True, "DELETE": True}
    assert unlisted("POST", path, None, "write")[0].creates is False
    assert custom("POST", f"{path}/again").creates


def test_a_listed_path_has_its_listed_limit_and_record() -> None:
    operation, record = unlisted("GET", "/payouts/po_1/sync", Payout, None)
    assert (operation.limit, record, operation.result) == ("diagnostic", "po_1", Payout)
    operation, record = unlisted("GET", "/payment/intents/pi_1/attempts/pa_1/inspect", None, None)
    assert (operation.limit, record) == ("diagnostic", "pa_1")
    operation, record = unlisted("GET", "/payment/intents/pi_1/refunds/availability", None, None)
    assert (operation.limit, record) == ("refund_availability", None)
    operation, record = unlisted("GET", "/payouts/po_1%3A2/sync", None, None)
    assert record == "po_1:2"  # the id that `payouts.sync` is given: both pass one gate
    operation, record = unlisted("POST", "/payouts/po_1/sync", None, "read")
    assert (operation.limit, record) == ("read", None)


def test_all_faults_of_a_free_request_are_reported_together() -> None:
    wrong: Any = "fast"
    with pytest.raises(InvalidRequest) as caught:
        unlisted("HEAD", "no slash", dict, wrong)
    assert caught.value.errors.keys() == {"method", "path", "limit", "result"}


def test_a_name_leads_back_to_its_operation() -> None:
    for name, operation in OPERATIONS.items():
        assert by_name(name) is operation
    found = by_name("POST /refunds")
    assert (found.name, found.path, found.writes, found.creates) == ("POST /refunds", "/refunds", True, True)
