"""Money on the wire: a JSON number in major units, exact to the last digit."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.support.creations import SMALLEST, create, row
from tests.support.watched import WatchedSandbox

RESOURCES = [
    row("payment_intents", facts="request.payment.amount.number request.payment.amount.min-1"),
    row("checkouts", facts="request.payment.amount.number request.payment.amount.min-1"),
    row("payouts", facts="request.payouts.amount.number request.payouts.amount.min-1"),
]


@pytest.mark.fact("conventions.amounts-major-units")
@pytest.mark.parametrize("resource", RESOURCES)
@pytest.mark.parametrize(
    ("given", "digits"),
    [
        (50, "50"),
        (1, "1"),
        ("1", "1"),
        (Decimal("1.000"), "1.000"),
        ("10.10", "10.10"),
        (Decimal("10.1"), "10.1"),
        (Decimal("12345678901234567.89"), "12345678901234567.89"),
        (Decimal("0.3") + Decimal("0.8"), "1.1"),
    ],
    ids=str,
)
async def test_an_amount_arrives_digit_for_digit(
    connect: Callable[..., Any], watched: WatchedSandbox, resource: str, given: Any, digits: str
) -> None:
    record = await create(connect(watched), resource, amount=given)

    assert b'"amount":' + digits.encode() + b"," in watched.arrived[-1].body
    assert getattr(record, "payment", record).amount.value == Decimal(digits)
    kept = watched.books.payouts() if resource == "payouts" else watched.books.payments()
    assert [entry.amount for entry in kept] == [Decimal(digits)]


@pytest.mark.parametrize("resource", SMALLEST)
@pytest.mark.parametrize(
    ("given", "digits"),
    [(Decimal("1E+2"), "100"), ("1e2", "100"), ("1.5e3", "1500"), (Decimal("1.50E+3"), "1500")],
    ids=str,
)
async def test_an_exponent_is_written_out(
    connect: Callable[..., Any], watched: WatchedSandbox, resource: str, given: Any, digits: str
) -> None:
    record = await create(connect(watched), resource, amount=given)
    assert b'"amount":' + digits.encode() + b"," in watched.arrived[-1].body
    assert getattr(record, "payment", record).amount.value == Decimal(digits)


@pytest.mark.fact("request.payment.currency.iso-4217")
@pytest.mark.parametrize("resource", ["payment_intents", "checkouts"])
@pytest.mark.parametrize("code", ["XOF", "GHS", "EUR"])
async def test_a_currency_arrives_as_given(
    connect: Callable[..., Any], watched: WatchedSandbox, resource: str, code: str
) -> None:
    record = await create(connect(watched), resource, currency=code)
    assert watched.body["currency"] == code
    assert getattr(record, "payment", record).amount.currency == code
