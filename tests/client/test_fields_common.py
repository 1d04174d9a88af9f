"""Records that appear inside others, field by field (Resources and their fields)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from payments_async.models import FailureCategory
from tests.support import bodies
from tests.support.forms import (
    ATTEMPTS,
    ATTEMPTS_ALONE,
    CHECKOUTS,
    INTENTS,
    PAYOUTS,
    Connect,
    at,
    call,
    exactly,
    read,
    rows,
)

pytestmark = pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror decodes nothing itself

AMOUNT = {"value": Decimal("10.10"), "formatted": "XOF 10.10", "short": "XOF 10", "currency": "XOF"}
RATE = {
    "value": Decimal("655.95700000"),
    "from_currency": "EUR",
    "to_currency": "XOF",
    "expression": "1 EUR = 655.957 XOF",
}
TRANSACTION = {"id": "gt_1", "reference": "gt-ref-1", "external_id": "ext-1", "status": "SETTLED"}
CATEGORISED = {
    "code.value": "INSUFFICIENT_FUNDS",
    "code.category": "CUSTOMER_ERROR",
    "code.message": "Too little money.",
    "message": "The balance is too low.",
}
FAILURE = {
    "code.value": "CUSTOMER_DECLINED",
    "code.message": "Declined by the customer.",
    "message": "The payer said no.",
}

ROWS = [
    *rows((*ATTEMPTS, *INTENTS, *PAYOUTS), "field.amount", AMOUNT, at="amount"),
    *rows((*ATTEMPTS, *PAYOUTS), "field.method", bodies.METHOD, at="method"),
    *rows(("attempt in the list", *PAYOUTS), "field.exchange-rate", RATE, at="exchange_rate"),
    *rows(CHECKOUTS, "field.country", bodies.COUNTRY, at="restriction.country"),
    *rows(PAYOUTS, "field.country", bodies.COUNTRY, at="instrument.country"),
    *rows((*INTENTS, *PAYOUTS), "field.customer", bodies.CUSTOMER, at="customer"),
    *rows((*ATTEMPTS, *PAYOUTS), "field.gateway-transaction", TRANSACTION, at="gateway.transaction"),
    *rows(PAYOUTS, "field.payout-failure", CATEGORISED, at="failure"),
    *rows(("attempt in the list",), "field.attempt-failure", CATEGORISED, at="failure"),
    *rows(ATTEMPTS_ALONE, "field.attempt-failure", FAILURE, at="failure"),
]


@pytest.mark.parametrize(("form", "path", "expected"), ROWS)
async def test_a_field_is_read_with_its_type(
    connect: Connect, form: str, path: str, expected: object
) -> None:
    assert exactly(at(await read(connect, form), path), expected)


@pytest.mark.fact("field.attempt-failure.code.category")
@pytest.mark.parametrize("form", ATTEMPTS_ALONE)
async def test_an_attempt_outside_the_list_has_no_failure_category(connect: Connect, form: str) -> None:
    assert (await read(connect, form)).failure.code.category is None


@pytest.mark.fact("field.failure.category-customer-error")
@pytest.mark.parametrize("form", ["attempt in the list", *PAYOUTS])
async def test_the_example_category_equals_its_constant(connect: Connect, form: str) -> None:
    category = (await read(connect, form)).failure.code.category
    assert category == FailureCategory.CUSTOMER_ERROR == "CUSTOMER_ERROR"


@pytest.mark.fact("field.exchange-rate.number-form")
@pytest.mark.parametrize("form", ATTEMPTS_ALONE)
async def test_a_rate_that_is_a_number_is_read_as_a_decimal(connect: Connect, form: str) -> None:
    attempt = await read(connect, form)
    assert exactly(attempt.exchange_rate, Decimal("655.957"))


@pytest.mark.fact("field.exchange-rate.number-form")
@pytest.mark.parametrize(
    ("written", "expected"),
    [(b"1", Decimal(1)), (b"0.00152449", Decimal("0.00152449")), (b"1E+2", Decimal(100)), (b"null", None)],
)
async def test_any_json_number_is_a_rate_without_loss(
    connect: Connect, written: bytes, expected: Decimal | None
) -> None:
    raw = bodies.encoded({"data": {**bodies.ATTEMPT, "exchange_rate": Decimal("7.7777")}})
    attempt: Any = await call(connect, "payment_intents.retrieve_attempt", raw.replace(b"7.7777", written))
    assert exactly(attempt.exchange_rate, expected)


@pytest.mark.fact(
    "field.amount.value", "field.amount.formatted", "field.amount.short", "field.amount.currency"
)
@pytest.mark.parametrize("null", [True, False], ids=["null", "missing"])
async def test_an_amount_may_hold_nothing(connect: Connect, *, null: bool) -> None:
    nothing = dict.fromkeys(AMOUNT) if null else {}
    attempt = await read(connect, "attempt", {"data": {**bodies.ATTEMPT, "amount": nothing}})
    assert [getattr(attempt.amount, name) for name in AMOUNT] == [None] * 4
