"""Answers of the sandbox: a record says what the wire said, no more and no less, in every form."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from payments_async.models import (
    MethodHealth,
    NextActionType,
    PaymentAttemptStatus,
    PaymentIntentStatus,
    PayoutStatus,
)
from payments_async.sandbox import Sandbox
from tests.support.calls import PAYMENT, PAYOUT
from tests.support.surfaces import Connect

ATTEMPT = {"method_code": "mtn_bj", "country": "BJ"}
FAILS = {"sandbox_scenario": "fail:CUSTOMER_DECLINED immediate"}


@pytest.mark.fact(
    "response.checkouts.create",
    "response.checkouts.retrieve",
    "conventions.create-message",
    "service.checkout-is-payment-and-page",
    "endpoint.checkouts.redirect-to-url",
    "service.return-is-not-proof",
)
async def test_a_checkout_is_a_page_and_a_payment(connect: Connect, sandbox: Sandbox) -> None:
    client = connect(sandbox)
    made = await client.checkouts.create(**PAYMENT)
    found = await client.checkouts.retrieve(made.checkout.id)

    assert made.response.message == "Checkout session created."
    assert made.url == made.checkout.url == found.url
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/checkout/\w+", made.url)
    assert (made.id, made.payment.id) == (found.id, found.payment.id)
    assert made.payment.id == sandbox.books.payments()[0].id
    assert found.response.message is None

    assert not found.payment.is_successful, "the payer came back without having paid"
    sandbox.pay(made.id)
    assert (await client.checkouts.retrieve(made.id)).payment.is_successful


@pytest.mark.fact(
    "response.intents.create", "response.intents.create.active-attempt", "service.intent-may-start-attempt"
)
async def test_a_created_intent_carries_the_attempt_it_started(connect: Connect, sandbox: Sandbox) -> None:
    client = connect(sandbox)
    plain = await client.payment_intents.create(**PAYMENT)
    tried = await client.payment_intents.create(**PAYMENT, attempt=ATTEMPT)

    assert plain.active_attempt is None
    assert plain.response.message == tried.response.message == "Payment intent created."
    assert (tried.active_attempt.id,) == sandbox.books.payments()[1].attempts
    assert tried.id == sandbox.books.payments()[1].id


@pytest.mark.fact(
    "response.intents.list",
    "states.observed.intent-pending",
    "states.observed.attempt-processing",
    "states.observed.next-action-none",
)
@pytest.mark.observed("the usual words")
async def test_the_intents_list_carries_statuses_and_pagination(connect: Connect, sandbox: Sandbox) -> None:
    client = connect(sandbox)
    made = await client.payment_intents.create(**PAYMENT, attempt={**ATTEMPT, "method_code": "visa_card"})
    page = await client.payment_intents.list()

    (listed,) = page.items
    assert (listed.id, page.pagination.count, page.pagination.has_more_pages) == (made.id, 1, False)
    assert listed.status == PaymentIntentStatus.PENDING == "pending"
    assert listed.active_attempt.status == PaymentAttemptStatus.PROCESSING == "processing"
    assert listed.active_attempt.next_action.type == NextActionType.NONE == "none"


@pytest.mark.fact("response.attempts.retrieve", "error.failure.attempt")
async def test_a_failed_attempt_says_why(connect: Connect, sandbox: Sandbox) -> None:
    client = connect(sandbox)
    made = await client.payment_intents.create(**PAYMENT, attempt=ATTEMPT, metadata=FAILS)
    attempt = await client.payment_intents.retrieve_attempt(made.id, made.active_attempt.id)

    assert attempt.is_final
    assert not attempt.is_successful
    assert attempt.failure.code.value == "CUSTOMER_DECLINED"
    assert attempt.failure.message == "Customer declined."


@pytest.mark.fact("response.refunds.availability", "refunds.unavailable")
async def test_refund_availability_follows_the_payment(connect: Connect, sandbox: Sandbox) -> None:
    client = connect(sandbox)
    made = await client.payment_intents.create(**PAYMENT)
    before = await client.payment_intents.refund_availability(made.id)
    sandbox.pay(made.id)
    after = await client.payment_intents.refund_availability(made.id)

    assert before.response.status == after.response.status == 200
    assert (before.is_refundable, before.execution_method) == (False, None)
    assert before.unavailable_reason == "The payment has not been completed."
    assert (after.is_refundable, after.unavailable_reason) == (True, None)
    assert after.refundable_amount.value == PAYMENT["amount"]


@pytest.mark.fact(
    "response.payouts.create",
    "states.payout-create-not-final",
    "states.observed.payout-pending",
    "service.payout-to-instrument",
    "conventions.amounts-major-units",
)
async def test_a_created_payout_is_usually_not_final(connect: Connect, sandbox: Sandbox) -> None:
    made = await connect(sandbox).payouts.create(**PAYOUT)

    assert made.response.message == "Payout created."
    assert made.id == sandbox.books.payouts()[0].id
    assert made.status == PayoutStatus.PENDING == "pending"
    assert not made.is_final
    assert made.amount.value == Decimal("10.10")
    assert (made.instrument.type, made.instrument.country.code) == ("phone", "BJ")


@pytest.mark.fact("response.payouts.list", "error.failure.payout")
async def test_the_payouts_list_shows_a_failure(connect: Connect, sandbox: Sandbox) -> None:
    client = connect(sandbox)
    await client.payouts.create(**PAYOUT, metadata=FAILS)
    page = await client.payouts.list()

    (listed,) = page
    assert page.pagination.count == 1
    assert listed.is_final
    assert not listed.is_successful
    assert listed.failure.code.value == "CUSTOMER_DECLINED"
    assert listed.failure.code.category == "CUSTOMER_ERROR"


@pytest.mark.fact("response.methods.status", "states.observed.method-unavailable")
async def test_method_status_is_one_record_of_data_and_meta(connect: Connect, sandbox: Sandbox) -> None:
    client = connect(sandbox)
    gateway_down = {"sandbox_scenario": "fail:GATEWAY_UNAVAILABLE immediate"}
    for _ in range(5):
        await client.payment_intents.create(**PAYMENT, attempt=ATTEMPT, metadata=gateway_down)
    status = await client.methods.status("mtn_bj", "BJ")

    assert status.status == MethodHealth.UNAVAILABLE == "unavailable"
    assert not status.is_usable
    assert (status.method, status.country, status.environment) == ("mtn_bj", "BJ", "sandbox")
    assert (status.window_minutes, status.ttl_seconds) == (15, 60)


@pytest.mark.fact("conventions.timestamps-iso-utc", "conventions.data-envelope", "conventions.json-bodies")
async def test_moments_are_read_as_aware_utc(connect: Connect, sandbox: Sandbox) -> None:
    made = await connect(sandbox).payouts.create(**PAYOUT)
    written = json.loads(made.response.body)["data"]["created_at"]

    assert made.created_at.utcoffset() == timedelta(0)
    assert made.created_at == datetime.fromisoformat(written)
    assert made.created_at == datetime.fromtimestamp(sandbox.books.payouts()[0].created_at, UTC)
