"""Refusals as the sandbox words them: the class, the service's message, the facts (Errors)."""

from __future__ import annotations

import pickle
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from payments_async.errors import (
    APIStatusError,
    AuthenticationError,
    BadRequestError,
    DuplicateReference,
    IdempotencyConflict,
    NotFoundError,
    PermissionDeniedError,
    RateLimitedError,
    UnprocessableError,
)
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.calls import PAYMENT, PAYOUT
from tests.support.jumping import JumpingRuntime
from tests.support.motion import INTENT, jumping
from tests.support.scripted import ScriptedTransport, answer
from tests.support.tapped import Tapped

Connect = Callable[..., Any]
Refuse = Callable[[Connect, Sandbox], Awaitable[Any]]


async def _unknown_key(connect: Connect, sandbox: Sandbox) -> None:
    await connect(sandbox, api_key="sk_sandbox_unknown0123456789").payouts.list()


async def _inactive_key(connect: Connect, sandbox: Sandbox) -> None:
    await connect(sandbox, api_key=sandbox.new_key("inactive")).payouts.create(**PAYOUT)


async def _expired_key(connect: Connect, sandbox: Sandbox) -> None:
    await connect(sandbox, api_key=sandbox.new_key("expired")).checkouts.create(**PAYMENT)


async def _foreign_address(connect: Connect, sandbox: Sandbox) -> None:
    await connect(sandbox, api_key=sandbox.new_key(allowlist=["10.0.0.1"])).payouts.create(**PAYOUT)


async def _unknown_record(connect: Connect, sandbox: Sandbox) -> None:
    await connect(sandbox).checkouts.retrieve("cs_unknown")


async def _unknown_attempt(connect: Connect, sandbox: Sandbox) -> None:
    await connect(sandbox).payment_intents.retrieve_attempt("pi_x", "pa_x")


async def _invalid_data(connect: Connect, sandbox: Sandbox) -> None:
    await connect(sandbox).payouts.create(**{**PAYOUT, "instrument": {"type": "phone"}})


REFUSALS = [
    pytest.param(_unknown_key, AuthenticationError, 401, marks=pytest.mark.fact("error.401")),
    pytest.param(_inactive_key, AuthenticationError, 401, marks=pytest.mark.fact("error.401")),
    pytest.param(_expired_key, AuthenticationError, 401, marks=pytest.mark.fact("error.401")),
    pytest.param(_foreign_address, PermissionDeniedError, 403, marks=pytest.mark.fact("error.403")),
    pytest.param(_unknown_record, NotFoundError, 404, marks=pytest.mark.fact("error.404")),
    pytest.param(_unknown_attempt, NotFoundError, 404, marks=pytest.mark.fact("error.404")),
    pytest.param(_invalid_data, UnprocessableError, 422, marks=pytest.mark.fact("error.422")),
]


@pytest.mark.parametrize(("refuse", "cls", "status"), REFUSALS)
@pytest.mark.observed("request ids")
async def test_a_refusal_is_its_class_with_the_services_message(
    connect: Connect, sandbox: Sandbox, refuse: Refuse, cls: type[APIStatusError], status: int
) -> None:
    with pytest.raises(APIStatusError) as caught:
        await refuse(connect, sandbox)
    assert type(caught.value) is cls
    assert (caught.value.status, caught.value.effect) == (status, "none")
    assert caught.value.body is not None
    assert caught.value.message == caught.value.body.json()["message"]
    assert caught.value.request_id == sandbox.requests[-1].request_id
    assert len(sandbox.requests) == 1
    assert not sandbox.books.payouts()
    assert not sandbox.books.payments()


@pytest.mark.fact("error.422")
async def test_a_422_says_which_fields(connect: Connect, sandbox: Sandbox) -> None:
    with pytest.raises(UnprocessableError) as caught:
        await _invalid_data(connect, sandbox)
    assert caught.value.body is not None
    assert caught.value.errors == caught.value.body.json()["errors"]
    assert set(caught.value.errors) >= {"instrument.phone_number"}


@pytest.mark.fact("error.409.duplicate-reference")
async def test_a_reference_used_twice_is_a_duplicate_that_can_be_found(
    connect: Connect, sandbox: Sandbox
) -> None:
    client = connect(sandbox)
    first = await client.payouts.create(**PAYOUT)
    with pytest.raises(DuplicateReference) as caught:
        await client.payouts.create(**PAYOUT)
    assert (caught.value.status, caught.value.effect) == (409, "none")
    assert caught.value.message
    assert len(sandbox.books.payouts()) == 1
    assert await client.payouts.find(PAYOUT["reference"]) == first


async def test_a_key_used_with_another_body_is_an_idempotency_conflict(
    connect: Connect, sandbox: Sandbox
) -> None:
    key = "key-0123456789"
    await connect(sandbox).payouts.create(**PAYOUT, idempotency_key=key)
    with pytest.raises(IdempotencyConflict) as caught:
        await connect(sandbox).payouts.create(**{**PAYOUT, "amount": 11}, idempotency_key=key)
    assert caught.value.effect == "unknown"
    assert caught.value.idempotency_key == key
    assert len(sandbox.books.payouts()) == 1


@pytest.mark.fact(
    "error.429", "error.429.header-limit", "error.429.header-remaining", "error.429.header-retry-after"
)
async def test_a_429_says_the_limit_what_is_left_and_how_long_to_wait(connect: Connect) -> None:
    clock = VirtualClock.frozen()
    with Sandbox(limits=SandboxLimits(reads=2), clock=clock) as sandbox:
        client = connect(sandbox, transport=Tapped(), runtime=JumpingRuntime(), max_retries=0)
        for _ in range(2):
            await client.payouts.list()
        with pytest.raises(RateLimitedError) as caught:
            await client.payouts.list()
    assert (caught.value.limit, caught.value.remaining) == (2, 0)
    assert caught.value.retry_after is not None
    assert timedelta(0) < timedelta(seconds=caught.value.retry_after) <= timedelta(minutes=1)
    assert caught.value.message


async def test_a_sentence_of_the_service_is_joined_without_its_full_stop(
    connect: Connect, sandbox: Sandbox
) -> None:
    scenario = {"X-Sandbox-Scenario": "no-such-word"}
    with pytest.raises(BadRequestError) as caught:
        await connect(sandbox).payouts.create(**PAYOUT, extra_headers=scenario)
    assert caught.value.message.endswith(".")
    assert f"; {caught.value.message[:-1]}; the request is malformed" in str(caught.value)


async def test_an_error_repeats_nothing_of_whom_the_request_named(connect: Connect) -> None:
    named = ("Ada Agbo", "TXLAQ63Xg1NAzckPwKHvzw", "Cotonou")
    said = {"message": f"No {named[1]}", "errors": {"instrument.address": [f"{named[0]} of {named[2]}"]}}
    client = connect(transport=ScriptedTransport(answer(422, said)))
    instrument = {"type": "crypto_address", "account_name": named[0], "address": named[1], "network": "x"}
    asked = {**PAYOUT, "instrument": instrument, "customer": {"city": named[2]}}
    for call in (client.payouts.create(**asked), client.request("POST", "/payouts", json=asked)):
        with pytest.raises(UnprocessableError) as caught:
            await call
        error = caught.value
        assert (error.message, error.errors) == ("No ***", {"instrument.address": ["*** of ***"]})
        shown = f"{error!r} {error}".encode() + pickle.dumps(error)
        assert [text for text in named if text.encode() in shown] == []


@pytest.mark.fact("error.failure.payout", "error.failure.attempt")
async def test_what_failed_says_why(connect: Connect, sandbox: Sandbox) -> None:
    sandbox.on("*.create").outcome("fail:CUSTOMER_DECLINED immediate")
    client = jumping(connect, sandbox)
    payout = await client.payouts.wait((await client.payouts.create(**PAYOUT)).id)
    attempt = {
        "method_code": "mtn_bj",
        "country_code": "BJ",
        "phone": {"number": "+22990112233", "country": "BJ"},
    }
    intent = await client.payment_intents.create(**INTENT, attempt=attempt)
    tried = await client.payment_intents.wait_attempt(intent.id, intent.active_attempt.id)
    for failure in (payout.failure, tried.failure):
        assert failure.code.value == "CUSTOMER_DECLINED"
        assert failure.message
    assert (payout.is_successful, tried.is_successful) == (False, False)
