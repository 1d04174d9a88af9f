"""A delivery is unsigned: a hint. What happened is what the record says when it is read back (Events)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from payments_async.sandbox import Sandbox

HOOK = "https://shop.test/hooks"


@pytest.fixture
def hint() -> Callable[[bytes], str]:
    """What a receiver takes from a delivery: which record to read, nothing else."""

    def read(body: bytes) -> str:
        return str(json.loads(body)["payment"]["id"])

    return read


@pytest.mark.fact("events.re-read-before-acting")
async def test_a_delivery_is_confirmed_by_reading_the_payment(
    connect: Callable[..., Any], sandbox: Sandbox, hint: Callable[[bytes], str]
) -> None:
    client = connect(sandbox)
    checkout = await client.checkouts.create(amount=50, currency="XOF", webhook_url=HOOK)
    sandbox.pay(checkout.id)
    delivery = next(each for each in sandbox.deliveries if each.event == "payment.completed")

    assert hint(delivery.body) == checkout.payment.id
    assert (await client.checkouts.retrieve(checkout.id)).payment.is_successful


@pytest.mark.fact("events.re-read-before-acting")
async def test_a_forged_delivery_is_belied_by_the_payment(
    connect: Callable[..., Any], sandbox: Sandbox, hint: Callable[[bytes], str]
) -> None:
    client = connect(sandbox)
    checkout = await client.checkouts.create(amount=50, currency="XOF", webhook_url=HOOK)
    forged = json.dumps({"event": "payment.completed", "payment": {"id": checkout.payment.id}}).encode()

    assert hint(forged) == checkout.payment.id
    assert not (await client.checkouts.retrieve(checkout.id)).payment.is_final
