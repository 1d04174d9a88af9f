"""A merchant's day, from the first checkout to the last payout: one text for both surfaces."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from payments_async import CustomerInput, Instrument
from payments_async.sandbox import Sandbox, VirtualClock
from tests.support.surfaces import Connect
from tests.support.waits import Watched


@pytest.fixture(params=["observed", "strict", "alternate", "hostile"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(profile=request.param, clock=VirtualClock.frozen()) as sandbox:
        yield sandbox


@pytest.fixture
def world(sandbox: Sandbox, connect: Connect) -> Watched:
    return Watched(sandbox, connect)


def payout(number: int) -> dict[str, Any]:
    return {
        "amount": Decimal("12.50") + number,
        "currency": "EUR",
        "method": "mtn_bj",
        "instrument": Instrument.phone(f"+2299000000{number}", "BJ"),
        "reference": f"salary-{number}",
        "metadata": {"month": "11"},
    }


@pytest.mark.fact("service.return-is-not-proof")
async def test_a_payment_is_collected_by_the_hosted_page(world: Watched) -> None:
    client = world.client()
    created = await client.checkouts.create(
        amount=Decimal("49.90"),
        currency="EUR",
        description="Shoes",
        customer=CustomerInput(email="ada@example.com", first_name="Ada"),
        return_url="https://shop.example/thanks",
        metadata={"order": "7"},
    )
    assert created.url.startswith("http")
    assert not created.payment.is_final

    unpaid = await client.checkouts.retrieve(created.id)
    assert not unpaid.payment.is_successful, "the payer came back without having paid"

    world.sandbox.pay(created.id)
    paid = await client.checkouts.retrieve(created.id)
    assert (paid.payment.is_final, paid.payment.is_successful) == (True, True)
    assert paid.payment.amount.value == Decimal("49.90")
    assert paid.payment.metadata == {"order": "7"}
    assert world.sandbox.books.collected("EUR") == Decimal("49.90")

    attempt = await client.payment_intents.retrieve_attempt(paid.payment.id, paid.payment.active_attempt.id)
    assert attempt.is_successful

    refundable = await client.payment_intents.refund_availability(paid.payment.id)
    assert (refundable.is_refundable, refundable.refundable_amount.value) == (True, Decimal("49.90"))
    world.sandbox.refund(paid.payment.id, Decimal("9.90"))
    refundable = await client.payment_intents.refund_availability(paid.payment.id)
    assert refundable.refundable_amount.value == Decimal(40)
    assert refundable.refunded_amount.value == Decimal("9.90")
