"""Requests: their idempotency keys, and what the interface leaves open (other fields, parameters, codes)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from payments_async.errors import InvalidRequest
from payments_async.sandbox import Sandbox
from tests.support.creations import SMALLEST, create
from tests.support.jumping import JumpingRuntime
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect, error_of
from tests.support.watched import WatchedSandbox

CREATED = answer(201, {"data": {"id": "po_1"}})


@pytest.mark.fact("idempotency.replayed-header")
async def test_the_same_key_with_the_same_body_is_one_payout(connect: Connect, sandbox: Sandbox) -> None:
    client = connect(sandbox)
    first, second = [await create(client, "payouts", idempotency_key="caller-key-1") for _ in range(2)]
    assert first.id == second.id
    assert (first.response.replayed, second.response.replayed) == (False, True)
    assert len(sandbox.books.payouts()) == 1


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"amount": 51}, "amount differs"),
        ({"description": "other"}, "description differs"),
        ({"extra_body": {"a": 1}}, "a differs"),
        ({"amount": 51, "description": "other"}, "amount and description differ"),
        ({"webhook_url": "https://shop.example/other"}, "webhook_url differs"),
    ],
    ids=str,
)
async def test_a_key_with_another_body_stays(connect: Connect, changed: dict[str, Any], told: str) -> None:
    transport = ScriptedTransport(CREATED)
    client = connect(transport=transport)
    await create(client, "payouts", idempotency_key="caller-key-1")
    caught = await error_of(
        InvalidRequest, create(client, "payouts", idempotency_key="caller-key-1", **changed)
    )
    assert list(caught.errors) == ["idempotency_key"]
    assert f"another body within 24 hours: {told}" in caught.errors["idempotency_key"][0]
    assert "caller-key-1" not in str(caught)
    assert len(transport.requests) == 1


async def test_a_day_later_a_key_is_free_again(connect: Connect) -> None:
    transport, runtime = ScriptedTransport(CREATED), JumpingRuntime()
    client = connect(transport=transport, runtime=runtime)
    await create(client, "payouts", idempotency_key="caller-key-1")
    runtime.advance(24 * 3600.0)
    await create(client, "payouts", idempotency_key="caller-key-1", amount=51)
    assert len(transport.requests) == 2


@pytest.mark.fact("open.body-fields")
@pytest.mark.parametrize("resource", SMALLEST)
async def test_extra_body_adds_and_replaces(connect: Connect, watched: WatchedSandbox, resource: str) -> None:
    extra = {"new_field": {"deep": [1, Decimal("2.50")]}, "description": "theirs"}
    await create(connect(watched), resource, description="ours", extra_body=extra)
    assert watched.body["new_field"] == {"deep": [1, Decimal("2.50")]}
    assert watched.body["description"] == "theirs"
    assert watched.body["amount"] == 50


@pytest.mark.fact("open.query-names")
@pytest.mark.parametrize("resource", ["payment_intents", "payouts"])
async def test_extra_query_is_added(connect: Connect, watched: WatchedSandbox, resource: str) -> None:
    extra = {"sort": "é & =", "many": ["a", "b"], "deep": True, "none": None, "status": "theirs"}
    await getattr(connect(watched), resource).list(status="completed", extra_query=extra)
    assert watched.arrived[-1].query == "status=theirs&sort=%C3%A9+%26+%3D&many=a&many=b&deep=true"


@pytest.mark.fact("open.query-names")
async def test_extra_query_goes_with_every_call(connect: Connect, watched: WatchedSandbox) -> None:
    client = connect(watched)
    checkout = await create(client, "checkouts", extra_query={"expand": "all"})
    assert watched.query == {"expand": "all"}
    await client.checkouts.retrieve(checkout.checkout.id, extra_query={"expand": "page"})
    assert watched.query == {"expand": "page"}
    assert watched.line.endswith(checkout.checkout.id)


@pytest.mark.parametrize("call", ["create", "list", "requery"])
async def test_extra_headers_replace_the_agent(connect: Connect, watched: WatchedSandbox, call: str) -> None:
    client = connect(watched)
    intent = await create(client, "payment_intents")
    headers = {"X-Trace": "a b\tc", "user-agent": "mine/1"}
    if call == "create":
        await create(client, "payouts", extra_headers=headers)
    elif call == "list":
        await client.payouts.list(extra_headers=headers)
    else:
        await client.payment_intents.requery(intent.id, extra_headers=headers)
    assert watched.headers["x-trace"] == "a b\tc"
    assert watched.headers["user-agent"] == "mine/1"
    assert watched.headers["authorization"].startswith("Bearer ")


@pytest.mark.fact("service.codes-are-configuration")
async def test_codes_nobody_has_heard_of_are_passed_on(connect: Connect, watched: WatchedSandbox) -> None:
    client = connect(watched)
    attempt = {"method_code": "brand_new-2031", "country": "ZZ", "currency": "ZZZ"}
    await create(client, "payment_intents", attempt=attempt)
    assert watched.body["attempt"] == attempt
    await create(client, "payouts", currency="ZZZ", method="brand_new-2031")
    assert (watched.body["currency"], watched.body["method"]) == ("ZZZ", "brand_new-2031")


@pytest.mark.fact("conventions.json-bodies")
@pytest.mark.observed("descriptions are not null")
async def test_text_of_every_script_travels_as_utf_8_json(connect: Connect, watched: WatchedSandbox) -> None:
    text = 'quote " slash \\ line\n tab\t \u2028 ẹ̀kọ́ 支付 💸'
    payout = await create(connect(watched), "payouts", description=text, metadata={text: text})
    assert watched.body["description"] == text
    assert watched.body["metadata"] == {text: text}
    assert payout.description == text
    assert payout.metadata == {text: text}
    assert watched.headers["accept"] == "application/json"
