"""Payment intents and what can be refunded of them, field by field (Resources, Payment intent)."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from payments_async.models import Amount, Customer, MethodFilter, PaymentAttempt, RefundsSummary
from tests.support import bodies
from tests.support.forms import INTENTS, INTENTS_ALONE, PAGES, Connect, at, call, exactly, read, rows

pytestmark = pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror decodes nothing itself

LIST = ("intent in the list",)


def xof(value: str) -> Amount:
    return Amount(Decimal(value), f"XOF {value}", f"XOF {value.partition('.')[0]}", "XOF")


def moment(hour: int, minute: int, second: int = 0) -> datetime:
    return datetime(2026, 1, 2, hour, minute, second, tzinfo=UTC)


INTENT = {
    "id": "pi_1",
    "amount": xof("10.10"),
    "customer": Customer("cus_1", "Ada", "Agbo", bodies.EMAIL, "https://avatars.test/ada.png"),
    "description": "Two books",
    "return_url": "https://shop.test/back",
    "webhook_url": "https://shop.test/hook",
    "statement_descriptor": "SHOP 42",
    "receipt_email": "receipts@example.com",
    "metadata": {"order": "7", "nested": {"a": [1, Decimal("2.50")]}},
    "completed_at": moment(3, 5),
    "created_at": moment(3, 3),
}
REFUNDS: bodies.Json = {
    "refunded_amount": xof("1.25"),
    "pending_amount": xof("2.50"),
    "refundable_amount": xof("6.35"),
    "has_pending_refund": True,
}
ALONE = {
    "refunds_summary": RefundsSummary(**REFUNDS),
    "expires_at": moment(4, 3),
    **dict.fromkeys(("reference", "status", "expired_at")),
}
LISTED = {
    "reference": "PAY-1",
    "status": "pending",
    "restriction.payment_methods": MethodFilter(("mtn_bj", "moov_bj"), ("card",)),
    "restriction.payment_method_categories": MethodFilter(("mobile_money",), ("crypto", "bank")),
    "expired_at": moment(4, 3, 1),
    "expires_at": None,
}
AVAILABILITY = {
    **REFUNDS,
    "is_refundable": True,
    "available_types": ("full", "partial"),
    "execution_method": "gateway",
    "unavailable_reason": "none: this example fills every field",
}
PAGINATION = dict(bodies.PAGINATION)

ROWS = [
    *rows(INTENTS, "field.intent", INTENT),
    *rows(INTENTS_ALONE, "field.intent", ALONE),
    *rows(LIST, "field.intent", LISTED),
    *rows(INTENTS_ALONE, "field.intent.refunds_summary", REFUNDS, at="refunds_summary"),
    *rows(("refund availability",), "field.refund-availability", AVAILABILITY),
    *rows(PAGES, "field.pagination", PAGINATION),
]


@pytest.mark.parametrize(("form", "path", "expected"), ROWS)
async def test_a_field_is_read_with_its_type(
    connect: Connect, form: str, path: str, expected: object
) -> None:
    assert exactly(at(await read(connect, form), path), expected)


@pytest.mark.fact("field.intent.active_attempt")
@pytest.mark.parametrize("form", INTENTS)
async def test_an_intent_holds_its_active_attempt(connect: Connect, form: str) -> None:
    attempt = (await read(connect, form)).active_attempt
    assert type(attempt) is PaymentAttempt
    assert attempt.id == "pa_1"


@pytest.mark.fact("field.intent.refunds_summary")
async def test_a_listed_intent_has_no_refunds_summary(connect: Connect) -> None:
    assert (await read(connect, "intent in the list")).refunds_summary is None


@pytest.mark.fact(
    "field.intent.restriction.payment_methods", "field.intent.restriction.payment_method_categories"
)
@pytest.mark.parametrize("form", INTENTS_ALONE)
async def test_an_intent_outside_the_list_has_no_restriction(connect: Connect, form: str) -> None:
    assert (await read(connect, form)).restriction is None


@pytest.mark.fact("field.refund-availability.execution_method", "refunds.unavailable")
async def test_what_cannot_be_refunded_says_why_and_names_no_method(connect: Connect) -> None:
    changed: dict[str, Any] = {
        "is_refundable": False,
        "available_types": [],
        "execution_method": None,
        "unavailable_reason": "Nothing is left to refund.",
    }
    found = await read(connect, "refund availability", {"data": {**bodies.REFUND_AVAILABILITY, **changed}})
    assert found.is_refundable is False
    assert found.execution_method is None
    assert found.available_types == ()
    assert found.unavailable_reason == "Nothing is left to refund."


@pytest.mark.fact("field.refund-availability.unavailable_reason")
async def test_what_can_be_refunded_needs_no_reason(connect: Connect) -> None:
    body = {"data": {**bodies.REFUND_AVAILABILITY, "unavailable_reason": None}}
    assert (await read(connect, "refund availability", body)).unavailable_reason is None


@pytest.mark.parametrize("missing", ["absent", None, []])
async def test_a_page_without_pagination_is_a_last_page(connect: Connect, missing: object) -> None:
    body = {"data": [bodies.PAYOUT], **({} if missing == "absent" else {"pagination": missing})}
    page = await call(connect, "payouts.list", body)
    assert (len(page), page.next_cursor, page.pagination.count) == (1, None, None)
