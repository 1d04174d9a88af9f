"""Idempotency keys: on every write, on no read, the caller's as it is, one for one body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from payments_async._assumptions import KEY_LIFETIME
from payments_async.errors import InvalidRequest
from payments_async.sandbox import Sandbox
from tests.support.creations import PAYOUT, SMALLEST, create
from tests.support.jumping import JumpingRuntime
from tests.support.scripted import ScriptedTransport, answer
from tests.support.watched import WatchedSandbox

HEADER = "X-Idempotency-Key"
CREATED = answer(201, {"data": {"id": "po_1"}})


@pytest.mark.fact("idempotency.writes-only", "endpoint.creations-accept-idempotency-key")
@pytest.mark.parametrize("resource", SMALLEST)
async def test_a_creation_without_a_key_gets_one_of_its_own(
    connect: Callable[..., Any], watched: WatchedSandbox, resource: str
) -> None:
    client = connect(watched)
    records = [await create(client, resource) for _ in range(3)]
    keys = [request.headers[HEADER.lower()] for request in watched.arrived]
    assert len(set(keys)) == 3
    assert all(8 <= len(key) <= 128 for key in keys)
    assert [record.response.idempotency_key for record in records] == keys
    assert not any(record.response.replayed for record in records)


@pytest.mark.fact("idempotency.writes-only")
async def test_every_write_is_keyed_and_no_read_is(
    connect: Callable[..., Any], watched: WatchedSandbox
) -> None:
    client = connect(watched)
    attempt = {"method_code": "mtn_bj", "country": "BJ"}
    intent = await create(client, "payment_intents", attempt=attempt)
    payout = await create(client, "payouts")
    checkout = await create(client, "checkouts")
    ids = (intent.id, intent.active_attempt.id)
    await client.payment_intents.requery(intent.id)
    await client.checkouts.retrieve(checkout.checkout.id)
    await client.payment_intents.retrieve_attempt(*ids)
    await client.payment_intents.inspect_attempt(*ids)
    await client.payment_intents.refund_availability(intent.id)
    await client.payment_intents.list()
    await client.payouts.list()
    await client.payouts.sync(payout.id)
    await client.payouts.inspect(payout.id)
    await client.methods.status("mtn_bj", "BJ")
    keyed = [request.method for request in watched.arrived if HEADER.lower() in request.headers]
    assert keyed == ["POST"] * 4
    assert len(watched.arrived) == 13


@pytest.mark.fact("idempotency.replayed-header")
async def test_the_same_key_with_the_same_body_is_one_payout(
    connect: Callable[..., Any], sandbox: Sandbox
) -> None:
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
async def test_the_same_key_with_another_body_stays_here(
    connect: Callable[..., Any], changed: dict[str, Any], told: str
) -> None:
    transport = ScriptedTransport(CREATED)
    client = connect(transport=transport)
    await create(client, "payouts", idempotency_key="caller-key-1")
    with pytest.raises(InvalidRequest) as caught:
        await create(client, "payouts", idempotency_key="caller-key-1", **changed)
    assert list(caught.value.errors) == ["idempotency_key"]
    assert f"another body within 24 hours: {told}" in caught.value.errors["idempotency_key"][0]
    assert "caller-key-1" not in str(caught.value)
    assert len(transport.requests) == 1


async def test_a_day_later_a_key_is_free_again(connect: Callable[..., Any]) -> None:
    transport, runtime = ScriptedTransport(CREATED), JumpingRuntime()
    client = connect(transport=transport, runtime=runtime)
    await create(client, "payouts", idempotency_key="caller-key-1")
    runtime.advance(KEY_LIFETIME)
    await create(client, "payouts", idempotency_key="caller-key-1", amount=51)
    assert len(transport.requests) == 2


async def test_preparing_uses_a_key_as_sending_does(connect: Callable[..., Any]) -> None:
    client = connect(transport=ScriptedTransport(CREATED))
    client.payouts.prepare(**PAYOUT, idempotency_key="caller-key-1")
    with pytest.raises(InvalidRequest, match="another body"):
        client.payouts.prepare(**{**PAYOUT, "amount": 51}, idempotency_key="caller-key-1")
