"""`client.request`: whatever the interface does not show, with the same care as everything else."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from payments_async import Payout, RateLimits
from payments_async.errors import APITimeoutError, InvalidRequest, LimitReached, OutcomeUnknown
from tests.support.creations import create
from tests.support.jumping import JumpingRuntime
from tests.support.scripted import ScriptedTransport, answer, lost
from tests.support.surfaces import Connect, error_of
from tests.support.watched import WatchedSandbox

WRITES = ["POST", "PUT", "PATCH", "DELETE"]


@pytest.mark.fact("open.other-endpoints", "idempotency.writes-only")
@pytest.mark.parametrize("method", WRITES)
async def test_a_write_carries_a_key_its_body_and_its_query(connect: Connect, method: str) -> None:
    transport = ScriptedTransport(answer(200, {"data": {"id": "re_1", "amount": 10.10}, "more": True}))
    client = connect(transport=transport)
    body = {"amount": Decimal("10.10"), "reason": "é"}
    whole = await client.request(method, "/refunds/re_1", json=body, params={"expand": "all", "none": None})

    (request,) = transport.requests
    assert request.method == method
    assert request.url.endswith("/v1/refunds/re_1?expand=all")
    assert request.body == '{"amount":10.1,"reason":"é"}'.encode()
    assert len(request.headers["X-Idempotency-Key"]) >= 8
    assert request.headers["Content-Type"] == "application/json"
    assert whole == {"data": {"id": "re_1", "amount": Decimal("10.10")}, "more": True}


@pytest.mark.fact("open.other-endpoints", "idempotency.writes-only", "conventions.content-type")
async def test_a_read_carries_neither_key_nor_body(connect: Connect, watched: WatchedSandbox) -> None:
    client = connect(watched)
    payout = await create(client, "payouts")
    whole = await client.request("GET", "/payouts", params={"per_page": 1}, extra_query={"status": "pending"})

    assert watched.line == "GET /v1/payouts"
    assert watched.query == {"per_page": "1", "status": "pending"}
    assert not watched.arrived[-1].body
    assert watched.headers.keys().isdisjoint({"x-idempotency-key", "content-type"})
    assert [item["id"] for item in whole["data"]] == [payout.id]
    assert whole["pagination"]["per_page"] == 1


@pytest.mark.parametrize(
    "path", ["/refunds", "/transfers/sync", "/transfers/tr_1/requery", "/batches/inspect"]
)
async def test_no_path_makes_a_lost_write_harmless(connect: Connect, path: str) -> None:
    transport = ScriptedTransport(lost("timeout"))
    client = connect(transport=transport, runtime=JumpingRuntime(), max_retries=1)
    caught = await error_of(OutcomeUnknown, client.request("POST", path, json={"amount": 5}))
    keys = [request.headers["X-Idempotency-Key"] for request in transport.requests]
    assert keys == [caught.idempotency_key] * 2
    assert caught.operation == f"POST {path}"
    assert caught.prepared.body == b'{"amount":5}'


async def test_a_lost_requery_made_nothing(connect: Connect) -> None:
    client = connect(transport=ScriptedTransport(lost("timeout")), runtime=JumpingRuntime(), max_retries=1)
    caught = await error_of(APITimeoutError, client.request("POST", "/payment/intents/pi_1/requery"))
    assert caught.effect == "none"


@pytest.mark.parametrize(
    ("method", "path", "limit", "room"),
    [
        ("GET", "/anything", None, "reads"),
        ("POST", "/anything", None, "writes"),
        ("DELETE", "/anything", None, "writes"),
        ("POST", "/refunds/re_1/requery", None, "diagnostics"),
        ("GET", "/refunds/re_1/inspect", None, "diagnostics"),
        ("GET", "/refunds/re_1/sync", None, "diagnostics"),
        ("GET", "/payment/intents/pi_1/refunds/availability", None, "refund_availability"),
        ("GET", "/anything", "write", "writes"),
        ("GET", "/anything", "diagnostic", "diagnostics"),
        ("POST", "/anything", "read", "reads"),
        ("GET", "/anything", "refund_availability", "refund_availability"),
    ],
)
async def test_a_path_has_its_limit(connect: Connect, method: str, path: str, limit: Any, room: str) -> None:
    transport = ScriptedTransport(answer(200, {}))
    limits = RateLimits(**{room: 1})
    client = connect(transport=transport, runtime=JumpingRuntime(), limits=limits, on_limit="raise")
    await client.request(method, path, limit=limit)
    with pytest.raises(LimitReached):
        await client.request(method, path, limit=limit)
    assert len(transport.requests) == 1


async def test_a_live_operation_by_its_path_has_its_records_limit(connect: Connect) -> None:
    transport = ScriptedTransport(answer(200, {}))
    client = connect(transport=transport, runtime=JumpingRuntime(), on_limit="raise")
    for _ in range(12):
        await client.request("GET", "/payouts/po_1/sync")
    with pytest.raises(LimitReached):
        await client.request("GET", "/payouts/po_1/sync")
    await client.request("GET", "/payouts/po_2/sync")


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "payouts", "//evil.test/x", "https://evil.test/", "/a/", "/a/../b", "/a/%2e%2e/b"),
        *("/a%2Fb", "/a\\b", "/a b", "/a?b=1", "/a#b", "/é", "/a\n", "/a%0d%0aX", "/%", "/{x}", 7, None),
    ],
    ids=ascii,
)
async def test_an_unsafe_path_is_refused(connect: Connect, path: Any) -> None:
    transport = ScriptedTransport(answer(200, {}))
    caught = await error_of(InvalidRequest, connect(transport=transport).request("GET", path))
    assert list(caught.errors) == ["path"]
    assert transport.requests == []


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        ({"method": "get"}, {"method"}),
        ({"method": "TRACE"}, {"method"}),
        ({"method": None, "limit": "fast", "result": dict}, {"method", "limit", "result"}),
        ({"result": Payout("po_1")}, {"result"}),
        ({"method": "GET", "json": {}}, {"json"}),
        ({"json": [1]}, {"json"}),
        ({"json": {"a": float("nan")}}, {"json"}),
        ({"json": {"a": b"x"}}, {"json"}),
        ({"params": [("a", "b")]}, {"params"}),
        ({"params": {"a": {"b": 1}}, "extra_query": "a=b"}, {"params", "extra_query"}),
        ({"extra_headers": {"Host": "x"}, "timeout": 0}, {"extra_headers", "timeout"}),
        ({"idempotency_key": "short", "extra_body": 7}, {"idempotency_key", "extra_body"}),
    ],
    ids=lambda value: str(sorted(value)) if isinstance(value, set) else str(value),
)
async def test_bad_arguments_are_told(connect: Connect, arguments: dict[str, Any], fields: set[str]) -> None:
    transport = ScriptedTransport(answer(200, {}))
    given = {"method": "POST", "path": "/refunds", **arguments}
    caught = await error_of(
        InvalidRequest, connect(transport=transport).request(given.pop("method"), given.pop("path"), **given)
    )
    assert caught.errors.keys() == fields
    assert transport.requests == []
