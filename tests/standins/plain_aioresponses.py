"""What users of aioresponses write: no adaptor, no shim. `nox -s standins` runs it with both packages."""

from __future__ import annotations

from typing import Any

import pytest
from aioresponses import CallbackResult, aioresponses

from payments_async import AsyncPayments, Instrument, OutcomeUnknown, UnprocessableError
from payments_sync import Payments

KEY = "sk_sandbox_0123456789abcdef"
URL = "https://api.test/v1"
PAYOUTS = f"{URL}/payouts"
PAID = {
    "id": "po_1",
    "status": "pending",
    "reference": "rent-3",
    "amount": {"value": 25, "currency": "GHS"},
}
ASKED: dict[str, Any] = {
    "amount": 25,
    "currency": "GHS",
    "method": "mobile_money",
    "instrument": Instrument.phone("+233200000001", "GH"),
    "reference": "rent-3",
}


def page(record: dict[str, Any], cursor: str | None) -> dict[str, Any]:
    return {"data": [record], "pagination": {"next_cursor": cursor, "per_page": 1}}


async def test_an_answer() -> None:
    with aioresponses() as service:
        service.post(PAYOUTS, status=201, payload={"data": PAID})
        async with AsyncPayments(KEY, base_url=URL) as client:
            assert (await client.payouts.create(**ASKED)).id == "po_1"


async def test_a_retry() -> None:
    with aioresponses() as service:
        service.post(PAYOUTS, status=503, payload={"message": "Try later."})
        service.post(PAYOUTS, status=201, payload={"data": PAID})
        async with AsyncPayments(KEY, base_url=URL) as client:
            paid = await client.payouts.create(**ASKED)
    assert paid.response is not None
    assert [each.reason for each in paid.response.attempts] == ["503", "201"]


async def test_a_refusal() -> None:
    with aioresponses() as service:
        service.post(PAYOUTS, status=422, payload={"message": "Invalid.", "errors": {"method": ["unknown"]}})
        async with AsyncPayments(KEY, base_url=URL) as client:
            with pytest.raises(UnprocessableError) as caught:
                await client.payouts.create(**ASKED)
    assert caught.value.errors == {"method": ["unknown"]}


async def test_two_pages_of_a_list() -> None:
    with aioresponses() as service:
        service.get(PAYOUTS, payload=page(PAID, "next"))
        service.get(f"{PAYOUTS}?cursor=next", payload=page({**PAID, "id": "po_2"}, None))
        async with AsyncPayments(KEY, base_url=URL) as client:
            first = await client.payouts.list()
            second = await client.payouts.list(cursor=first.next_cursor)
    assert [payout.id for payout in (*first, *second)] == ["po_1", "po_2"]


async def test_a_client_that_was_made_before_the_stub() -> None:
    async with AsyncPayments(KEY, base_url=URL) as client:
        with aioresponses() as service:
            service.get(PAYOUTS, payload=page(PAID, None))
            assert [payout.id for payout in await client.payouts.list()] == ["po_1"]


def test_the_blocking_client() -> None:
    with aioresponses() as service, Payments(KEY, base_url=URL) as client:
        service.post(PAYOUTS, status=201, payload={"data": PAID})
        assert client.payouts.create(**ASKED).id == "po_1"


async def test_a_callback() -> None:
    def answer(url: object, **_: object) -> CallbackResult:
        return CallbackResult(status=201, payload={"data": PAID})

    with aioresponses() as service:
        service.post(PAYOUTS, callback=answer)
        async with AsyncPayments(KEY, base_url=URL) as client:
            assert (await client.payouts.create(**ASKED)).id == "po_1"


async def test_an_exception() -> None:
    with aioresponses() as service:
        service.post(PAYOUTS, exception=TimeoutError("late"), repeat=True)
        async with AsyncPayments(KEY, base_url=URL, max_retries=0) as client:
            with pytest.raises(OutcomeUnknown, match="timeout"):
                await client.payouts.create(**ASKED)


async def test_a_request_without_a_stub_is_named() -> None:
    with aioresponses():
        async with AsyncPayments(KEY, base_url=URL, max_retries=0) as client:
            with pytest.raises(OutcomeUnknown, match=f"Connection refused: POST {PAYOUTS}"):
                await client.payouts.create(**ASKED)
