"""The endpoint table: which request each method sends, as it arrives at the service."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.creations import SMALLEST, create, row
from tests.support.forms import at
from tests.support.motion import jumping
from tests.support.surfaces import Connect
from tests.support.watched import WatchedSandbox

ATTEMPT = {"method_code": "mtn_bj", "country": "BJ"}


ANY_TEXT = object()
INTENT, ATTEMPT_OF = "/v1/payment/intents/{intent}", "/v1/payment/intents/{intent}/attempts/{attempt}"
READS: list[Any] = [
    ("checkouts.retrieve", "GET /v1/payment/checkouts/{checkout}", "checkout.id", "checkout"),
    ("attempts.retrieve", f"GET {ATTEMPT_OF}", "id", "attempt"),
    ("refunds.availability", f"GET {INTENT}/refunds/availability", "is_refundable", False),
    ("intents.requery", f"POST {INTENT}/requery", "payment_intent_id", "intent"),
    ("attempts.inspect", f"GET {ATTEMPT_OF}/inspect", "gateway", ANY_TEXT),
    ("payouts.sync", "GET /v1/payouts/{payout}/sync", "id", "payout"),
    ("payouts.inspect", "GET /v1/payouts/{payout}/inspect", "gateway", ANY_TEXT),
    ("methods.status", "GET /v1/utils/status/payment/method/mtn_bj/BJ", "country", "BJ"),
]
"""What the facts call an operation, the request that it sends, and a field of its record."""
METHODS = {
    "attempts.retrieve": "payment_intents.retrieve_attempt",
    "refunds.availability": "payment_intents.refund_availability",
    "intents.requery": "payment_intents.requery",
    "attempts.inspect": "payment_intents.inspect_attempt",
}
"""Where the client's method has another name."""


@pytest.mark.fact(
    *("conventions.base-url-v1", "conventions.content-type", "conventions.data-envelope"),
    "endpoint.bearer-required",
)
@pytest.mark.fact("service.codes-are-configuration")
@pytest.mark.parametrize(
    ("name", "line", "shown", "expected"), [row(*each, facts=f"endpoint.{each[0]}") for each in READS]
)
async def test_an_operation_about_a_record_goes_to_its_path(
    connect: Connect, watched: WatchedSandbox, name: str, line: str, shown: str, expected: Any
) -> None:
    client = connect(watched)
    intent = await create(client, "payment_intents", attempt=ATTEMPT)
    ids = {name: (await create(client, f"{name}s")).id for name in ("checkout", "payout")}
    ids |= {"intent": intent.id, "attempt": intent.active_attempt.id}
    given = [ids[part] for part in re.findall(r"{(\w+)}", line)] or ["mtn_bj", "BJ"]
    resource, method = METHODS.get(name, name).split(".")
    record = await getattr(getattr(client, resource), method)(*given)

    assert watched.line == line.format(**ids)
    assert watched.headers["authorization"] == f"Bearer {watched.api_key}"
    value = at(record, shown)
    assert isinstance(value, str) if expected is ANY_TEXT else value == ids.get(expected, expected)
    if line.startswith("GET"):
        assert not watched.arrived[-1].body
        assert watched.headers.keys().isdisjoint({"content-type", "x-idempotency-key"})
    else:
        assert watched.arrived[-1].body == b"{}"
        assert watched.headers["content-type"] == "application/json"
        assert len(watched.headers["x-idempotency-key"]) >= 8


@pytest.mark.fact(
    *("conventions.base-url-v1", "conventions.content-type", "conventions.create-message"),
    *("conventions.data-envelope", "conventions.json-bodies", "endpoint.bearer-required"),
    "endpoint.creations-accept-idempotency-key",
)
@pytest.mark.parametrize(
    ("resource", "line", "message"),
    [
        row("checkouts", "POST /v1/payment/checkouts", "Checkout", facts="endpoint.checkouts.create"),
        row("payment_intents", "POST /v1/payment/intents", "Payment", facts="endpoint.intents.create"),
        row("payouts", "POST /v1/payouts", "Payout", facts="endpoint.payouts.create"),
    ],
)
@pytest.mark.observed("answers 201")
async def test_a_creation_goes_to_its_path_with_a_key_and_a_json_body(
    connect: Connect, watched: WatchedSandbox, resource: str, line: str, message: str
) -> None:
    key = f"order-7:{resource}"
    record = await create(connect(watched), resource, idempotency_key=key)

    assert watched.line == line
    assert watched.body["amount"] == 50
    assert watched.headers["authorization"] == f"Bearer {watched.api_key}"
    assert watched.headers["content-type"] == "application/json"
    assert watched.headers["x-idempotency-key"] == key
    assert record.response.status == 201
    assert record.response.message.startswith(message)


@pytest.mark.fact("endpoint.live-operations-not-for-reading")
async def test_waiting_uses_no_live_operation(connect: Connect, watched: WatchedSandbox) -> None:
    client = jumping(connect, watched)
    intent = await create(client, "payment_intents", attempt=ATTEMPT)
    payout = await create(client, "payouts", reference="r-1")

    assert (await client.payouts.wait(payout)).is_final
    assert (await client.payment_intents.wait_attempt(intent.id, intent.active_attempt.id)).is_final
    assert (await client.payouts.find("r-1")).id == payout.id
    assert [item.id async for item in client.payment_intents.iterate()] == [intent.id]
    words = {request.path.rsplit("/", 1)[-1] for request in watched.arrived}
    assert words.isdisjoint({"requery", "inspect", "sync"})


@pytest.mark.fact("versioning.in-address")
async def test_nothing_but_the_address_names_a_version(connect: Connect, watched: WatchedSandbox) -> None:
    client = connect(watched)
    for resource in SMALLEST:
        await create(client, resource)
    await client.payouts.list()

    for request in watched.arrived:
        assert request.path.startswith("/v1/")
        named = {name for name in request.headers if "version" in name}
        assert not named
        assert "version" not in request.query
        assert request.headers["accept"] == "application/json"
