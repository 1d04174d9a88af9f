"""Answers of the sandbox: a record says what the wire said, no more and no less, in every form."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from payments_async.models import (
    Checkout,
    MethodHealth,
    MethodStatus,
    NextActionType,
    Page,
    PaymentAttempt,
    PaymentAttemptStatus,
    PaymentIntent,
    PaymentIntentStatus,
    Payout,
    PayoutStatus,
)
from payments_async.sandbox import Sandbox, VirtualClock
from tests.support.calls import PAYMENT, PAYOUT
from tests.support.faithful import differences
from tests.support.jumping import JumpingRuntime
from tests.support.surfaces import Connect
from tests.support.tapped import Tapped

ATTEMPT = {"method_code": "mtn_bj", "country": "BJ"}
FAILS = {"sandbox_scenario": "fail:CUSTOMER_DECLINED immediate"}


@pytest.mark.fact(
    "response.checkouts.create",
    "response.checkouts.retrieve",
    "conventions.create-message",
    "service.checkout-is-payment-and-page",
    "endpoint.checkouts.redirect-to-url",
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
    made = await client.payment_intents.create(**PAYMENT, attempt=ATTEMPT)
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
    tap = Tapped()
    made = await connect(sandbox, transport=tap).payouts.create(**PAYOUT)
    written = tap.json["data"]["created_at"]

    assert made.created_at.utcoffset() == timedelta(0)
    assert made.created_at == datetime.fromisoformat(written)
    assert made.created_at == datetime.fromtimestamp(sandbox.books.payouts()[0].created_at, UTC)


CUSTOMER = {"email": "ada@example.com", "first_name": "Ada"}
RICH = {"customer": CUSTOMER, "description": "Books", "metadata": {"order": "7", "n": 1}}

Client = Any
Act = Callable[[Client, Sandbox], Awaitable[Any]]


async def _intent(client: Client, **more: Any) -> PaymentIntent:
    intent: PaymentIntent = await client.payment_intents.create(**{**PAYMENT, **RICH, **more})
    return intent


async def _tried(client: Client, outcome: str | None = None) -> tuple[str, str]:
    """Ids of an intent and its attempt."""
    metadata = {"sandbox_scenario": outcome} if outcome else None
    intent = await _intent(client, attempt=ATTEMPT, metadata=metadata)
    assert intent.active_attempt
    return str(intent.id), str(intent.active_attempt.id)


async def _paid_checkout(client: Client, sandbox: Sandbox) -> Checkout:
    made = await client.checkouts.create(**PAYMENT, **RICH, restriction={"country_code": "BJ"})
    sandbox.pay(made.id)
    found: Checkout = await client.checkouts.retrieve(made.id)
    return found


async def _refundable(client: Client, sandbox: Sandbox) -> Any:
    intent = await _intent(client)
    sandbox.pay(str(intent.id))
    sandbox.refund(str(intent.id), PAYMENT["amount"] / 2, pending=True)
    return await client.payment_intents.refund_availability(intent.id)


async def _failed_attempt(client: Client, sandbox: Sandbox) -> PaymentAttempt:
    intent, attempt = await _tried(client, "fail:CUSTOMER_DECLINED immediate")
    found: PaymentAttempt = await client.payment_intents.retrieve_attempt(intent, attempt)
    return found


async def _failed_in_list(client: Client, sandbox: Sandbox) -> Page[PaymentIntent]:
    await _tried(client, "fail:CUSTOMER_DECLINED immediate")
    await _intent(client, attempt=ATTEMPT, metadata={"sandbox_scenario": "action:collect_otp"})
    found: Page[PaymentIntent] = await client.payment_intents.list(page_size=2)
    return found


async def _failed_payouts(client: Client, sandbox: Sandbox) -> Page[Payout]:
    metadata = {"sandbox_scenario": "fail:INSUFFICIENT_FUNDS immediate"}
    await client.payouts.create(**{**PAYOUT, "metadata": metadata})
    found: Page[Payout] = await client.payouts.list(page_size=1)
    return found


async def _synced(client: Client, sandbox: Sandbox) -> Payout:
    made = await client.payouts.create(**PAYOUT, **RICH)
    sandbox.settle(made.id)
    found: Payout = await client.payouts.sync(made.id)
    return found


async def _requeried(client: Client, sandbox: Sandbox) -> Any:
    return await client.payment_intents.requery((await _tried(client))[0])


async def _inspected_attempt(client: Client, sandbox: Sandbox) -> Any:
    return await client.payment_intents.inspect_attempt(*(await _tried(client)))


async def _inspected_payout(client: Client, sandbox: Sandbox) -> Any:
    return await client.payouts.inspect((await client.payouts.create(**PAYOUT)).id)


ACTS: dict[str, Act] = {
    "created checkout": lambda client, _: client.checkouts.create(**PAYMENT, **RICH),
    "paid checkout": _paid_checkout,
    "created intent": lambda client, _: _intent(client, attempt=ATTEMPT),
    "intents list": _failed_in_list,
    "failed attempt": _failed_attempt,
    "refund availability": _refundable,
    "created payout": lambda client, _: client.payouts.create(**PAYOUT, **RICH),
    "payouts list": _failed_payouts,
    "synced payout": _synced,
    "requery": _requeried,
    "attempt inspection": _inspected_attempt,
    "payout inspection": _inspected_payout,
    "method status": lambda client, _: client.methods.status("mtn_bj", "BJ"),
}


def _said(value: Any, body: Any) -> Any:
    """The part of the body that the value stands for."""
    if isinstance(value, Page):
        return body
    if isinstance(value, MethodStatus):
        return {
            **body["meta"],
            **body["data"],
            **({"x_later": body["data"]["x_later"]} if "x_later" in body else {}),
        }
    return body["data"]


def _extras(value: Any) -> set[str]:
    """Names of unknown fields anywhere in a plain record."""
    if isinstance(value, dict):
        return {name for name in value if name == "x_later"}.union(*map(_extras, value.values()))
    return set().union(*map(_extras, value)) if isinstance(value, list) else set()


@pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror decodes nothing itself
@pytest.mark.parametrize("profile", ["observed", "hostile"])
@pytest.mark.parametrize("form", ACTS)
async def test_a_record_says_what_the_sandbox_said(connect: Connect, form: str, profile: str) -> None:
    with Sandbox(profile=profile, clock=VirtualClock.frozen()) as sandbox:
        tap = Tapped()
        client = connect(sandbox, transport=tap, runtime=JumpingRuntime())
        value = await ACTS[form](client, sandbox)

    assert list(differences(_said(value, tap.json), value)) == []
    records = list(value) if isinstance(value, Page) else [value]
    found = set().union(*(_extras(record.to_dict(unmasked=True)) for record in records))
    assert found == ({"x_later"} if profile == "hostile" else set())
    assert value.response.status == tap.last.status  # type: ignore[union-attr] # there was an answer
