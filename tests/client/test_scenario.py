"""A merchant's day, from the first checkout to the last payout: one text for both surfaces."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from payments_async import AttemptInput, CustomerInput, DuplicateReference, Instrument
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


async def test_a_payment_is_collected_through_the_api(world: Watched) -> None:
    world.sandbox.on("payment_intents.create").outcome("complete after=30s")
    client = world.client()
    intent = await client.payment_intents.create(
        amount=Decimal(5000),
        currency="XOF",
        attempt=AttemptInput(
            method_code="mtn_bj", country="BJ", phone={"number": "+22990112233", "country": "BJ"}
        ),
    )
    over = await client.payment_intents.wait_attempt(intent.id, intent.active_attempt.id)
    assert over.is_successful
    requery = await client.payment_intents.requery(intent.id)
    assert requery.payment_intent_id == intent.id
    inspection = await client.payment_intents.inspect_attempt(intent.id, over.id)
    assert inspection.gateway_transaction_id
    (listed,) = [item async for item in client.payment_intents.iterate()]
    assert (listed.id, listed.is_successful) == (intent.id, True)


async def test_payouts_are_made_found_listed_and_followed(world: Watched) -> None:
    client = world.client()
    created = [await client.payouts.create(**payout(number)) for number in range(7)]
    with pytest.raises(DuplicateReference):
        await client.payouts.create(**payout(3))

    found = await client.payouts.find("salary-3")
    assert (found.id, found.amount.value) == (created[3].id, Decimal("15.50"))
    assert found.metadata == {"month": "11"}
    assert await client.payouts.find("salary-9") is None

    page = await client.payouts.list(page_size=3, currency="EUR")
    assert [item.id for item in page] == [made.id for made in reversed(created[4:])]
    everything = [item.id async for item in client.payouts.iterate(page_size=2)]
    assert everything == [made.id for made in reversed(created)]
    assert len([item async for item in client.payouts.iterate(page_size=2, max_items=5)]) == 5

    synced = await client.payouts.sync(created[0].id)
    assert (synced.id, synced.reference) == (created[0].id, "salary-0")
    inspection = await client.payouts.inspect(created[0].id)
    assert inspection.gateway_transaction_id

    finals = [await client.payouts.wait(made) for made in created]
    assert all(final.is_successful for final in finals)
    assert [final.amount.value for final in finals] == [
        entry.amount for entry in world.sandbox.books.payouts()
    ]
    assert world.sandbox.books.total("EUR") == sum(final.amount.value for final in finals)


async def test_a_methods_health_is_read_before_it_is_offered(world: Watched) -> None:
    status = await world.client().methods.status("mtn_bj", "BJ")
    assert (status.method, status.country) == ("mtn_bj", "BJ")
    assert isinstance(status.status, str)
    assert status.ttl_seconds > 0
