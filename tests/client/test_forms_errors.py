"""Refusals as the sandbox words them: the class, the service's message, the facts (Errors)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from payments_async.errors import (
    APIStatusError,
    AuthenticationError,
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


async def _invalid_data(connect: Connect, sandbox: Sandbox) -> None:
    await connect(sandbox).payouts.create(**{**PAYOUT, "instrument": {"type": "phone"}})


REFUSALS = [
    pytest.param(_unknown_key, AuthenticationError, 401, marks=pytest.mark.fact("error.401")),
    pytest.param(_inactive_key, AuthenticationError, 401, marks=pytest.mark.fact("error.401")),
    pytest.param(_expired_key, AuthenticationError, 401, marks=pytest.mark.fact("error.401")),
    pytest.param(_foreign_address, PermissionDeniedError, 403, marks=pytest.mark.fact("error.403")),
    pytest.param(_unknown_record, NotFoundError, 404, marks=pytest.mark.fact("error.404")),
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
