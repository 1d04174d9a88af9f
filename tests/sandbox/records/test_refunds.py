"""Refund availability and its arithmetic (docs/interface.md, Refund availability)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.sandbox.raw_requests import Api


def paid(api: Api, amount: float = 100, currency: str = "USD", method: str = "mtn_bj") -> str:
    attempt = {"method_code": method}
    made = api.intent(amount=amount, currency=currency, attempt=attempt, scenario="immediate")
    return str(made.data["id"])


def availability(api: Api, payment_id: str) -> Any:
    return api.get(f"/payment/intents/{payment_id}/refunds/availability").data


@pytest.mark.fact("refunds.unavailable", "endpoint.refunds.availability", "response.refunds.availability")
def test_a_payment_that_is_not_completed_cannot_be_refunded(api: Api) -> None:
    payment_id = api.intent().data["id"]
    data = availability(api, payment_id)
    assert (data["is_refundable"], data["execution_method"]) == (False, None)
    assert isinstance(data["unavailable_reason"], str)
    assert (data["refundable_amount"]["value"], data["available_types"]) == (0, [])
    with pytest.raises(ValueError, match="can be refunded"):
        api.sandbox.refund(payment_id)


@pytest.mark.fact("refunds.types", "refunds.reason-null-when-possible", "refunds.execution-method")
@pytest.mark.parametrize(("method", "by"), [("visa_card", "gateway"), ("mtn_bj", "payout")])
def test_a_completed_payment_can_be_refunded_whole_or_in_part(api: Api, method: str, by: str) -> None:
    data = availability(api, paid(api, method=method))
    assert (data["is_refundable"], data["unavailable_reason"]) == (True, None)
    assert (data["available_types"], data["execution_method"]) == (["full", "partial"], by)
    assert (data["refundable_amount"]["value"], data["refunded_amount"]["value"]) == (100, 0)


@pytest.mark.fact("refunds.partial-absent-at-smallest-unit")
@pytest.mark.parametrize(
    ("amount", "currency", "left", "types"),
    [
        (1, "XOF", 1, ["full"]),
        (2, "XOF", 2, ["full", "partial"]),
        (1, "USD", "0.01", ["full"]),
        (1, "USD", "0.02", ["full", "partial"]),
        (1, "KWD", "0.002", ["full", "partial"]),
    ],
)
def test_partial_needs_a_smaller_amount_in_the_currency(
    api: Api, amount: int, currency: str, left: object, types: list[str]
) -> None:
    payment_id = paid(api, amount, currency)
    if left != amount:
        api.sandbox.refund(payment_id, amount - Decimal(str(left)))
    assert availability(api, payment_id)["available_types"] == types


@pytest.mark.fact("refunds.reserves-in-flight", "refunds.pending-flag", "refunds.guaranteed-balance")
def test_a_refund_in_flight_reserves_its_amount_until_it_ends(api: Api) -> None:
    payment_id = paid(api)
    refund_id = api.sandbox.refund(payment_id, Decimal("30.10"), pending=True)
    data = availability(api, payment_id)
    assert (data["has_pending_refund"], data["pending_amount"]["value"]) == (True, Decimal("30.10"))
    assert data["refundable_amount"]["value"] == Decimal("69.90")
    assert data["refunded_amount"]["value"] == 0
    with pytest.raises(ValueError, match=r"69\.90"):
        api.sandbox.refund(payment_id, Decimal("69.91"))
    api.sandbox.settle(refund_id)
    data = availability(api, payment_id)
    assert (data["has_pending_refund"], data["refunded_amount"]["value"]) == (False, Decimal("30.10"))
    api.sandbox.settle(api.sandbox.refund(payment_id, pending=True), "fail:GATEWAY_UNAVAILABLE")
    assert availability(api, payment_id)["refundable_amount"]["value"] == Decimal("69.90")
    with pytest.raises(LookupError):
        api.sandbox.settle(refund_id)


def test_a_refund_that_fails_changes_the_payment_in_nothing(api: Api) -> None:
    session_id = api.checkout(amount=10, webhook_url="https://merchant.test/h").data["checkout"]["id"]
    payment_id = api.sandbox.pay(session_id).id
    before, told = availability(api, payment_id), len(api.sandbox.deliveries)
    api.sandbox.settle(api.sandbox.refund(payment_id, Decimal(4), pending=True), "fail:GATEWAY_UNAVAILABLE")
    assert availability(api, payment_id) == before
    assert api.listed_intent()["status"] == "completed"
    assert len(api.sandbox.deliveries) == told


@pytest.mark.fact("refunds.guaranteed-balance", "refunds.unavailable")
def test_what_is_refundable_can_be_refunded_to_the_last_unit(api: Api) -> None:
    payment_id = paid(api)
    api.sandbox.refund(payment_id, Decimal("99.99"))
    assert api.listed_intent()["status"] == "partially_refunded"
    api.sandbox.refund(payment_id, Decimal("0.01"), pending=True)
    data = availability(api, payment_id)
    assert (data["is_refundable"], data["has_pending_refund"], data["execution_method"]) == (
        False,
        True,
        None,
    )
    api.sandbox.settle(api.sandbox._core.world.tenants[api.key].payments[0].refunds[-1].id)
    assert api.listed_intent()["status"] == "refunded"
    assert isinstance(availability(api, payment_id)["unavailable_reason"], str)


@pytest.mark.parametrize("amount", ["29.99", Decimal("29.99")])
def test_a_refund_takes_its_amount_as_money_is_taken_elsewhere(api: Api, amount: str | Decimal) -> None:
    payment_id = paid(api)
    api.sandbox.refund(payment_id, amount)
    assert availability(api, payment_id)["refundable_amount"]["value"] == Decimal("70.01")
    api.sandbox.refund(payment_id, 70)
    assert availability(api, payment_id)["refundable_amount"]["value"] == Decimal("0.01")


NO_NUMBERS = ("", "ten", "1e2", "-1", "NaN", "Infinity", "29,99", "\u0662", Decimal("NaN"))


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        *(
            (wrong, TypeError, "amount must be a Decimal, an int or decimal text, not (float|bool|by|l)")
            for wrong in (29.99, True, b"29.99", ["29.99"])
        ),
        *((wrong, ValueError, r"amount must be a positive number such as '29\.99'") for wrong in NO_NUMBERS),
        (Decimal("1E-999999999"), ValueError, "not have more than 60 decimals"),
    ],
)
def test_what_is_no_amount_is_an_error_that_says_so(
    api: Api, wrong: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        api.sandbox.refund(paid(api), wrong)


def test_the_summary_of_a_payment_shows_the_same_figures(api: Api) -> None:
    session_id = api.checkout(amount=10, webhook_url="https://merchant.test/h").data["checkout"]["id"]
    payment_id = api.sandbox.pay(session_id).id
    api.sandbox.refund(payment_id, Decimal(4))
    api.sandbox.refund(payment_id, Decimal(1), pending=True)
    summary = api.get(f"/payment/checkouts/{session_id}").data["payment"]["refunds_summary"]
    assert {name: summary[name]["value"] for name in summary if name != "has_pending_refund"} == {
        "refunded_amount": 4,
        "pending_amount": 1,
        "refundable_amount": 5,
    }
    assert summary["has_pending_refund"] is True
    assert api.sandbox.deliveries[-1].event == "payment.partially_refunded"
    assert api.sandbox.books.collected("XOF") == 10


@pytest.mark.fact("service.refund-availability-read-only")
def test_asking_changes_nothing(api: Api) -> None:
    payment_id = paid(api)
    before = api.listed_intent()
    assert availability(api, payment_id) == availability(api, payment_id)
    assert api.listed_intent() == before
