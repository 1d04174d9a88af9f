"""The service's own error answers, through the client (Errors)."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from payments_async import (
    AuthenticationError,
    BadRequestError,
    NotFoundError,
    PermissionDeniedError,
    UnprocessableError,
)
from payments_async.sandbox import Sandbox
from tests.support.motion import INTENT, PAYOUT, jumping
from tests.support.scripted import ScriptedTransport, answer

Connect = Callable[..., Any]


@pytest.mark.fact("error.401")
@pytest.mark.parametrize("status", ["inactive", "expired", None])
async def test_a_key_that_does_not_count_is_401(connect: Connect, sandbox: Sandbox, status: Any) -> None:
    key = sandbox.new_key(status=status) if status else "sk_sandbox_nobodys"
    for call in (lambda c: c.payouts.list(), lambda c: c.payouts.create(**PAYOUT)):
        with pytest.raises(AuthenticationError) as caught:
            await call(connect(sandbox, api_key=key))
        assert (caught.value.status, caught.value.effect) == (401, "none")
        assert caught.value.message
        assert len(caught.value.attempts) == 1
    assert sandbox.books.payouts() == []


@pytest.mark.fact("error.403")
async def test_an_address_off_the_allowlist_is_403(connect: Connect, sandbox: Sandbox) -> None:
    key = sandbox.new_key(allowlist=["10.0.0.0/8"])
    with pytest.raises(PermissionDeniedError) as caught:
        await connect(sandbox, api_key=key).payouts.create(**PAYOUT)
    assert (caught.value.status, caught.value.effect) == (403, "none")
    assert caught.value.message


@pytest.mark.fact("error.404")
async def test_what_is_not_there_is_404(connect: Connect, sandbox: Sandbox) -> None:
    client = connect(sandbox)
    for call in (client.checkouts.retrieve("cs_x"), client.payment_intents.retrieve_attempt("pi_x", "pa_x")):
        with pytest.raises(NotFoundError) as caught:
            await call
        assert caught.value.status == 404
        assert caught.value.message


async def test_a_sentence_of_the_service_is_joined_without_its_full_stop(
    connect: Connect, sandbox: Sandbox
) -> None:
    scenario = {"X-Sandbox-Scenario": "no-such-word"}
    with pytest.raises(BadRequestError) as caught:
        await connect(sandbox).payouts.create(**PAYOUT, extra_headers=scenario)
    assert caught.value.message.endswith(".")
    assert f"; {caught.value.message[:-1]}; the request is malformed" in str(caught.value)


@pytest.mark.fact("error.422")
async def test_data_the_service_refuses_is_422_with_the_fields(connect: Connect, sandbox: Sandbox) -> None:
    with pytest.raises(UnprocessableError) as caught:
        await connect(sandbox).payouts.create(**PAYOUT, gateway_options={"nobody": {"knows": 1}})
    error = caught.value
    assert (error.status, error.effect) == (422, "none")
    assert error.message
    assert error.errors
    assert all(isinstance(text, str) for texts in error.errors.values() for text in texts)


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
